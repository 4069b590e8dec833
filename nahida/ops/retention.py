"""What is kept for a while only: nothing else ever deletes these rows."""

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone
from django_q.models import Task

from channels_app.models import InboundEvent
from memory_app import files

# A platform repeats an event for a day or two; the row that recognises it is kept far longer.
EVENTS_KEPT_FOR = timedelta(days=30)
TASKS_KEPT_FOR = timedelta(days=14)
AT_ONCE = 1_000  # rows of a kind: a sweep must not hold SQLite's one write lock for long


def forget_old() -> None:
    now = timezone.now()
    events = InboundEvent.objects.filter(received_at__lt=now - EVENTS_KEPT_FOR)
    tasks = Task.objects.filter(started__lt=now - TASKS_KEPT_FOR)
    for rows in (events, tasks):
        _delete_some(rows)
    files.forget_unnamed(now)


def _delete_some(rows: QuerySet) -> None:  # type: ignore[type-arg]  # of any model
    oldest = list(rows.order_by("pk").values_list("pk", flat=True)[:AT_ONCE])
    rows.filter(pk__in=oldest).delete()
