"""The one place that wakes a worker. A wake-up may be lost or come twice: rows say what is to be done."""

import logging
from functools import cache, partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django_q.brokers import Broker, get_broker
from django_q.brokers.orm import ORM
from django_q.models import OrmQ
from django_q.tasks import async_task

logger = logging.getLogger(__name__)

RUN_LANE = "nahida.tasks.run_lane"
DELIVER = "nahida.tasks.deliver"
BEAT = "nahida.tasks.beat"
SWEEP = "nahida.tasks.sweep"
RUN_OPERATION = "nahida.tasks.run_operation"
REFRESH_EMBEDDINGS = "nahida.tasks.refresh_embeddings"


class _TableAtHand(ORM):  # type: ignore[misc]  # it has no types
    """Writes over the connection at hand: the library's own broker closes it first, twice for each task."""

    @staticmethod
    def get_connection(list_key: str | None = None) -> Any:
        return OrmQ.objects


@cache
def _broker() -> Broker:
    return get_broker() if settings.REDIS_URL else _TableAtHand()


def wake(task: str, pk: int) -> None:
    """Ask a worker to look at row `pk` now."""
    async_task(task, pk, broker=_broker())


def wake_on_commit(task: str, pk: int) -> None:
    """Wake after the transaction; an unreachable queue is the ticker's business, not the caller's."""
    transaction.on_commit(partial(wake, task, pk), robust=True)
