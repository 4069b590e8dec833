"""Taking an applied record back: every row as it was before, or a refusal that names the rows in the way (X38)."""

from collections.abc import Iterator

from django.db import transaction
from django.db.models import Q

from channels_app.clock import DbNow
from nahida.legacy.gather import KIND
from nahida.legacy.ground import BusyError
from nahida.legacy.records import close
from nahida.legacy.repair import REPAIR
from sessions_app.models import Chat, Lane, MigrationLog, MigrationUndo, Session
from sessions_app.undo import REVERTED, UndoError, take_back


class RevertError(Exception):
    """The record is as it was: the message says why, `rows` what stands in the way."""

    def __init__(self, message: str, rows: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.rows = rows


@transaction.atomic
def revert(pk: int, *, who: str) -> list[MigrationLog]:
    """Take back a record and those of the subagents' sessions that went along with it. Raises RevertError.

    Returns the records that are reverted now; what they concern is proposed anew by the next inspection.
    """
    records_of_ours = MigrationLog.objects.filter(kind__in=(KIND, REPAIR))
    record = records_of_ours.select_for_update().filter(pk=pk).first()
    if record is None:
        raise RevertError(f"there is no record {pk}: see the plan for their numbers")
    if record.result == REVERTED:
        raise RevertError(f"record {pk} ({record.old_key}) is reverted already")
    records = [*reversed(_gone_along(record)), record]
    if not MigrationUndo.objects.filter(record__in=records).exists():
        raise RevertError(
            f"record {pk} ({record.old_key}) changed no row, so there is nothing to revert: {record.result or 'it is open'}"
        )
    _lock_lanes(records)
    for one in records:
        try:
            take_back(one)
        except UndoError as error:
            raise RevertError(str(error), tuple(error.rows)) from error
        close(one, REVERTED, who=who, was=one.result)
    return records


def _gone_along(record: MigrationLog) -> list[MigrationLog]:
    """Return the records that were applied with this one and still are, in that order."""
    children = [child["old"] for child in record.affected.get("children", [])]
    rows = MigrationLog.objects.filter(kind=KIND, old_key__in=children)
    applied = rows.exclude(result__in=["", REVERTED]).order_by("pk").select_for_update()
    return [child for child in applied if any(_with(past, record) for past in child.history)]


def _with(past: dict[str, object], record: MigrationLog) -> bool:
    return past.get("along_with") == record.pk


def _lock_lanes(records: list[MigrationLog]) -> None:
    """Lock the lanes of all that was touched, before any other row. Raises BusyError if one of them is at work."""
    sessions, chats, lanes = (set(_touched(records, model)) for model in (Session, Chat, Lane))
    of_sessions = Session.objects.filter(pk__in=sessions).values("chat")
    touched = (
        Q(pk__in=lanes)
        | Q(active_session__in=sessions)
        | Q(chat__in=chats)
        | Q(chat__in=of_sessions)
    )
    locked = list(Lane.objects.filter(touched).order_by("pk").select_for_update())
    held = Lane.objects.filter(
        pk__in=[lane.pk for lane in locked], token__isnull=False, lease_until__gte=DbNow()
    )
    for lane in held.select_related("chat")[:1]:
        raise BusyError(f"{lane} is at work just now: try again")


def _touched(
    records: list[MigrationLog], model: type[Session] | type[Chat] | type[Lane]
) -> Iterator[int]:
    undo = MigrationUndo.objects.filter(record__in=records, model=model._meta.label)
    yield from undo.values_list("first_pk", flat=True)
