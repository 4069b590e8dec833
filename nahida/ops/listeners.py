"""The channels' listeners: one task each, every message stored before the next is asked for."""

import asyncio
import logging
import time

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from channels_app.channels import get_channel
from channels_app.models import ChannelState
from nahida.agent.intake import accept

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
NOTE_EVERY_S = 10.0  # a row written for each message would double what it costs to store one


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
        noted_at = -NOTE_EVERY_S
        try:
            async for message in get_channel(name).listen():
                await sync_to_async(accept)(message)
                pause = FIRST_PAUSE_S
                if (now := time.monotonic()) - noted_at >= NOTE_EVERY_S:
                    noted_at = now
                    await sync_to_async(_note_message)(name)
            return
        except Exception as error:
            logger.exception("channel %s", name)
            await sync_to_async(_note_failure)(name, error)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_S)


def _note_message(name: str) -> None:
    heard = {"status": "listening", "error": "", "last_event_at": timezone.now()}
    ChannelState.objects.update_or_create(channel=name, defaults=heard)


def _note_failure(name: str, error: Exception) -> None:
    """Note why the listener broke, if the database can be reached: that may be the very reason."""
    close_old_connections()  # a broken one would break every next message too
    failing = {"status": "failing", "error": f"{type(error).__name__}: {error}"[:500]}
    try:
        ChannelState.objects.update_or_create(channel=name, defaults=failing)
    except DatabaseError:
        logger.exception("noting how channel %s fares", name)
