"""A record in words: what is proposed for a session, why, what goes along and what is at risk. No SQL needed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from nahida.legacy.apply import Outcome
from nahida.legacy.gather import KIND
from nahida.legacy.proposals import (
    COUNTS,
    DISABLE,
    DISABLE_CRON,
    KEEP_LEGACY,
    MANUAL_REVIEW,
    RENAME,
    RETARGET,
    SKIP_TYPED,
    SPLIT,
)
from nahida.legacy.records import GONE, decided, status
from sessions_app.models import Approval, MigrationLog

ROWS = dict(
    zip(COUNTS, ("sessions", "turns", "overrides", "jobs", "tasks", "memory items"), strict=True)
)
ADVICE = {
    RENAME: "approve it: all of it goes to the new key",
    SPLIT: "approve it: each chat gets its own turns, the rest stays as an old session",
    KEEP_LEGACY: "keep it: it can be read, and nothing is written to it",
    DISABLE_CRON: "approve it, or its jobs wait for ever; force_rename if you know the chat",
    SKIP_TYPED: "nothing to do",
    MANUAL_REVIEW: "look at it yourself: force_rename, force_split, or force_keep_legacy",
}


def counts() -> Iterator[str]:
    """Count the records by what is proposed and by what was decided."""
    records = MigrationLog.objects.filter(kind=KIND).exclude(result=GONE)
    rows = list(records.values_list("recommendation", "confidence", "approval", "result"))
    yield several(len(rows), "records")
    for title, number in [("proposed", 0), ("confidence", 1), ("decided", 2), ("done", 3)]:
        found = Counter(row[number] for row in rows if row[number])
        if found:
            yield f"  {title:<11} {', '.join(f'{number} {name}' for name, number in found.most_common())}"


def tell(record: MigrationLog) -> Iterator[str]:
    """Tell one record, key first."""
    new = f" -> {shown(record.new_key)}" if record.new_key else ""
    yield shown(record.old_key) + new
    for what, text in parts(record):
        yield f"    {what:<11} {text}"


def parts(record: MigrationLog) -> Iterator[tuple[str, str]]:
    """Yield all there is to say of a record, each with the word for what it is."""
    yield "record", str(record.pk)
    yield "proposal", f"{record.recommendation}, confidence {record.confidence}{_state(record)}"
    for part in record.evidence:
        turns = f", {several(part['turn_count'], 'turns')}" if part["turn_count"] else ""
        yield "evidence", f"{part['source']}: {shown(part['chat_address'])}{turns}"
    for target in record.targets:
        turns = several(len(target["turn_ids"]), "turns")
        yield "split", f"{turns} to {shown(target['new_session_id'])}"
    yield "rows", _rows(record.affected)
    yield from _risks(record.affected)
    for note in record.notes:
        yield "note", shown(note)
    if record.reason:
        yield "reason", shown(record.reason)
    if not record.result and not decided(record):
        yield "advice", ADVICE[record.recommendation]


def told(outcome: Outcome) -> str:
    """Tell in a line what came of a record."""
    new = f" -> {shown(outcome.new_key)}" if outcome.new_key else ""
    reason = f": {shown(outcome.reason)}" if outcome.reason else ""
    return f"{outcome.result:<14} {shown(outcome.old_key)}{new}{reason}"


def shown(text: str) -> str:
    """Return the text with nothing in it that a terminal would obey: old ids hold whatever a platform sent."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def several(number: int, things: str) -> str:
    return f"{number} {things.removesuffix('s') if number == 1 else things}"


def _state(record: MigrationLog) -> str:
    state = status(record)
    if record.approval == Approval.PENDING and state == "open":
        return ""
    return f" ({record.approval}, {state})"


def _rows(affected: Mapping[str, Any]) -> str:
    return _listed({ROWS[name]: affected.get(name, 0) for name in COUNTS}) or "none"


def _listed(numbers: Mapping[str, int]) -> str:
    """Return `12 turns, 1 job`, leaving out what there is none of."""
    return ", ".join(several(number, name) for name, number in numbers.items() if number)


def _risks(affected: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for job in affected.get("jobs", []):
        name = shown(job["job_id"]) or job["id"]
        match job["outcome"]:
            case outcome if outcome == RETARGET:
                yield "job", f"{name} goes on in {shown(job['chat_address'])}"
            case outcome if outcome == DISABLE:
                yield "job", f"{name} is switched off: {shown(job['why'])}"
            case _:
                yield "job", f"{name} stays as it is"
    for child in affected.get("children", []):
        yield "subagent", f"{shown(child['old'])} goes along"
