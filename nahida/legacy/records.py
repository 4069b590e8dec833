"""The record of one proposal: what its history says, and its place among the others."""

from typing import Any, Final

from django.utils import timezone

from sessions_app.models import Approval, MigrationLog

STALE: Final = "stale"
FAILED: Final = "failed"
BUSY: Final = "busy"
GONE: Final = "gone"
OPEN: Final = "open"


def note(record: MigrationLog, what: str, *, who: str, **more: Any) -> None:
    """Append to the history; the caller saves it."""
    entry = {"what": what, "who": who, "at": timezone.now().isoformat(), **more}
    record.history = [*record.history, entry]


def close(record: MigrationLog, result: str, *, who: str, reason: str = "", **more: Any) -> None:
    record.result, record.reason, record.finished_at = result, reason, timezone.now()
    note(record, result, who=who, **more)
    record.save(update_fields=["result", "reason", "finished_at", "history", "new_key"])


def decided(record: MigrationLog) -> bool:
    return record.approval != Approval.PENDING


def status(record: MigrationLog) -> str:
    """Return the result of a finished record; of an open one what happened last, if it stands in the way."""
    if record.result:
        return record.result
    last = record.history[-1]["what"] if record.history else OPEN
    return last if last in (STALE, FAILED, BUSY) else OPEN
