"""What passes between a channel and the rest: one message in, one message out."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from channels_app.addresses import ChatAddress


def storable(text: str) -> str:
    """Return text that every database and provider takes: no NUL, no half of a surrogate pair."""
    return text.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message. `file` is its name in the media store, "" while it is only known to the platform."""

    kind: str
    text: str = ""
    file: str = ""
    platform_id: str = ""


@dataclass(frozen=True, slots=True)
class Sender:
    """Who wrote, as the platform says. `is_admin` counts in groups; a nameless or borrowed sender has no account."""

    account: str = ""
    name: str = ""
    is_admin: bool = False
    is_self: bool = False


class Part(StrEnum):
    """How a message may belong together with its neighbours."""

    WHOLE = "whole"
    PIECE = "piece"  # of an album, or a text that its client may have cut in two


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """One message of a chat, free of the wire it came by.

    `event_key` names the wire event once and for all in its channel. `edits` is the message id whose text this replaces.
    `addressed` says that it mentions or answers the bot.
    """

    address: ChatAddress
    event_key: str
    text: str
    sender: Sender = field(default_factory=Sender)
    sent_at: datetime | None = None
    message_id: str = ""
    chat_title: str = ""
    addressed: bool = False
    edits: str = ""
    reply_to: str = ""
    quote: str = ""
    forwarded_from: str = ""
    attachments: tuple[Attachment, ...] = ()
    part: Part = Part.WHOLE
    metadata: dict[str, Any] = field(default_factory=dict)


# R7: parts that follow each other within this pause are one message, but nobody waits longer than the cap.
PART_PAUSE = timedelta(seconds=1)
PART_CAP = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class OutboundPart:
    """What one request to the platform carries. `text` is Markdown; the channel renders it."""

    text: str
    plain: bool = False


@dataclass(frozen=True, slots=True)
class OutboundMessage:
    """One part on its way out, as `Channel.send` gets it."""

    address: ChatAddress
    part: OutboundPart
    reply_to: str = ""
