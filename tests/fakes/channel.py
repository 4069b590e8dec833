"""A platform that exists only in the tests: it can delay, refuse, time out and die."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, ClassVar

from django.http import HttpRequest

from channels_app.channels import ChannelConfig, SendError
from channels_app.messages import InboundMessage, OutboundMessage
from channels_app.splitting import split_text

Step = SendError | Exception | Callable[[OutboundMessage], None]


class FakeChannel:
    """Keeps what it was sent. `plan` says how the next sends go: an exception is raised, a function called before."""

    class Config(ChannelConfig):
        text_limit: int = 4000

    instances: ClassVar[dict[str, "FakeChannel"]] = {}

    def __init__(self, name: str, config: Config) -> None:
        self.name = name
        self.config = config
        self.sent: list[OutboundMessage] = []
        self.plan: deque[Step] = deque()
        self.instances[name] = self

    @classmethod
    def reset_all(cls) -> None:
        for channel in cls.instances.values():
            channel.sent.clear()
            channel.plan.clear()

    def verify(self, request: HttpRequest) -> None:
        return None

    def parse(self, event: Mapping[str, Any]) -> InboundMessage | None:
        return None

    async def listen(self) -> AsyncIterator[InboundMessage]:
        return
        yield

    def split(self, text: str) -> list[str]:
        return split_text(text, self.config.text_limit)

    def send(self, message: OutboundMessage) -> str:
        step = self.plan.popleft() if self.plan else None
        if isinstance(step, Exception):
            raise step
        if step is not None:
            step(message)
        self.sent.append(message)
        return f"{self.name}-{len(self.sent)}"
