"""The joint every platform is built on, and the look-up from a channel's name to its instance.

A channel knows wire and grammar, never sessions or models: what it learns and cannot act on it says in `SendError`.
"""

from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string
from pydantic import BaseModel, ConfigDict, Field

from channels_app.addresses import ChatAddress
from channels_app.messages import (
    Attachment,
    InboundMessage,
    OutboundMessage,
    OutboundPart,
    WireEvent,
)

if TYPE_CHECKING:  # the configuration reads this module before Django is set up
    from django.http import HttpRequest

# To add a platform: its folder here, with config.Config and channel.Channel, its page in docs/, its samples in tests/.
KINDS: Mapping[str, str] = {
    "milky": "channels_app.milky",
    "telegram": "channels_app.telegram",
}


def config_path(kind: str) -> str:
    """Return where the configuration of a kind is. Another kind is the dotted path of a channel class.

    It is read before Django is set up, so its module may not know models; the channel's may.
    """
    return f"{KINDS[kind]}.config.Config" if kind in KINDS else f"{kind}.Config"


def _class_path(kind: str) -> str:
    return f"{KINDS[kind]}.channel.Channel" if kind in KINDS else kind


class ChannelConfig(BaseModel):
    """What every channel instance may say of itself; a kind's own class adds its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    open: bool = Field(default=False, description="every chat is allowed at once, without pairing")

    @property
    def account(self) -> str:
        """Return what tells two accounts of a platform apart, "" if nothing does."""
        return ""


class Refused(StrEnum):
    """What a platform may object to though it would take the rest of a message."""

    MARKUP = "markup"
    REPLY = "reply"
    THREAD = "thread"


class SendError(Exception):
    """The platform did not take a message.

    `permanent`: this message will never be taken. `unreachable`: nor will any other to this chat. `not_sent`: the request
    never left, or the platform says that it was not accepted, so trying again cannot double it. None of these: nobody knows.
    `refused`: it would be taken without that. `migrated_to` is the chat's new address. `retry_after` is in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        unreachable: bool = False,
        not_sent: bool = False,
        refused: Refused | None = None,
        retry_after: float | None = None,
        migrated_to: ChatAddress | None = None,
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.unreachable = unreachable
        self.not_sent = not_sent or retry_after is not None
        self.refused = refused
        self.retry_after = retry_after
        self.migrated_to = migrated_to


class ListenError(Exception):
    """A channel cannot listen for now. `status` is a word for its state, the message says what to do about it.

    `wait_s` is how long to leave it alone; None: for a growing while.
    """

    def __init__(self, message: str, *, status: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.wait_s = wait_s


class FetchError(Exception):
    """A file cannot be had; `permanent`: nor later."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class VerificationError(Exception):
    """A webhook request that does not prove where it comes from."""


class Channel(Protocol):
    """One configured account on one platform."""

    def __init__(self, name: str, config: Any) -> None: ...

    def verify(self, request: "HttpRequest") -> None:
        """Raise `VerificationError` unless a webhook request is genuine."""

    def parse(self, event: Mapping[str, Any]) -> WireEvent:
        """Read one wire event. Pure, and never raises on odd input."""

    def complete(self, message: InboundMessage) -> InboundMessage:
        """Add what the wire event left out, such as the sender's role. May ask the platform; never raises."""

    def listen(self, commands: Mapping[str, str]) -> AsyncIterator[WireEvent]:
        """Yield what happens for ever. Asking for the next one says that the last one is stored. Raises `ListenError`.

        `commands` are those a person may give here, each with its help.
        """

    def split(self, text: str) -> list[OutboundPart]:
        """Cut a Markdown text into parts that one request each carries, none of them blank."""

    def pace_s(self, address: ChatAddress) -> float:
        """Return how many seconds to leave between two parts to one chat."""

    def send(self, message: OutboundMessage) -> str:
        """Send one part and return the platform's message id. Raises `SendError`."""

    def show_working(self, address: ChatAddress, message_id: str) -> float | None:
        """Show that a message is being answered; return after how many seconds to show it again. Never raises."""

    def fetch(self, attachment: Attachment, *, limit: int) -> bytes:
        """Download a file of at most `limit` bytes. Raises `FetchError`."""


class UnknownChannelError(LookupError):
    """No channel of that name is configured."""


@cache
def _built(name: str) -> Channel:
    config: ChannelConfig = settings.CHANNELS[name]
    channel: Channel = import_string(_class_path(config.kind))(name, config)
    return channel


def get_channel(name: str) -> Channel:
    if name not in settings.CHANNELS:
        known = ", ".join(sorted(settings.CHANNELS)) or "none"
        raise UnknownChannelError(f'no channel "{name}" is configured (configured: {known})')
    return _built(name)
