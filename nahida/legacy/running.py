"""A run over many records: one backup before the first, the records in their order, whole tables counted around them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.db import transaction

from nahida.legacy.apply import Outcome, apply_record, rehearse, to_apply
from nahida.legacy.census import Census, count_rows, last_undo, missing
from nahida.legacy.gather import KIND
from nahida.legacy.takeover import read_plan
from sessions_app.models import MigrationLog


class LostRowsError(Exception):
    """A whole table has fewer rows than before. That must never happen; the backup is the way back."""


@dataclass(frozen=True, slots=True)
class Start:
    """What was there before the first record."""

    counts: Census
    undo_pk: int

    @classmethod
    def now(cls) -> "Start":
        return cls(count_rows(), last_undo())

    def check(self) -> None:
        """Raise LostRowsError if rows went missing that no record removed."""
        lost = missing(self.counts, undo_after=self.undo_pk)
        if lost:
            raise LostRowsError("; ".join(lost))


def apply_all(
    pks: Iterable[int], *, who: str, allows: bool, stops_on_error: bool = False
) -> Iterator[Outcome]:
    """Apply records in their order and yield what came of each. Raises LostRowsError at the end."""
    start = Start.now()
    for pk in pks:
        outcome = apply_record(pk, who=who, allows=allows)
        yield outcome
        if outcome.is_open and stops_on_error:
            break
    start.check()


def rehearse_all(
    plan: Path | None, *, who: str, allows: bool, stops_on_error: bool = False
) -> Iterator[Outcome]:
    """Yield what a run would come to, with the decisions of the plan. Nothing is written, not even those.

    Each record is tried by itself, so what only an earlier one makes possible may still be refused.
    """
    for record in _as_decided(plan, who):
        outcome = rehearse(record, allows=allows)
        yield outcome
        if outcome.is_open and stops_on_error:
            return


def _as_decided(plan: Path | None, who: str) -> list[MigrationLog]:
    with transaction.atomic():
        pks = to_apply() if plan is None else read_plan(plan, who=who)
        records = MigrationLog.objects.filter(kind=KIND).in_bulk(pks)
        transaction.set_rollback(True)
    return [records[pk] for pk in pks]
