"""How the system fares, as facts: for the health pages, the dashboard and the supervisor."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Case, Count, F, When
from django.db.models.functions import Greatest
from redis import Redis
from redis.exceptions import RedisError

from channels_app import outbox
from channels_app.clock import DbNow
from channels_app.models import ChannelState, Delivery, DeliveryState
from memory_app.embedding import Status as VectorStatus
from memory_app.models import MemoryTurn
from nahida.agent import embeddings
from nahida.ops.models import Heartbeat
from sessions_app.models import Lane

SILENT_AFTER_S = 120  # without a heartbeat
REDIS_S = 2  # to connect, and to answer
NEEDED = ("ticker", "qcluster")  # whose heartbeats say that the system works


@dataclass(frozen=True, slots=True)
class Beat:
    name: str
    age_s: float
    detail: dict[str, Any]

    @property
    def is_alive(self) -> bool:
        return self.age_s < SILENT_AFTER_S


@dataclass(frozen=True, slots=True)
class Database:
    ok: bool
    vendor: str
    ms: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits. The seconds are those of the oldest row that is due and claimed by nobody."""

    broker: str
    reachable: bool
    oldest_lane_s: float
    oldest_delivery_s: float
    turns: dict[str, int]
    deliveries: dict[str, int]


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    name: str
    kind: str
    open: bool
    status: str = ""
    error: str = ""
    last_event_at: datetime | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Health:
    database: Database
    queue: Queue | None = None
    heartbeats: list[Beat] = field(default_factory=list)
    channels: list[ChannelFacts] = field(default_factory=list)
    vectors: VectorStatus | None = None
    problems: list[str] = field(default_factory=list)


def health() -> Health:
    """Return everything; with an unreachable database only that it is so."""
    state = database()
    if not state.ok:
        return Health(state, problems=[f"the database is unreachable ({state.error})"])
    beats, vectors = heartbeats(), embeddings.status()
    problems = [*_problems(beats), *filter(None, [vectors.problem])]
    return Health(state, queue(), beats, list(channels()), vectors, problems)


def unready() -> list[str]:
    """Return why this system should not get work, nothing if it should. Names no host, user or path."""
    state = database()
    if not state.ok:
        return [f"the database is unreachable ({state.error})"]
    if not migrated():
        return ["migrations are missing: run manage.py bootstrap"]
    return list(_problems(heartbeats()))


def database() -> Database:
    started = time.monotonic()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error as error:  # its text may show host and user
        return Database(False, connection.vendor, error=type(error).__name__)
    return Database(True, connection.vendor, ms=(time.monotonic() - started) * 1000)


_migrated = False


def migrated() -> bool:
    """Are all migrations applied? Asked of the database until it is so, as they are not undone under a running process."""
    global _migrated
    if not _migrated:
        executor = MigrationExecutor(connection)
        _migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    return _migrated


def heartbeats() -> list[Beat]:
    beats = Heartbeat.objects.annotate(now=DbNow()).order_by("name")
    return [Beat(beat.name, (beat.now - beat.at).total_seconds(), beat.detail) for beat in beats]


def queue() -> Queue:
    turns = MemoryTurn.objects.unfinished().values_list("state").annotate(Count("pk"))
    noteworthy = Delivery.objects.exclude(state=DeliveryState.SENT)
    deliveries = noteworthy.values_list("state").annotate(Count("pk"))
    return Queue(
        broker="redis" if settings.REDIS_URL else "orm",
        reachable=broker_reachable(),
        oldest_lane_s=lane_stalled_for(),
        oldest_delivery_s=delivery_stalled_for(),
        turns=dict(turns.order_by("state")),
        deliveries=dict(deliveries.order_by("state")),
    )


def broker_reachable() -> bool:
    """Can a worker be woken? Always, if the database is the broker."""
    if not settings.REDIS_URL:
        return True
    try:
        with Redis.from_url(
            settings.REDIS_URL, socket_connect_timeout=REDIS_S, socket_timeout=REDIS_S
        ) as redis:
            return bool(redis.ping())
    except RedisError:
        return False


def stalled_for() -> float:
    """Return how many seconds the oldest due lane or delivery has waited for somebody to claim it, 0 if none does."""
    return max(lane_stalled_for(), delivery_stalled_for())


def lane_stalled_for() -> float:
    # A lane whose holder died waits since the end of the lease, however long ago it was woken.
    since = Case(When(token=None, then=F("wake_at")), default=Greatest("wake_at", "lease_until"))
    due = Lane.objects.filter(wake_at__isnull=False).annotate(since=since, now=DbNow())
    return _longest(due.filter(since__lte=DbNow()).order_by("since").values_list("since", "now"))


def delivery_stalled_for() -> float:
    pending = outbox.heads().filter(next_attempt_at__lte=DbNow()).annotate(now=DbNow())
    expired = Delivery.objects.filter(
        state__in=[DeliveryState.CLAIMED, DeliveryState.SENDING], lease_until__lt=DbNow()
    ).annotate(now=DbNow())
    return max(
        _longest(pending.order_by("next_attempt_at").values_list("next_attempt_at", "now")),
        _longest(expired.order_by("lease_until").values_list("lease_until", "now")),
    )


def channels() -> Iterator[ChannelFacts]:
    """Yield every configured channel with its state. One query."""
    states = {state.channel: state for state in ChannelState.objects.all()}
    for name, config in sorted(settings.CHANNELS.items()):
        facts = ChannelFacts(name, config.kind, config.open)
        if state := states.get(name):
            facts = ChannelFacts(
                name,
                config.kind,
                config.open,
                state.status,
                state.error,
                state.last_event_at,
                state.detail,
            )
        yield facts


def _longest(rows: Any) -> float:
    """Return the age in seconds of the first (since, now) row."""
    row = rows.first()
    return max(0.0, (row[1] - row[0]).total_seconds()) if row else 0.0


def _problems(beats: list[Beat]) -> Iterator[str]:
    known = {beat.name: beat for beat in beats}
    for name in NEEDED:
        if name not in known:
            yield f"{name} has given no sign of life yet"
        elif not known[name].is_alive:
            yield f"{name} was last heard of {known[name].age_s:.0f} s ago"
