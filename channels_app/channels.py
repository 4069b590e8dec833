"""The joint every platform is built on, and the look-up from a channel's name to its instance.

A channel knows wire and grammar, never sessions or models: what it learns and cannot act on it says in `SendError`.
"""

from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from django.conf import settings
from django.utils.module_loading import import_string
from pydantic import BaseModel, ConfigDict, Field

from channels_app.addresses import ChatAddress
from channels_app.messages import InboundMessage, OutboundMessage

if TYPE_CHECKING:  # the configuration reads this module before Django is set up
    from django.http import HttpRequest

# To add a platform: its folder beside this file, its class here, its page in docs/, its samples in tests/.
KINDS: Mapping[str, str] = {}


class ChannelConfig(BaseModel):
    """What every channel instance may say of itself; a kind's own class adds its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    open: bool = Field(default=False, description="every chat is allowed at once, without pairing")


class SendError(Exception):
    """The platform did not take a message.

    `permanent`: this message will never be taken. `unreachable`: nor will any other to this chat. `not_sent`: the request
    never left, or the platform says that it was not accepted, so trying again cannot double it. None of these: nobody knows.
    `migrated_to` is the chat's new address. `retry_after` is in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        unreachable: bool = False,
        not_sent: bool = False,
        refused_markup: bool = False,
        retry_after: float | None = None,
        migrated_to: ChatAddress | None = None,
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.unreachable = unreachable
        self.not_sent = not_sent or retry_after is not None
        self.refused_markup = refused_markup
        self.retry_after = retry_after
        self.migrated_to = migrated_to


class VerificationError(Exception):
    """A webhook request that does not prove where it comes from."""


class Channel(Protocol):
    """One configured account on one platform."""

    Config: ClassVar[type[ChannelConfig]]

    def __init__(self, name: str, config: Any) -> None: ...

    def verify(self, request: "HttpRequest") -> None:
        """Raise `VerificationError` unless a webhook request is genuine."""

    def parse(self, event: Mapping[str, Any]) -> InboundMessage | None:
        """Read one wire event; None if it concerns nobody. Pure, and never raises on odd input."""

    def listen(self) -> AsyncIterator[InboundMessage]:
        """Yield messages for ever. Asking for the next one says that the last one is stored."""

    def split(self, text: str) -> list[str]:
        """Cut a text into parts that one request each carries."""

    def send(self, message: OutboundMessage) -> str:
        """Send one part and return the platform's message id. Raises `SendError`."""


class UnknownChannelError(LookupError):
    """No channel of that name is configured."""


@cache
def _built(name: str) -> Channel:
    config: ChannelConfig = settings.CHANNELS[name]
    channel: Channel = import_string(KINDS.get(config.kind, config.kind))(name, config)
    return channel


def get_channel(name: str) -> Channel:
    if name not in settings.CHANNELS:
        known = ", ".join(sorted(settings.CHANNELS)) or "none"
        raise UnknownChannelError(f'no channel "{name}" is configured (configured: {known})')
    return _built(name)
