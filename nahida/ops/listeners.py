"""The channels' listeners: one task each, every message stored before the next is asked for."""

import asyncio
import logging

from asgiref.sync import sync_to_async
from django.conf import settings
from django.utils import timezone

from channels_app.channels import get_channel
from channels_app.models import ChannelState
from nahida.agent.intake import accept

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0


async def listen(stop: asyncio.Event) -> None:
    """Run the listener of every configured channel until `stop` is set."""
    listeners = [asyncio.create_task(_keep_listening(name)) for name in settings.CHANNELS]
    await stop.wait()
    for listener in listeners:
        listener.cancel()
    await asyncio.gather(*listeners, return_exceptions=True)


async def _keep_listening(name: str) -> None:
    """Start a channel's listener again, after a growing pause, whenever it breaks."""
    pause = FIRST_PAUSE_S
    while True:
        try:
            async for message in get_channel(name).listen():
                await sync_to_async(accept)(message)
                await sync_to_async(_note)(name, error="")
                pause = FIRST_PAUSE_S
            return
        except Exception as error:
            logger.exception("channel %s", name)
            await sync_to_async(_note)(name, error=f"{type(error).__name__}: {error}"[:500])
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_S)


def _note(name: str, *, error: str) -> None:
    heard = {} if error else {"last_event_at": timezone.now()}
    status = "failing" if error else "listening"
    ChannelState.objects.update_or_create(
        channel=name, defaults={"status": status, "error": error, **heard}
    )
