"""What runs on one machine, and how each program's health shows in the database."""

import math
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial, wraps
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import connections
from django.utils import timezone
from django_q.models import OrmQ

from channels_app.clock import DbNow
from channels_app.models import Delivery, DeliveryState
from nahida.ops.health import SILENT_AFTER_S, heartbeats, stalled_for
from nahida.ops.models import Operation
from nahida.ops.supervisor import Program, stall_reason
from sessions_app.lanes import LEASE
from sessions_app.models import Lane

P = ParamSpec("P")
R = TypeVar("R")

# What a cluster may need on a busy machine until it takes its first task: restarted before, it would never come to it.
SLOW_START_S = 60.0
MOST_UNACKNOWLEDGED = 20  # more than workers die of


def programs(*, host: str, port: int) -> Iterator[Program]:
    manage = [sys.executable, str(settings.BASE_DIR / "manage.py")]
    # Settings read these: what site.url is, and how connections are kept.
    env = {"NAHIDA_HOST": host, "NAHIDA_PORT": str(port)}
    if settings.NAHIDA.local_model:
        yield Program("local_model", [*manage, "local_model"], env)
    yield Program(
        "serve", [*manage, "serve"], env | {"NAHIDA_ROLE": "web"}, sick=_apart(serve_sickness)
    )
    yield Program(
        "qcluster",
        [*manage, "qcluster"],
        env | {"NAHIDA_ROLE": "worker"},
        sick=_apart(cluster_sickness),
        started=_apart(forget_wake_ups),
    )


def forget_wake_ups() -> None:
    """Have all that is due woken again: the cluster before may have died with the wake-ups in hand."""
    Lane.objects.filter(wake_at__isnull=False, woken_at__isnull=False).update(woken_at=None)
    waiting = Delivery.objects.filter(state=DeliveryState.PENDING, woken_at__isnull=False)
    waiting.update(woken_at=None)
    Operation.objects.filter(wake_at__isnull=False).update(woken_at=None)


def serve_sickness(uptime: float) -> str:
    return _sickness(uptime, beat="serve", waiting=lambda: 0.0)


def cluster_sickness(uptime: float) -> str:
    """Say why the workers must be restarted, or "". Nothing can be told while all are at work."""
    if busy_workers() >= settings.NAHIDA.workers.count:
        return ""
    if (kept := unacknowledged(uptime)) > MOST_UNACKNOWLEDGED:
        return f"{kept} finished tasks are still in the queue"
    return _sickness(uptime, beat="qcluster", waiting=partial(unclaimed_for, uptime))


def unclaimed_for(uptime: float) -> float:
    """Return for how many seconds work has waited while no worker took any.

    More of it than they can do is no stall, nor is a cluster that has not yet begun.
    """
    waiting = stalled_for()
    if not waiting:
        return 0.0
    idle = seconds_since_claim()
    return min(waiting, idle if idle < uptime else uptime - SLOW_START_S)


def seconds_since_claim() -> float:
    """Return the seconds since a worker took, or renewed, a lane that it has let go again. One query."""
    free = Lane.objects.filter(token=None, lease_until__isnull=False).annotate(now=DbNow())
    last = free.order_by("-lease_until").values_list("lease_until", "now").first()
    if last is None:
        return math.inf
    lease_until, now = last
    assert lease_until is not None  # as filtered
    return max(0.0, float((now - lease_until + LEASE).total_seconds()))


def unacknowledged(uptime: float) -> int:
    """Count the tasks that this cluster took so long ago that they must have ended.

    They pile up, and run again and again, when the cluster's monitor was killed: the one that
    follows it never gets a result. A killed worker leaves one of them. One query.
    """
    if settings.REDIS_URL:
        return 0  # taken is gone
    # A task that is taken is locked until it may be tried again.
    until = timezone.now() + timedelta(seconds=settings.Q_CLUSTER["retry"])
    longest = timedelta(seconds=settings.TASK_TIMEOUT + 60)
    taken = OrmQ.objects.filter(
        lock__gt=until - timedelta(seconds=uptime), lock__lt=until - longest
    )
    return int(taken.count())


def busy_workers() -> int:
    """Count the live leases: each is held by a worker that works. Three queries."""
    alive = {"token__isnull": False, "lease_until__gt": DbNow()}
    sending = (DeliveryState.CLAIMED, DeliveryState.SENDING)
    return (
        Lane.objects.filter(**alive).count()
        + Delivery.objects.filter(state__in=sending, **alive).count()
        + Operation.objects.filter(**alive).count()
    )


def _sickness(uptime: float, *, beat: str, waiting: Callable[[], float]) -> str:
    return stall_reason(
        uptime,
        waiting=waiting,
        silent=partial(silent_for, beat),
        stall_s=settings.NAHIDA.workers.stall_s,
        silent_s=SILENT_AFTER_S,
    )


def silent_for(name: str) -> float:
    """Return the seconds since the last heartbeat of that name."""
    return next((beat.age_s for beat in heartbeats() if beat.name == name), math.inf)


def _apart(ask: Callable[P, R]) -> Callable[P, R]:
    """Let the supervisor's threads ask without keeping a connection each."""

    @wraps(ask)
    def closing(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return ask(*args, **kwargs)
        finally:
            connections.close_all()

    return closing
