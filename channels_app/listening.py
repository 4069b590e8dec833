"""Who reads a channel, and how it fares: the lease and the news on its `ChannelState`."""

import time
import uuid
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from channels_app.clock import DbNow
from channels_app.messages import ChannelNews
from channels_app.models import ChannelState

LEASE = timedelta(seconds=15)  # a process that was killed leaves its channels unheard for so long
NOTE_EVERY_S = 10.0  # a row written for each message would double what it costs to store one

_noted_at: dict[str, float] = {}


def claim(channel: str, token: uuid.UUID) -> bool:
    """Become the one process that reads a channel; False while another does."""
    ChannelState.objects.get_or_create(channel=channel)
    free = Q(token=None) | Q(lease_until__lt=DbNow())
    return _set_lease(Q(channel=channel) & free, token)


def renew(channel: str, token: uuid.UUID) -> bool:
    return _set_lease(Q(channel=channel, token=token), token)


def release(channel: str, token: uuid.UUID) -> None:
    ChannelState.objects.filter(channel=channel, token=token).update(token=None, lease_until=None)


def _set_lease(which: Q, token: uuid.UUID) -> bool:
    return bool(ChannelState.objects.filter(which).update(token=token, lease_until=DbNow() + LEASE))


def note(channel: str, news: ChannelNews) -> None:
    """Keep what a channel says of itself. Facts it does not repeat stay."""
    state, _ = ChannelState.objects.get_or_create(channel=channel)
    state.status = news.status
    state.error = news.error[:500]
    state.detail = {**state.detail, **news.detail}
    if news.error:
        state.detail["last_error"] = news.error[:500]
        state.detail["last_error_at"] = timezone.now().isoformat()
    state.save(update_fields=["status", "error", "detail", "updated_at"])


def note_heard(channel: str) -> None:
    """Note that something came in, every now and then."""
    now = time.monotonic()
    if now - _noted_at.get(channel, -NOTE_EVERY_S) < NOTE_EVERY_S:
        return
    _noted_at[channel] = now
    heard = {"last_event_at": timezone.now()}
    ChannelState.objects.update_or_create(channel=channel, defaults=heard)
