"""What passes between a channel and the rest: what the wire brought, and one message out."""

from collections.abc import Mapping
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
    """A file of a message. `file` is its name in the media store, "" while it is only known to the platform.

    `kind` is image, voice, audio, video, sticker or file. `text` is what is known of what it shows, as "1280x960" or a sticker's emoji.
    `platform_id` is whatever its channel needs to download it; `size` is in bytes, None if the platform does not say.
    """

    kind: str
    text: str = ""
    file: str = ""
    platform_id: str = ""
    name: str = ""
    mime: str = ""
    size: int | None = None


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


@dataclass(frozen=True, slots=True)
class ChatMoved:
    """The platform gave a chat another address; whoever was there is there now."""

    old: ChatAddress
    new: ChatAddress


@dataclass(frozen=True, slots=True)
class ReachChanged:
    """A chat can no longer be written to, or again if `reason` is "".

    `is_muted`: it is still heard, so that a message from it says nothing about writing; `until` ends such a silence by itself.
    """

    address: ChatAddress
    reason: str = ""
    is_muted: bool = False
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChannelNews:
    """How a channel itself fares: a word for its state, what is wrong and the way out, and facts worth showing."""

    status: str
    error: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A wire event that concerns nobody here."""

    reason: str


WireEvent = InboundMessage | ChatMoved | ReachChanged | ChannelNews | Skipped

# R7: parts that follow each other within this pause are one message, but nobody waits longer than the cap.
PART_PAUSE = timedelta(seconds=1)
PART_CAP = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class OutboundPart:
    """What one request to the platform carries. `text` is as the channel's `split` made it, `markup` what it made beside it.

    `plain`: the markup was refused. `file` is a name in the media store, of `file_kind` image, voice or file; such a part has no text.
    """

    text: str
    plain: bool = False
    markup: list[dict[str, Any]] = field(default_factory=list)
    file: str = ""
    file_kind: str = ""
    file_name: str = ""
    file_mime: str = ""


@dataclass(frozen=True, slots=True)
class OutboundMessage:
    """One part on its way out, as `Channel.send` gets it."""

    address: ChatAddress
    part: OutboundPart
    reply_to: str = ""
