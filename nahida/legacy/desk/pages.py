"""A record for a person's eye: evidence, rows, jobs at risk, some of its turns, what was decided when and by whom."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from memory_app.models import MemoryTurn
from nahida.legacy.gather import chat_named
from nahida.legacy.inspect import lines_of
from nahida.legacy.proposals import COUNTS
from nahida.legacy.records import status
from nahida.legacy.telling import ROWS, parts, several, shown
from sessions_app.models import Approval, MigrationLog

MOST_SAMPLES = 40  # turns
SAMPLE_LENGTH = 200  # characters
AT_RISK = ("job", "subagent")
SHOWN_APART = ("evidence", "rows", *AT_RISK)
STAYS = "stays an old session: it can be read, and nothing is written to it"


@dataclass(frozen=True, slots=True)
class Sample:
    """A turn, and why it is shown."""

    why: str
    pk: int
    at: datetime
    role: str
    chat: str
    text: str


@dataclass(frozen=True, slots=True)
class Event:
    at: datetime | None
    what: str
    who: str
    more: str


def facts_of(record: MigrationLog) -> Iterator[tuple[str, str]]:
    """Yield what the page has no place of its own for."""
    return ((what, text) for what, text in parts(record) if what not in SHOWN_APART)


def evidence_of(record: MigrationLog) -> Iterator[str]:
    for part in record.evidence:
        turns = several(part["turn_count"], "turns") if part["turn_count"] else ""
        yield f"{shown(part['chat_address'])}: {turns or part['source'].replace('_', ' ')}"


def at_stake(record: MigrationLog) -> Iterator[str]:
    """Yield what hangs on the session."""
    for name in COUNTS[1:]:
        if count := record.affected.get(name, 0):
            yield several(count, ROWS[name])


def jobs_of(record: MigrationLog) -> Iterator[str]:
    """Say what becomes of each job and subagent session of a record."""
    return (f"{what} {text}" for what, text in parts(record) if what in AT_RISK)


def outcome_of(record: MigrationLog) -> Iterator[str]:
    """Say what applying a decided record does to its session."""
    if record.approval == Approval.REJECTED:
        yield "nothing changes; the rejection is noted"
    elif record.approval == Approval.KEEP_LEGACY:
        yield STAYS
    elif record.targets and record.approval != Approval.RENAME:
        for target in record.targets:
            turns = several(len(target["turn_ids"]), "turns")
            yield f"{turns} to {shown(target['new_session_id'])}"
        yield "what is not listed stays"
    elif record.new_key:
        yield f"all of it to {shown(record.new_key)}"
    else:
        yield STAYS


def undoing_of(record: MigrationLog) -> Iterator[str]:
    yield f"{status(record).replace('_', ' ')} until now; every row becomes what it was before"


def sample_of(record: MigrationLog) -> Iterator[Sample]:
    """Yield the first and last turn of each chat, and those between which the chat changes."""
    if record.subject_pk is None:
        return
    reasons = _telling_turns(record)
    turns = MemoryTurn.objects.filter(pk__in=list(reasons)[:MOST_SAMPLES]).order_by("pk")
    for turn in turns:
        chat = chat_named(turn.origin) or "names no chat"
        text = shown(turn.content[:SAMPLE_LENGTH])
        yield Sample(reasons[turn.pk], turn.pk, turn.created_at, turn.role, shown(chat), text)


def _telling_turns(record: MigrationLog) -> dict[int, str]:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    borders: list[int] = []
    named = (line for line in lines_of(record.subject_pk) if line.chat)
    previous = None
    for line in named:
        first.setdefault(line.chat, line.id)
        last[line.chat] = line.id
        if previous is not None and previous.chat != line.chat and len(borders) < MOST_SAMPLES:
            borders += [previous.id, line.id]
        previous = line
    reasons = dict.fromkeys(borders, "another chat begins")
    reasons |= dict.fromkeys(last.values(), "last of its chat")
    reasons |= dict.fromkeys(first.values(), "first of its chat")
    return dict(sorted(reasons.items()))


def history_of(record: MigrationLog) -> Iterator[Event]:
    """Yield what was decided and done, oldest first."""
    for entry in record.history:
        more = {key: value for key, value in entry.items() if key not in ("what", "who", "at")}
        yield Event(
            parse_datetime(str(entry.get("at", ""))),
            str(entry.get("what", "")).replace("_", " "),
            str(entry.get("who", "")),
            shown(
                "; ".join(f"{key.replace('_', ' ')}: {_said(value)}" for key, value in more.items())
            ),
        )


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
