"""What runs on one machine, and how each program's health shows in the database."""

import math
import sys
from collections.abc import Callable, Iterator
from functools import partial

from django.conf import settings
from django.db import connections

from channels_app.clock import DbNow
from channels_app.models import Delivery, DeliveryState
from nahida.ops.health import SILENT_AFTER_S, heartbeats, stalled_for
from nahida.ops.supervisor import Program, stall_reason
from sessions_app.models import Lane


def programs(*, host: str, port: int) -> Iterator[Program]:
    manage = [sys.executable, str(settings.BASE_DIR / "manage.py")]
    # Settings read these: what site.url is, and how connections are kept.
    env = {"NAHIDA_HOST": host, "NAHIDA_PORT": str(port)}
    if settings.NAHIDA.local_model:
        yield Program("local_model", [*manage, "local_model"], env)
    yield Program("serve", [*manage, "serve"], env | {"NAHIDA_ROLE": "web"}, sick=serve_sickness)
    yield Program(
        "qcluster", [*manage, "qcluster"], env | {"NAHIDA_ROLE": "worker"}, sick=cluster_sickness
    )


def serve_sickness(uptime: float) -> str:
    return _sickness(uptime, beat="serve", waiting=lambda: 0.0)


def cluster_sickness(uptime: float) -> str:
    """Say why the workers must be restarted, or "". Nothing can be told while all are at work."""
    if busy_workers() >= settings.NAHIDA.workers.count:
        connections.close_all()
        return ""
    return _sickness(uptime, beat="qcluster", waiting=stalled_for)


def busy_workers() -> int:
    """Count the live leases: each is held by a worker that works. Two queries."""
    alive = {"token__isnull": False, "lease_until__gt": DbNow()}
    sending = (DeliveryState.CLAIMED, DeliveryState.SENDING)
    return (
        Lane.objects.filter(**alive).count()
        + Delivery.objects.filter(state__in=sending, **alive).count()
    )


def _sickness(uptime: float, *, beat: str, waiting: Callable[[], float]) -> str:
    try:
        return stall_reason(
            uptime,
            waiting=waiting,
            silent=partial(silent_for, beat),
            stall_s=settings.NAHIDA.workers.stall_s,
            silent_s=SILENT_AFTER_S,
        )
    finally:
        connections.close_all()


def silent_for(name: str) -> float:
    """Return the seconds since the last heartbeat of that name."""
    return next((beat.age_s for beat in heartbeats() if beat.name == name), math.inf)
