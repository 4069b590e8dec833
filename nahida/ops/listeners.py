"""The channels' listeners: one task each, every event stored before the next is asked for.

Several processes may run them; the channel's lease says which one reads, and the others stand by.
"""

import asyncio
import logging
import time
import uuid

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from channels_app import listening
from channels_app.channels import ListenError, get_channel
from channels_app.messages import ChannelNews, WireEvent
from nahida.agent import slash
from nahida.agent.receive import receive

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
HEALTHY_S = 60.0  # a listener that ran so long was not broken when it started
RENEW_EVERY_S = 5.0
STAND_BY_S = 2.0


async def listen(stop: asyncio.Event) -> None:
    """Run the listener of every configured channel until `stop` is set."""
    listeners = [asyncio.create_task(_keep_listening(name)) for name in settings.CHANNELS]
    await stop.wait()
    for listener in listeners:
        listener.cancel()
    await asyncio.gather(*listeners, return_exceptions=True)


async def _keep_listening(name: str) -> None:
    """Hear a channel while we hold its lease, and stand by while another process does."""
    token = uuid.uuid4()
    stands_by = False
    while True:
        try:
            if await sync_to_async(listening.claim)(name, token):
                stands_by = False
                if await _hear_under_lease(name, token):
                    return
                logger.warning("channel %s: the lease was lost", name)
            elif not stands_by:
                stands_by = True
                logger.info("channel %s: another process listens, this one stands by", name)
        except DatabaseError:
            logger.exception("channel %s: its lease cannot be asked for", name)
            await sync_to_async(close_old_connections)()
        await asyncio.sleep(STAND_BY_S)


async def _hear_under_lease(name: str, token: uuid.UUID) -> bool:
    """True when there is nothing to listen to, False when the lease was lost."""
    hearing = asyncio.create_task(_hear(name))
    renewing = asyncio.create_task(_renew(name, token))
    try:
        await asyncio.wait({hearing, renewing}, return_when=asyncio.FIRST_COMPLETED)
        return hearing.done()
    finally:
        hearing.cancel()
        renewing.cancel()
        await asyncio.gather(hearing, renewing, return_exceptions=True)
        await sync_to_async(listening.release)(name, token)


async def _renew(name: str, token: uuid.UUID) -> None:
    """Keep the lease; return when it is another's."""
    held = True
    while held:
        await asyncio.sleep(RENEW_EVERY_S)
        try:
            held = await sync_to_async(listening.renew)(name, token)
        except DatabaseError:  # it may be back before the lease ends
            logger.exception("channel %s: its lease cannot be renewed", name)
            await sync_to_async(close_old_connections)()


async def _hear(name: str) -> None:
    """Start a channel's listener again, after a growing pause or the one it asks for, whenever it breaks."""
    pause = FIRST_PAUSE_S
    while True:
        began = time.monotonic()
        is_well = False
        wait_s: float | None = None
        try:
            async for event in get_channel(name).listen(slash.HELP):
                if not is_well and not isinstance(event, ChannelNews):
                    await _note(name, ChannelNews("listening"))
                is_well = True
                await sync_to_async(receive)(name, event)
            return
        except ListenError as error:
            logger.warning("channel %s: %s", name, error)
            await _note(name, ChannelNews(error.status, str(error)))
            wait_s = error.wait_s
        except Exception as error:
            logger.exception("channel %s", name)
            await _note(name, ChannelNews("failing", f"{type(error).__name__}: {error}"))
        if time.monotonic() - began >= HEALTHY_S:
            pause = FIRST_PAUSE_S
        await asyncio.sleep(pause if wait_s is None else wait_s)
        pause = min(pause * 2, LONGEST_PAUSE_S)


async def _note(name: str, news: WireEvent) -> None:
    """Note why the listener broke, if the database can be reached: that may be the very reason."""
    await sync_to_async(close_old_connections)()  # a broken one would break every next message too
    try:
        await sync_to_async(receive)(name, news)
    except DatabaseError:
        logger.exception("noting how channel %s fares", name)
