"""A site that listens to a fake protocol end: the listener runs while a test lets it, the workers are called by hand."""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar
from unittest import mock

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.test import TransactionTestCase
from django.test.utils import override_settings

from channels_app import channels, listening
from channels_app.addresses import ChatAddress
from channels_app.channels import ChannelConfig
from channels_app.milky import listener
from channels_app.milky.config import Config
from channels_app.models import ChannelState, Delivery
from memory_app.models import MemoryTurn, Role
from nahida.ops import listeners
from tests.base import Stage
from tests.fakes.milky.end import PATIENCE_S, MilkyEnd

ALICE = ChatAddress("qq", "private", "10001")
GROUP = ChatAddress("qq", "group", "10001")  # of the same number
SECRET = "the-end-s-own-token"
LOOK_EVERY_S = 0.01

Step = Callable[[], object]


class MilkySite(Stage, TransactionTestCase):
    """One account, open to everybody, behind a protocol end that bears any pace."""

    mode: ClassVar = "events"
    prefix: ClassVar = "/milky"

    def setUp(self) -> None:
        super().setUp()
        self.end = self.enterContext(MilkyEnd(prefix=self.prefix, webhook_token=SECRET))
        self.world = self.end.world
        self.configure(qq=self.config())
        self.hasten(listeners, FIRST_PAUSE_S=0.01, LONGEST_PAUSE_S=0.01, STAND_BY_S=0.01)
        self.hasten(listener, LOGIN_EVERY_S=0.01, WATCH_EVERY_S=0.01)

    def hasten(self, module: Any, **constants: float) -> None:
        """Let what takes its time be quick."""
        for name, value in constants.items():
            self.enterContext(mock.patch.object(module, name, value))

    def config(self, end: MilkyEnd | None = None, **changes: Any) -> Config:
        end = end or self.end
        values: dict[str, Any] = {
            "kind": "milky",
            "base_url": end.base_url,
            "token": end.token,
            "mode": self.mode,
            "secret": SECRET,
            "open": True,
            "pace_s": 0,
        }
        return Config.model_validate(values | changes)

    def configure(self, **accounts: ChannelConfig) -> None:
        """Add channels to those of the tests' configuration."""
        self.enterContext(override_settings(CHANNELS={**settings.CHANNELS, **accounts}))
        self.begin_anew()
        self.addCleanup(self.begin_anew)

    def begin_anew(self) -> None:
        """Know what a process knows that has just started."""
        channels._built.cache_clear()
        listening._noted_at.clear()

    def hear(self, *steps: Step) -> None:
        """Let the listeners run, from the moment they listen, until each step in turn is no longer False."""
        first = (self.listens,) if self.mode == "events" else ()
        self._let_hear(*first, *steps)

    def hear_status(self, status: str) -> None:
        """Let the listeners run until the channel shows that status."""
        self._let_hear(self.has_status(status))

    def _let_hear(self, *steps: Step) -> None:
        async def run() -> None:
            stop = asyncio.Event()
            listener = asyncio.create_task(listeners.listen(stop))
            try:
                async with asyncio.timeout(PATIENCE_S):
                    for step in steps:
                        while await sync_to_async(step)() is False:  # noqa: ASYNC110 - rows tell nobody
                            await asyncio.sleep(LOOK_EVERY_S)
            finally:
                stop.set()
                await listener

        self._opened = len(self.end.opened)
        async_to_sync(run)()

    def listens(self) -> bool:
        """A stream was opened since `hear` began."""
        return any(one.status == 200 for one in self.end.opened[self._opened :])

    def has_heard(self, number: int) -> Step:
        """A step that waits for so many turns of people."""
        return lambda: MemoryTurn.objects.filter(role=Role.USER).count() >= number

    def has_status(self, status: str) -> Step:
        return lambda: ChannelState.objects.filter(channel="qq", status=status).exists()

    def state(self) -> ChannelState:
        return ChannelState.objects.get(channel="qq")

    def said(self, address: ChatAddress) -> list[str]:
        """Return what people said in a chat, as it was stored, in order."""
        return [text for role, text, _ in self.lines(address) if role == Role.USER]

    def deliveries(self, address: ChatAddress) -> list[Delivery]:
        return list(Delivery.objects.filter(address=str(address)).order_by("pk"))
