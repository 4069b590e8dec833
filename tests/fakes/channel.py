"""A platform that exists only in the tests: it can delay, refuse, time out and die."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from queue import SimpleQueue
from typing import Any, ClassVar

from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from channels_app import media
from channels_app.addresses import ChatAddress
from channels_app.channels import ChannelConfig, FetchError, SendError, VerificationError
from channels_app.messages import (
    Attachment,
    InboundMessage,
    OutboundMessage,
    OutboundPart,
    Skipped,
    WireEvent,
)
from channels_app.splitting import split_text

Step = SendError | Exception | Callable[[OutboundMessage], None]


class FakeChannel:
    """Keeps what it was sent. `plan` says how the next sends go: an exception is raised, a function called before."""

    class Config(ChannelConfig):
        text_limit: int = 4000
        secret: str = "knock-knock"

    instances: ClassVar[dict[str, "FakeChannel"]] = {}

    def __init__(self, name: str, config: Config) -> None:
        self.name = name
        self.config = config
        self.sent: list[OutboundMessage] = []
        self.plan: deque[Step] = deque()
        self.pace = 0.0
        self.sent_files: list[tuple[str, str, bytes]] = []  # kind, name and content
        self.files: dict[str, bytes] = {}  # that it can be asked for, by platform_id
        self.fetched: list[str] = []
        self.fetch_plan: deque[Exception | Callable[[], object] | None] = deque()
        self.worked_on: SimpleQueue[tuple[ChatAddress, str]] = SimpleQueue()
        self.instances[name] = self

    @classmethod
    def reset_all(cls) -> None:
        for channel in cls.instances.values():
            channel.sent.clear()
            channel.plan.clear()
            channel.pace = 0.0
            channel.sent_files.clear()
            channel.files.clear()
            channel.fetched.clear()
            channel.fetch_plan.clear()
            channel.worked_on = SimpleQueue()

    def verify(self, request: HttpRequest) -> None:
        if not constant_time_compare(request.headers.get("X-Fake-Secret", ""), self.config.secret):
            raise VerificationError("the secret header is missing or wrong")

    def parse(self, event: Mapping[str, Any]) -> WireEvent:
        """Read {"chat": "<type>:<id>", "id": ..., "text": ...}; anything else concerns nobody."""
        match event:
            case {"chat": str(chat), "id": str(id_), "text": str(text)}:
                target_type, _, target_id = chat.partition(":")
                address = ChatAddress(self.name, target_type, target_id)
                return InboundMessage(address, event_key=id_, text=text, addressed=True)
        return Skipped("not an event of this platform")

    def complete(self, message: InboundMessage) -> InboundMessage:
        return message

    async def listen(self, commands: Mapping[str, str]) -> AsyncIterator[WireEvent]:
        return
        yield

    def split(self, text: str) -> list[OutboundPart]:
        return [OutboundPart(part) for part in split_text(text, self.config.text_limit)]

    def pace_s(self, address: ChatAddress) -> float:
        return self.pace

    def send(self, message: OutboundMessage) -> str:
        part = message.part
        file = (part.file_kind, part.file_name, media.read(part.file)) if part.file else None
        step = self.plan.popleft() if self.plan else None
        if isinstance(step, Exception):
            raise step
        if step is not None:
            step(message)
        self.sent.append(message)
        if file is not None:
            self.sent_files.append(file)
        return f"{self.name}-{len(self.sent)}"

    def show_working(self, address: ChatAddress, message_id: str) -> float | None:
        self.worked_on.put((address, message_id))
        return None

    def fetch(self, attachment: Attachment, *, limit: int) -> bytes:
        self.fetched.append(attachment.platform_id)
        step = self.fetch_plan.popleft() if self.fetch_plan else None
        if isinstance(step, Exception):
            raise step
        if step is not None:
            step()
        content = self.files.get(attachment.platform_id)
        if content is None:
            raise FetchError("no such file", permanent=True)
        if len(content) > limit:
            raise FetchError(f"larger than {media.spoken_size(limit)}", permanent=True)
        return content
