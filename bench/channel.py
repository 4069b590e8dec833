"""The channel of bench/platform.py: long polling in, one request a part out."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from channels_app import http
from channels_app.addresses import ChatAddress, account
from channels_app.channels import ChannelConfig, FetchError, SendError, VerificationError
from channels_app.messages import (
    Attachment,
    InboundMessage,
    OutboundMessage,
    OutboundPart,
    Sender,
)
from channels_app.splitting import split_text

if TYPE_CHECKING:
    from django.http import HttpRequest

WAIT_S = 10


class PlatformChannel:
    class Config(ChannelConfig):
        url: str

    def __init__(self, name: str, config: Config) -> None:
        self.name = name
        self.config = config

    def verify(self, request: "HttpRequest") -> None:
        raise VerificationError("this platform is polled")

    def parse(self, event: Mapping[str, Any]) -> InboundMessage:
        address = ChatAddress.parse(event["address"])
        return InboundMessage(
            address,
            event_key=str(event["id"]),
            text=event["text"],
            sender=Sender(account(self.name, "10001"), "Alice"),
            message_id=str(event["id"]),
            addressed=True,
        )

    def complete(self, message: InboundMessage) -> InboundMessage:
        return message

    async def listen(self, commands: Mapping[str, str]) -> AsyncIterator[InboundMessage]:
        offset = 0
        async with http.async_client(answer_s=WAIT_S + 10) as client:
            while True:
                params = {"offset": offset, "wait": WAIT_S}
                response = await client.get(f"{self.config.url}/updates", params=params)
                for event in response.raise_for_status().json():
                    yield self.parse(event)
                    offset = event["id"] + 1

    def split(self, text: str) -> list[OutboundPart]:
        return [OutboundPart(part) for part in split_text(text, 4000)]

    def pace_s(self, address: ChatAddress) -> float:
        return 0.0

    def send(self, message: OutboundMessage) -> str:
        body = {"address": str(message.address), "text": message.part.text}
        with http.sending() as client:
            response = client.post(f"{self.config.url}/send", json=body)
        if response.status_code != 200:
            raise SendError(f"status {response.status_code}")
        return str(response.json()["message_id"])

    def show_working(self, address: ChatAddress, message_id: str) -> float | None:
        return None

    def fetch(self, attachment: Attachment, *, limit: int) -> bytes:
        raise FetchError("this platform has no files", permanent=True)
