"""Applying decided records, one by one: each wholly or not at all, and a failed one leaves the others be (DESIGN 8.5)."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from nahida.legacy.deeds import RefusedError, do
from nahida.legacy.gather import KIND
from nahida.legacy.ground import BusyError
from nahida.legacy.inspect import fingerprint_now
from nahida.legacy.records import BUSY, FAILED, STALE, decided, note
from sessions_app.models import MigrationLog

logger = logging.getLogger(__name__)

ALREADY: Final = "already applied"
PENDING: Final = "pending"
# What leaves a record open, with its reason in the record.
OPEN = (BUSY, FAILED, STALE)


class StaleError(Exception):
    """What the decision rested on has changed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`result` is that of the record, or why it has none."""

    old_key: str
    result: str
    new_key: str = ""
    reason: str = ""

    @property
    def is_open(self) -> bool:
        return self.result in OPEN


def to_apply(pks: Iterable[int] | None = None) -> list[int]:
    """Return the decided records that are still open, in the order of the plan; of `pks` alone, in theirs."""
    records = MigrationLog.objects.filter(kind=KIND, result="").exclude(approval=PENDING)
    found = list(records.order_by("pk").values_list("pk", flat=True))
    if pks is None:
        return found
    is_open = set(found)
    return [pk for pk in pks if pk in is_open]


def apply_record(pk: int, *, who: str, allows: bool) -> Outcome:
    """Apply a record in one transaction. What stands in its way is written into it, and it stays open.

    `allows`: the chats whose type becomes known are let in.
    """
    try:
        with transaction.atomic():
            record = MigrationLog.objects.select_for_update().get(pk=pk, kind=KIND)
            return _apply(record, who=who, allows=allows)
    except Exception as error:
        what = _what_failed(error)
        reason = _reason(error)
        if what == FAILED and not isinstance(error, RefusedError):
            logger.exception("record %s failed", pk)
    return _leave_open(pk, what, reason, who=who)


def rehearse(record: MigrationLog, *, allows: bool) -> Outcome:
    """Return what applying a record would come to. Nothing is written, neither into its rows nor into itself."""
    try:
        with transaction.atomic():
            outcome = _apply(record, who="", allows=allows)
            transaction.set_rollback(True)
            return outcome
    except Exception as error:
        return Outcome(record.old_key, _what_failed(error), reason=_reason(error))


def _apply(record: MigrationLog, *, who: str, allows: bool) -> Outcome:
    if record.result:
        return Outcome(record.old_key, ALREADY, record.new_key, record.result)
    if not decided(record):
        return Outcome(record.old_key, PENDING)
    if fingerprint_now(record) != record.fingerprint:
        raise StaleError("what this rests on has changed since it was decided: inspect again")
    result = do(record, who=who, allows=allows)
    return Outcome(record.old_key, result, record.new_key)


def _what_failed(error: Exception) -> str:
    if isinstance(error, BusyError):
        return BUSY
    return STALE if isinstance(error, StaleError) else FAILED


def _reason(error: Exception) -> str:
    if isinstance(error, BusyError | StaleError | RefusedError):
        return str(error)
    return f"{type(error).__name__}: {error}"


@transaction.atomic
def _leave_open(pk: int, what: str, reason: str, *, who: str) -> Outcome:
    record = MigrationLog.objects.select_for_update().get(pk=pk)
    record.reason = reason
    note(record, what, who=who, reason=reason)
    record.save(update_fields=["reason", "history"])
    return Outcome(record.old_key, what, reason=reason)
