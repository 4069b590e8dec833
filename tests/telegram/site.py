"""A site that a fake Telegram talks to: the listener runs when a test lets it hear, the workers are called by hand."""

import asyncio
from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.core.cache import cache
from django.test import TransactionTestCase
from django.test.utils import override_settings
from django.utils import timezone

from channels_app import channels, listening
from channels_app.addresses import ChatAddress
from channels_app.channels import ChannelConfig
from channels_app.messages import PART_CAP
from channels_app.models import ChannelState
from channels_app.telegram.config import Config
from nahida.ops import listeners
from sessions_app.models import Lane
from tests.base import Stage
from tests.telegram.stage import TelegramCase

LIN = ChatAddress("telegram", "private", "5550001")
SECRET = "Right_secret-1"
PATIENCE_S = 20
LOOK_EVERY_S = 0.01


class TelegramSite(Stage, TelegramCase, TransactionTestCase):
    """One bot, open to everybody, on a Telegram that bears any pace."""

    mode = "polling"

    def setUp(self) -> None:
        super().setUp()
        self.configure(telegram=self.config(self.bot))

    def config(self, bot: Any, **changes: Any) -> Config:
        values: dict[str, Any] = {
            "kind": "telegram",
            "token_env": "TOKEN",
            "token": bot.token,
            "mode": self.mode,
            "secret": SECRET,
            "base_url": self.server.base_url,
            "open": True,
            "private_pace_s": 0,
            "group_pace_s": 0,
        }
        return Config.model_validate(values | changes)

    def configure(self, **bots: ChannelConfig) -> None:
        """Add channels to those of the tests' configuration."""
        self.enterContext(override_settings(CHANNELS={**settings.CHANNELS, **bots}))
        self.forget_channels()
        self.addCleanup(self.forget_channels)

    def forget_channels(self) -> None:
        """Begin anew, as a process does that starts."""
        cache.clear()
        channels._built.cache_clear()
        listening._noted_at.clear()

    def hear(self, until: Callable[[], object] | None = None) -> None:
        """Let the listeners run until Telegram has nothing more to tell, or until something else is so."""
        is_done = sync_to_async(until or self.all_told)

        async def run() -> None:
            stop = asyncio.Event()
            listener = asyncio.create_task(listeners.listen(stop))
            try:
                async with asyncio.timeout(PATIENCE_S):
                    while not await is_done():  # noqa: ASYNC110 - rows tell nobody
                        await asyncio.sleep(LOOK_EVERY_S)
            finally:
                stop.set()
                await listener

        async_to_sync(run)()

    def all_told(self) -> bool:
        """A poll waits, and nothing is left that was not confirmed."""
        return self.bot.waiting == 1 and not self.bot.updates

    def state(self, channel: str = "telegram") -> ChannelState:
        return ChannelState.objects.get(channel=channel)

    def hear_status(self, status: str) -> None:
        """Let the listeners run until the channel says how it fares."""
        self.hear(lambda: self.has_status(status))

    def has_status(self, status: str) -> bool:
        return ChannelState.objects.filter(channel="telegram", status=status).exists()

    def pass_the_pause(self) -> None:
        """Let the moment pass for which the parts of a message wait for each other."""
        Lane.objects.filter(wake_at__isnull=False).update(wake_at=timezone.now() - PART_CAP)
