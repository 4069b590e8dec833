"""A record for a person's eye: evidence, rows, jobs at risk, some of its turns, what was decided when and by whom."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from memory_app.models import MemoryTurn
from nahida.legacy.gather import chat_named
from nahida.legacy.inspect import lines_of
from nahida.legacy.proposals import COUNTS, DISABLE, RETARGET
from nahida.legacy.telling import ROWS, several, shown
from sessions_app.models import MigrationLog

MOST_SAMPLES = 40  # turns
SAMPLE_LENGTH = 200  # characters


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


def evidence_of(record: MigrationLog) -> Iterator[str]:
    for part in record.evidence:
        turns = f" ({several(part['turn_count'], 'turns')})" if part["turn_count"] else ""
        yield f"{part['source'].replace('_', ' ')}: {shown(part['chat_address'])}{turns}"


def at_stake(record: MigrationLog) -> Iterator[str]:
    for name in COUNTS:
        if count := record.affected.get(name, 0):
            yield several(count, ROWS[name])


def jobs_of(record: MigrationLog) -> Iterator[str]:
    """Say what becomes of each job and subagent session of a record."""
    for job in record.affected.get("jobs", []):
        name = shown(job["job_id"]) or str(job["id"])
        if job["outcome"] == RETARGET:
            yield f"job {name} goes on in {shown(job['chat_address'])}"
        elif job["outcome"] == DISABLE:
            yield f"job {name} is switched off: {shown(job['why'])}"
        else:
            yield f"job {name} stays as it is"
    for child in record.affected.get("children", []):
        yield f"subagent session {shown(child['old'])} goes along"


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
