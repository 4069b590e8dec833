"""A channel's listener: started again when it breaks, every message stored before the next is asked for."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import ClassVar

from asgiref.sync import async_to_sync, sync_to_async
from django.test import TransactionTestCase, override_settings

from channels_app.addresses import ChatAddress
from channels_app.channels import ChannelConfig
from channels_app.messages import InboundMessage
from channels_app.models import ChannelState, InboundEvent
from nahida.ops import listeners
from tests.base import message

BREAKING = ChannelConfig(kind="tests.ops.test_listeners.BreakingChannel", open=True)


class BreakingChannel:
    """Breaks at the first start; the second time it yields two messages, and looks what became of the first."""

    starts: ClassVar[int] = 0
    stored: ClassVar[list[int]] = []
    heard: ClassVar[asyncio.Event]

    def __init__(self, name: str, config: ChannelConfig) -> None:
        self.name = name

    def complete(self, message: InboundMessage) -> InboundMessage:
        return message

    async def listen(self, commands: Mapping[str, str]) -> AsyncIterator[InboundMessage]:
        BreakingChannel.starts += 1
        if BreakingChannel.starts == 1:
            raise ConnectionError("the platform hung up")
        for number in (1, 2):
            address = ChatAddress(self.name, "private", "10001")
            yield message(address, "hello", event_key=f"breaking-{number}")
            self.stored.append(await InboundEvent.objects.filter(channel=self.name).acount())
        self.heard.set()
        await asyncio.Event().wait()


@override_settings(CHANNELS={"breaking": BREAKING})
class ListenerTests(TransactionTestCase):
    def test_it_starts_again_and_stores_before_it_asks_for_more(self) -> None:
        states: list[str] = []

        async def listen() -> None:
            BreakingChannel.heard = asyncio.Event()
            stop = asyncio.Event()
            listening = asyncio.create_task(listeners.listen(stop))
            await BreakingChannel.heard.wait()
            states.append(await sync_to_async(self.state)())
            stop.set()
            await listening

        async_to_sync(listen)()

        assert BreakingChannel.stored == [1, 2]
        assert states == ["listening"]

    def state(self) -> str:
        return ChannelState.objects.get(channel="breaking").status
