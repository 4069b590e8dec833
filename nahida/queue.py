"""The one place that wakes a worker. A wake-up may be lost or come twice: rows say what is to be done."""

import logging
from functools import partial

from django.db import transaction
from django_q.tasks import async_task

logger = logging.getLogger(__name__)

RUN_LANE = "nahida.tasks.run_lane"
DELIVER = "nahida.tasks.deliver"
BEAT = "nahida.tasks.beat"
SWEEP = "nahida.tasks.sweep"


def wake(task: str, pk: int) -> None:
    """Ask a worker to look at row `pk` now."""
    async_task(task, pk)


def wake_on_commit(task: str, pk: int) -> None:
    """Wake after the transaction; an unreachable queue is the ticker's business, not the caller's."""
    transaction.on_commit(partial(wake, task, pk), robust=True)
