"""Taking over what a person decided in a plan file. The rows win (DESIGN 8.2).

A file is taken wholly or not at all: what does not fit the records is told by its entry and field, and nothing changes.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils.dateparse import parse_datetime

from nahida.legacy.decide import FORCED, DecisionError, decide
from nahida.legacy.gather import KIND
from nahida.legacy.plan import VERSION, Entry, PlanError, entry
from sessions_app.models import Approval, MigrationLog

HEAD = ("kind", "version", "created_at", "database", "summary", "entries")
FIELDS = (
    "old_session_id",
    "status",
    "recommendation",
    "new_session_id",
    "confidence",
    "evidence",
    "affected",
    "approval",
    "notes",
    "record",
    "fingerprint",
)
OF_SPLITS = ("split_targets", "remain_turn_ids")
# What may differ from the record: the decision, what is for the eye alone, and what follows from the targets.
FREE = ("approval", "status", "notes", "remain_turn_ids")
FORCES = {Approval.RENAME.value: "new_session_id", Approval.SPLIT.value: "split_targets"}


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry and where it stands."""

    path: Path
    written: str
    number: int
    fields: Entry

    @property
    def approval(self) -> str:
        return str(self.fields["approval"])

    def wrong(self, field: str, what: str) -> PlanError:
        key = self.fields.get("old_session_id", "without old_session_id")
        return PlanError(f"{self.path}: entry {self.number} ({key}): {field} {what}")


def read_plan(path: Path, *, who: str) -> list[int]:
    """Take the decisions of a file over into the records; return the records it lists, in its order.

    Raises PlanError, and then nothing has changed. An entry that is settled already is only listed.
    """
    with transaction.atomic():
        return [_take(listed, who) for listed in _entries(path)]


def _entries(path: Path) -> Iterator[Listed]:
    plan = _load(path)
    first: dict[int, int] = {}
    for number, fields in enumerate(plan["entries"], 1):
        if not isinstance(fields, dict):
            raise PlanError(f"{path}: entry {number} is no object")
        listed = Listed(path, plan["created_at"], number, fields)
        _check_form(listed)
        before = first.setdefault(fields["record"], number)
        if before != number:
            raise listed.wrong("record", f"is that of entry {before} too: list each once")
        yield listed


def _load(path: Path) -> dict[str, Any]:
    try:
        plan = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise PlanError(f"{path} is no JSON: {error}") from error
    if not isinstance(plan, dict):
        raise PlanError(f"{path} is no plan: it holds no object")
    for field in HEAD:
        if field not in plan:
            raise PlanError(f"{path} is no plan: {field} is missing")
    if plan["kind"] != KIND:
        raise PlanError(f"{path}: kind is {json.dumps(plan['kind'])}, not {json.dumps(KIND)}")
    if type(plan["version"]) is not int or plan["version"] != VERSION:
        raise PlanError(
            f"{path}: version is {json.dumps(plan['version'])}, this program reads {VERSION}"
        )
    if _instant(plan["created_at"]) is None:
        raise PlanError(f"{path}: created_at is no time with a zone")
    if not isinstance(plan["entries"], list):
        raise PlanError(f"{path}: entries is no list")
    return plan


def _instant(text: Any) -> datetime | None:
    try:
        found = parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found and found.tzinfo else None


def _check_form(listed: Listed) -> None:
    for field in FIELDS:
        if field not in listed.fields:
            raise listed.wrong(field, "is missing")
    for field in listed.fields:
        if field not in (*FIELDS, *OF_SPLITS):
            raise listed.wrong(field, "is no field of an entry")
    if type(listed.fields["record"]) is not int:
        raise listed.wrong("record", "is no number")
    if listed.fields["approval"] not in Approval.values:
        raise listed.wrong("approval", f"is none of {', '.join(Approval.values)}")
    if not isinstance(listed.fields["new_session_id"], str | None):
        raise listed.wrong("new_session_id", "is no text")


def _take(listed: Listed, who: str) -> int:
    pk = listed.fields["record"]
    record = MigrationLog.objects.select_for_update().filter(pk=pk, kind=KIND).first()
    if record is None:
        raise listed.wrong("record", f"{pk} does not exist: inspect again")
    if record.old_key != listed.fields["old_session_id"]:
        raise listed.wrong("old_session_id", f"is not that of record {pk}, {record.old_key}")
    if record.result:
        return record.pk
    if record.fingerprint != listed.fields["fingerprint"]:
        raise listed.wrong(
            "fingerprint", "is stale: what it rests on has changed since, inspect again"
        )
    _check_unedited(listed, record)
    if _is_news(listed, record):
        _decide(listed, record, who)
    return record.pk


def _check_unedited(listed: Listed, record: MigrationLog) -> None:
    kept = entry(record)
    forced = {FORCES.get(listed.approval), FORCES.get(record.approval)}
    for field in dict.fromkeys((*kept, *listed.fields)):
        if field in FREE or field in forced:
            continue
        if listed.fields.get(field) != kept.get(field):
            raise listed.wrong(field, "was edited: a plan only takes decisions")


def _is_news(listed: Listed, record: MigrationLog) -> bool:
    """Does the entry decide otherwise than its record? What was decided since the file was written is not undone by it."""
    if listed.approval == record.approval and not _forces_otherwise(listed, record):
        return False
    last = _last_decision(record)
    if last.get("plan") == listed.written or not _is_later(last.get("at"), listed.written):
        return True
    if listed.approval == Approval.PENDING:
        return False
    raise listed.wrong(
        "approval",
        f"is {listed.approval}, but {last['who']} decided {last['what']} after this plan was written",
    )


def _forces_otherwise(listed: Listed, record: MigrationLog) -> bool:
    if listed.approval == Approval.RENAME:
        return bool(listed.fields["new_session_id"] != record.new_key)
    return (
        listed.approval == Approval.SPLIT and listed.fields.get("split_targets") != record.targets
    )


def _last_decision(record: MigrationLog) -> dict[str, Any]:
    decisions = (past for past in reversed(record.history) if past["what"] in Approval.values)
    return next(decisions, {})


def _is_later(at: Any, written: str) -> bool:
    decided, exported = _instant(at), _instant(written)
    return bool(decided and exported and decided > exported)


def _decide(listed: Listed, record: MigrationLog, who: str) -> None:
    forces = listed.approval in FORCED
    try:
        decide(
            record,
            listed.approval,
            who=who,
            new_key=listed.fields["new_session_id"] or "" if forces else "",
            targets=listed.fields.get("split_targets", []) if forces else None,
            plan=listed.written,
        )
    except DecisionError as error:
        raise listed.wrong(error.field, str(error)) from error
