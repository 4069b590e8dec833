"""How the system fares: in full for a key, in a word for whoever watches processes."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from ninja import Field, Router, Schema

from nahida import __version__
from nahida.gateway.auth import BearerKey
from nahida.gateway.problems import problems
from nahida.ops import health

router = Router(tags=["health"])


class DatabaseState(Schema):
    ok: bool
    vendor: str
    ms: float
    error: str


class QueueState(Schema):
    broker: str
    reachable: bool = Field(description="false: work still gets done, found by the ticker")
    oldest_lane_s: float = Field(description="how long the oldest due, unclaimed lane has waited")
    oldest_delivery_s: float
    turns: dict[str, int] = Field(description="unfinished turns by state")
    deliveries: dict[str, int] = Field(description="deliveries not sent, by state")


class HeartbeatState(Schema):
    name: str
    age_s: float
    is_alive: bool


class ChannelStateRow(Schema):
    name: str
    kind: str
    open: bool
    status: str
    error: str
    last_event_at: datetime | None
    detail: dict[str, Any] = Field(description="what the channel says of itself")


class VectorState(Schema):
    model: str = Field(description="empty: memory is searched by keyword alone")
    dimensions: int | None
    embedded: int
    waiting: int = Field(description="remembered things without a vector yet; found by keyword")
    problem: str


class HealthReport(Schema):
    ok: bool
    version: str
    problems: list[str]
    database: DatabaseState
    queue: QueueState | None
    heartbeats: list[HeartbeatState]
    channels: list[ChannelStateRow]
    vectors: VectorState | None
    open_channels: list[str] = Field(description="channels on which every stranger is answered")


@router.get(
    "",
    auth=BearerKey("health"),
    response={200: HealthReport, **problems()},
    summary="How the system fares",
)
def report(request: HttpRequest) -> dict[str, Any]:
    facts = health.health()
    return {
        "ok": not facts.problems,
        "version": __version__,
        "problems": facts.problems,
        "database": facts.database,
        "queue": facts.queue,
        "heartbeats": facts.heartbeats,
        "channels": facts.channels,
        "vectors": facts.vectors,
        "open_channels": [channel.name for channel in facts.channels if channel.open],
    }


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """This process lives. Asks nothing of anybody."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """The whole system can do its work, or why not."""
    reasons = health.unready()
    status = "unready" if reasons else "ready"
    return JsonResponse({"status": status, "reasons": reasons}, status=503 if reasons else 200)
