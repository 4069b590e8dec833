"""A channel's listener: one process at a time, started again when it breaks, every event stored before the next is asked for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import ClassVar
from unittest import mock

from asgiref.sync import async_to_sync, sync_to_async
from django.db.models import F
from django.test import TransactionTestCase, override_settings

from channels_app import listening
from channels_app.addresses import ChatAddress
from channels_app.channels import ChannelConfig, ListenError, get_channel
from channels_app.messages import ChannelNews, InboundMessage, WireEvent
from channels_app.models import ChannelState, InboundEvent
from nahida.agent import slash
from nahida.ops import listeners
from tests.base import message

HEARD = ChannelConfig(kind="tests.ops.test_listeners.HeardChannel", open=True)
Plan = Callable[["HeardChannel"], AsyncIterator[WireEvent]]


class HeardChannel:
    """Does at each start what the test planned for it."""

    plan: ClassVar[list[Plan]] = []
    commands: ClassVar[Mapping[str, str]] = {}
    open: ClassVar[int] = 0
    most_open: ClassVar[int] = 0

    def __init__(self, name: str, config: ChannelConfig) -> None:
        self.name = name

    def complete(self, message: InboundMessage) -> InboundMessage:
        return message

    async def listen(self, commands: Mapping[str, str]) -> AsyncIterator[WireEvent]:
        cls = HeardChannel
        cls.commands = commands
        cls.open += 1
        cls.most_open = max(cls.open, cls.most_open)
        try:
            async for event in self.plan.pop(0)(self):
                yield event
        finally:
            cls.open -= 1


def hello(channel: HeardChannel, number: int = 1) -> InboundMessage:
    address = ChatAddress(channel.name, "private", "10001")
    return message(address, "hello", event_key=f"heard-{number}")


@override_settings(CHANNELS={"heard": HEARD})
class ListenerTests(TransactionTestCase):
    def setUp(self) -> None:
        HeardChannel.open = HeardChannel.most_open = 0
        listening._noted_at.clear()
        get_channel("heard")
        for constant in ("FIRST_PAUSE_S", "STAND_BY_S", "RENEW_EVERY_S"):
            patch = mock.patch.object(listeners, constant, 0.01)
            patch.start()
            self.addCleanup(patch.stop)

    def listen(self, *plan: Plan, until: Callable[[], Awaitable[object]]) -> None:
        """Run the listeners until something has happened, which a plan says by an event."""
        HeardChannel.plan = list(plan)

        async def run() -> None:
            stop = asyncio.Event()
            listener = asyncio.create_task(listeners.listen(stop))
            await until()
            stop.set()
            await listener

        async_to_sync(run)()

    def state(self) -> ChannelState:
        return ChannelState.objects.get(channel="heard")

    def test_it_starts_again_and_stores_before_it_asks_for_more(self) -> None:
        heard = asyncio.Event()
        stored: list[int] = []

        async def break_down(channel: HeardChannel) -> AsyncIterator[WireEvent]:
            yield ChannelNews("connecting")
            raise ConnectionError("the platform hung up")

        async def speak_twice(channel: HeardChannel) -> AsyncIterator[WireEvent]:
            for number in (1, 2):
                yield hello(channel, number)
                stored.append(await InboundEvent.objects.filter(channel="heard").acount())
            heard.set()
            await asyncio.Event().wait()

        self.listen(break_down, speak_twice, until=heard.wait)

        self.assertEqual(stored, [1, 2])
        self.assertEqual((self.state().status, self.state().error), ("listening", ""))
        self.assertIn("the platform hung up", self.state().detail["last_error"])
        self.assertIsNotNone(self.state().last_event_at)

    def test_it_shows_why_it_cannot_listen_and_tries_again(self) -> None:
        seen: list[tuple[str, str]] = []
        heard = asyncio.Event()

        async def refuse(channel: HeardChannel) -> AsyncIterator[WireEvent]:
            yield ChannelNews("connecting")
            raise ListenError("another program polls: stop it", status="conflict", wait_s=0)

        async def look(channel: HeardChannel) -> AsyncIterator[WireEvent]:
            state = await sync_to_async(self.state)()
            seen.append((state.status, state.error))
            yield ChannelNews("polling")
            heard.set()
            await asyncio.Event().wait()

        self.listen(refuse, look, until=heard.wait)

        self.assertEqual(seen, [("conflict", "another program polls: stop it")])
        self.assertEqual((self.state().status, self.state().error), ("polling", ""))

    def pauses(self, *, breaks: int) -> list[float]:
        """Return how long it waited after each time a listener heard something and broke."""
        heard = asyncio.Event()
        slept: list[float] = []
        real_sleep = asyncio.sleep

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            await real_sleep(0)

        async def break_down(channel: HeardChannel) -> AsyncIterator[WireEvent]:
            yield hello(channel)
            raise ConnectionError("the platform hung up")

        async def stay(channel: HeardChannel) -> AsyncIterator[WireEvent]:
            heard.set()
            await asyncio.Event().wait()
            yield hello(channel)

        with (
            mock.patch.object(listeners, "FIRST_PAUSE_S", 4.0),
            mock.patch.object(asyncio, "sleep", sleep),
        ):
            self.listen(*[break_down] * breaks, stay, until=heard.wait)
        return [seconds for seconds in slept if seconds >= 4]

    def test_it_waits_longer_each_time_a_listener_breaks_soon_after_its_start(self) -> None:
        """Though it heard something: a platform that hangs up on everybody is not to be stormed."""
        self.assertEqual(self.pauses(breaks=5), [4, 8, 16, 30, 30])

    def test_it_waits_but_shortly_after_a_listener_that_ran_well(self) -> None:
        with mock.patch.object(listeners, "HEALTHY_S", 0.0):
            self.assertEqual(self.pauses(breaks=3), [4, 4, 4])

    def test_it_tells_the_channel_which_commands_there_are(self) -> None:
        started = asyncio.Event()

        async def start(channel: HeardChannel) -> AsyncIterator[WireEvent]:
            started.set()
            yield ChannelNews("nothing to hear")

        self.listen(start, until=started.wait)

        self.assertEqual(HeardChannel.commands, slash.HELP)
        self.assertIn("new", HeardChannel.commands)

    def test_it_lets_one_process_listen_and_the_next_take_over(self) -> None:
        started, taken_over = asyncio.Event(), asyncio.Event()

        async def first(channel: HeardChannel) -> AsyncIterator[WireEvent]:
            yield hello(channel)
            started.set()
            await asyncio.Event().wait()

        async def second(channel: HeardChannel) -> AsyncIterator[WireEvent]:
            taken_over.set()
            await asyncio.Event().wait()
            yield hello(channel, 2)

        HeardChannel.plan = [first, second]

        async def run() -> None:
            stops = [asyncio.Event(), asyncio.Event()]
            listener = asyncio.create_task(listeners.listen(stops[0]))
            await started.wait()
            other = asyncio.create_task(listeners.listen(stops[1]))
            stops[0].set()
            await listener
            await taken_over.wait()
            stops[1].set()
            await other

        async_to_sync(run)()

        self.assertEqual(HeardChannel.most_open, 1)
        self.assertIsNone(self.state().token)

    def test_it_stops_when_its_lease_is_another_process_s(self) -> None:
        """A process that slept longer than its lease must not read beside the one that took over."""
        closed, back = asyncio.Event(), asyncio.Event()

        async def lose(channel: HeardChannel) -> AsyncIterator[WireEvent]:
            yield hello(channel)
            await ChannelState.objects.aupdate(token="0" * 32)
            try:
                await asyncio.Event().wait()
            finally:
                closed.set()

        async def again(channel: HeardChannel) -> AsyncIterator[WireEvent]:
            back.set()
            await asyncio.Event().wait()
            yield hello(channel, 2)

        async def until() -> None:
            await closed.wait()
            self.assertFalse(back.is_set())
            expired = F("lease_until") - listening.LEASE * 2
            await ChannelState.objects.aupdate(lease_until=expired)
            await back.wait()

        self.listen(lose, again, until=until)

        self.assertEqual(HeardChannel.most_open, 1)
