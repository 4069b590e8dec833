"""Tools run once for a batch, however often the batch is taken (DESIGN 5, R8).

Their results are masked: what a tool reads may hold secrets that nobody typed.
"""

import hashlib
import json
import uuid
from collections.abc import Callable
from typing import Any

from django.db import transaction

from channels_app.messages import storable
from memory_app.models import ToolCall
from memory_app.redaction import redact
from sessions_app import lanes


def digest(name: str, arguments: dict[str, Any]) -> str:
    """Return what tells two calls apart: the name and the arguments, whatever their order."""
    canonical = json.dumps([name, arguments], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def stored_result(batch: int, call: str) -> str | None:
    """Return what an identical call of this batch gave, if it ended."""
    return (
        ToolCall.objects.filter(batch_id=batch, digest=call)
        .values_list("result", flat=True)
        .first()
    )


def was_interrupted(batch: int) -> bool:
    """Did a tool with an effect outside begin for this batch, and nobody knows how it ended?"""
    return ToolCall.objects.filter(batch_id=batch, result=None).exists()


def run_inside(
    lane_id: int, token: uuid.UUID, *, batch: int, name: str, call: str, act: Callable[[], str]
) -> str:
    """Run a tool that writes rows: its writes, its result and the token's test are one transaction."""
    with transaction.atomic():
        _hold(lane_id, token)
        result = redact(storable(act())).text
        ToolCall.objects.create(batch_id=batch, digest=call, name=name, result=result)
        return result


def run_outside(
    lane_id: int, token: uuid.UUID, *, batch: int, name: str, call: str, act: Callable[[], str]
) -> str:
    """Run a tool with an effect outside: that it begins is committed before, what came of it after."""
    with transaction.atomic():
        _hold(lane_id, token)
        row = ToolCall.objects.create(batch_id=batch, digest=call, name=name, result=None)
    result = redact(storable(act())).text
    ToolCall.objects.filter(pk=row.pk).update(result=result)
    return result


def _hold(lane_id: int, token: uuid.UUID) -> None:
    if lanes.hold(lane_id, token) is None:
        raise lanes.LostLaneError(lane_id)
