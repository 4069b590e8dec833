"""Long work in slices: n of m in a row that survives a reload, a restart and a kill (DESIGN 5, R6; 8.3).

A worker claims the row by a token, does one step after the other for less than a minute, and gives it back for the next slice.
The token only says who goes on: a step is whole by itself, and doing one again must change nothing.
"""

import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from channels_app.clock import DbNow
from nahida import queue
from nahida.ops.models import Operation

logger = logging.getLogger(__name__)

PENDING: Final = "pending"
RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"

SLICE_S = 45.0
# One step may be long: after that a worker is killed, and only then may another one go on.
LEASE = timedelta(seconds=settings.TASK_TIMEOUT)
WAKE_AGAIN_AFTER = timedelta(seconds=30)

# Does what is left, from step `operation.done` on, and yields after each step what came of it, in a word.
Work = Callable[[Operation], Iterator[str]]


def start(kind: str, *, total: int, subject: Mapping[str, Any], by: str) -> Operation:
    """Begin long work; a worker looks at it as soon as the caller's transaction ends."""
    operation = Operation.objects.create(
        kind=kind, total=total, subject=dict(subject), created_by=by[:150], wake_at=DbNow()
    )
    queue.wake_on_commit(queue.RUN_OPERATION, operation.pk)
    return operation


def run(pk: int, *, works: Mapping[str, Work], slice_s: float = SLICE_S) -> None:
    """Do one slice, if nobody else is at it."""
    token = _claim(pk)
    if token is None:
        return
    operation = Operation.objects.get(pk=pk)
    until = time.monotonic() + slice_s
    try:
        for outcome in works[operation.kind](operation):
            if not _advance(operation, token, outcome):
                return  # somebody else goes on
            if time.monotonic() >= until:
                _put_off(pk, token)
                return
    except Exception as error:
        logger.exception("operation %s failed", operation)
        _end(pk, token, FAILED, error=f"{type(error).__name__}: {error}")
        return
    _end(pk, token, DONE)


def remember(operation: Operation, **facts: Any) -> None:
    """Keep facts in the result, for the slices that follow and for whoever looks."""
    with transaction.atomic():
        row = Operation.objects.select_for_update().get(pk=operation.pk)
        row.result = {**row.result, **facts}
        row.save(update_fields=["result"])
    operation.result = row.result


def wake_due(limit: int) -> list[int]:
    """R6: mark due operations as woken and return them; a lost wake-up is repeated after a while."""
    asleep = Q(woken_at=None) | Q(woken_at__lt=DbNow() - WAKE_AGAIN_AFTER)
    free = Q(token=None) | Q(lease_until__lt=DbNow())
    due = Operation.objects.filter(asleep, free, wake_at__lte=DbNow())
    candidates = list(due.order_by("wake_at").values_list("pk", flat=True)[:limit])
    return [pk for pk in candidates if due.filter(pk=pk).update(woken_at=DbNow())]


def _claim(pk: int) -> uuid.UUID | None:
    token = uuid.uuid4()
    free = Q(token=None) | Q(lease_until__lt=DbNow())
    due = Operation.objects.filter(free, pk=pk, wake_at__lte=DbNow())
    is_mine = due.update(token=token, lease_until=DbNow() + LEASE, state=RUNNING)
    return token if is_mine else None


def _advance(operation: Operation, token: uuid.UUID, outcome: str) -> bool:
    with transaction.atomic():
        mine = Operation.objects.select_for_update().filter(pk=operation.pk, token=token).first()
        if mine is None:
            return False
        counts = Counter(mine.result.get("counts", {}))
        counts[outcome] += 1
        mine.result = {**mine.result, "counts": dict(counts)}
        mine.done += 1
        mine.save(update_fields=["result", "done"])
        Operation.objects.filter(pk=mine.pk).update(lease_until=DbNow() + LEASE)
    operation.done, operation.result = mine.done, mine.result
    return True


def _put_off(pk: int, token: uuid.UUID) -> None:
    """Give the row back for the next slice, and let other work in between."""
    mine = Operation.objects.filter(pk=pk, token=token)
    if mine.update(token=None, wake_at=DbNow(), woken_at=None):
        queue.wake_on_commit(queue.RUN_OPERATION, pk)


def _end(pk: int, token: uuid.UUID, state: str, *, error: str = "") -> None:
    Operation.objects.filter(pk=pk, token=token).update(
        state=state,
        error=error,
        token=None,
        wake_at=None,
        woken_at=None,
        finished_at=timezone.now(),
    )
