"""A QQ account behind a Milky protocol end: how it is heard, by a stream or a webhook, and how it is written to."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from django.utils.crypto import constant_time_compare

from channels_app.addresses import ChatAddress
from channels_app.channels import SendError, VerificationError
from channels_app.messages import (
    Attachment,
    ChannelNews,
    InboundMessage,
    OutboundMessage,
    OutboundPart,
    Skipped,
    WireEvent,
)
from channels_app.milky import files, inbound, lookups, outbound
from channels_app.milky.client import MilkyClient
from channels_app.milky.config import Config
from channels_app.milky.listener import Listener
from channels_app.milky.segments import number

if TYPE_CHECKING:
    from django.http import HttpRequest

logger = logging.getLogger(__name__)


class Channel:
    def __init__(self, name: str, config: Config) -> None:
        self.name = name
        self.config = config
        self.client = MilkyClient(base_url=config.base_url, token=config.token.get_secret_value())
        self._self_id: int | None = None

    def verify(self, request: "HttpRequest") -> None:
        secret = self.config.secret.get_secret_value()
        if self.config.mode != "webhook" or not secret:
            raise VerificationError("this account is listened to, it takes no webhook")
        if not constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {secret}"):
            raise VerificationError("the bearer token is missing or wrong")

    def parse(self, event: Mapping[str, Any]) -> WireEvent:
        """Read an event of this account. The first one in a process may ask who that is."""
        self_id = number(event, "self_id")
        if self_id is not None and self_id != self._account(expected=self_id):
            return Skipped(f"an event of the account {self_id}, which is not logged in here")
        return inbound.parse(event, channel=self.name)

    def complete(self, message: InboundMessage) -> InboundMessage:
        return lookups.completed(message, self._ask)

    async def listen(self, commands: Mapping[str, str]) -> AsyncIterator[WireEvent]:
        async with self.client.listening() as line:
            listener = Listener(self.name, self.config, line, self.parse)
            is_offline = False
            while True:
                async for news in listener.log_in(is_told=is_offline):
                    yield news
                self._self_id = listener.self_id
                hear = listener.hear if self.config.mode == "events" else listener.watch
                async with aclosing(hear()) as events:
                    async for event in events:
                        yield event
                        is_offline = isinstance(event, ChannelNews) and event.status == "offline"
                        if is_offline:
                            break

    def split(self, text: str) -> list[OutboundPart]:
        return outbound.split(text, limit=self.config.text_limit)

    def pace_s(self, address: ChatAddress) -> float:
        return self.config.pace_s

    def send(self, message: OutboundMessage) -> str:
        request = outbound.request(message)
        sent = self.client.call(request.api, **request.parameters)
        return str(sent.get("message_seq") or sent.get("file_id") or "")

    def show_working(self, address: ChatAddress, message_id: str) -> float | None:
        """QQ has no typing sign; a group's message can carry a face instead, once."""
        face = self.config.seen_reaction
        try:
            if seen := outbound.reaction(address, message_id, face=face):
                self.client.call(seen.api, **seen.parameters)
        except SendError as error:
            logger.warning("channel %s: no sign that it was seen: %s", self.name, error)
        return None

    def fetch(self, attachment: Attachment, *, limit: int) -> bytes:
        return files.fetch(self.client, attachment, limit=limit)

    def _ask(self, api: str, **params: Any) -> Mapping[str, Any]:
        """Call an API whose answer is worth having, and no more than that."""
        try:
            return self.client.call(api, **params)
        except SendError as error:
            logger.warning("channel %s: %s: %s", self.name, api, error)
            return {}

    def _account(self, *, expected: int) -> int:
        """Return who is logged in: asked again if it is not who is expected, believed if nobody answers."""
        if self._self_id != expected and self.config.mode == "webhook":
            self._self_id = number(self._ask("get_login_info"), "uin") or self._self_id
        return self._self_id or expected
