"""Proposals become records: one for each imported session. Nothing else is written (DESIGN 8.2)."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from django.db import transaction

from memory_app.models import MemoryTurn
from nahida.legacy.dividing import Line, divide
from nahida.legacy.evidence import infer
from nahida.legacy.gather import KIND, chat_named, gather, gather_one
from nahida.legacy.proposals import Proposal
from nahida.legacy.records import GONE, STALE, close, decided, note
from sessions_app.models import Approval, MigrationLog

BATCH = 200  # records a statement: a split's may hold a million turn ids


def inspect(*, who: str) -> Counter[str]:
    """Bring the records up to what the rows say now, and return how many are new, changed, stale and so on.

    Undecided ones are rewritten. A decided one whose evidence has changed is rewritten too, and has to be decided again.
    """
    found: Counter[str] = Counter()
    with transaction.atomic():
        open_records = MigrationLog.objects.filter(kind=KIND, result="").select_for_update()
        known = {record.old_key: record for record in open_records}
        made = []
        for proposal in propose():
            record = known.pop(proposal.old_key, None)
            if record is None:
                made.append(_record(proposal))
                found["new"] += 1
            else:
                found[_refresh(record, proposal, who)] += 1
            if len(made) == BATCH:
                MigrationLog.objects.bulk_create(made)
                made = []
        MigrationLog.objects.bulk_create(made)
        for record in known.values():
            close(record, GONE, who=who)
            found["gone"] += 1
    return found


def propose() -> Iterator[Proposal]:
    for proposal in infer(gather()):
        yield with_turns(proposal)


def fingerprint_now(record: MigrationLog) -> str | None:
    """Return the fingerprint that the record would have if it were made now; None if it would not be made."""
    proposal = propose_one(record)
    return proposal.fingerprint if proposal else None


def propose_one(record: MigrationLog) -> Proposal | None:
    """Return what would be proposed now for a record's key. A few queries, whatever else there is."""
    for proposal in infer(gather_one(record)):
        if proposal.old_key == record.old_key:
            return with_turns(proposal)
    return None


def with_turns(proposal: Proposal) -> Proposal:
    """Give the targets of a split their turns, read in one pass over the session."""
    if not proposal.targets:
        return proposal
    ids: defaultdict[str, list[int]] = defaultdict(list)
    for id, chat in divide(lines_of(proposal.session)):
        ids[chat].append(id)
    targets = (
        replace(target, turn_ids=tuple(sorted(ids[target.chat_address])))
        for target in proposal.targets
    )
    return replace(proposal, targets=tuple(targets))


def lines_of(session: int | None) -> Iterator[Line]:
    """Yield the turns of a session, oldest first, a few at a time."""
    turns = MemoryTurn.objects.filter(session=session).order_by("pk")
    for pk, role, origin in turns.values_list("pk", "role", "origin").iterator():
        yield Line(pk, role, chat_named(origin))


def _record(proposal: Proposal) -> MigrationLog:
    return MigrationLog(kind=KIND, old_key=proposal.old_key, **proposal.columns)


def _refresh(record: MigrationLog, proposal: Proposal, who: str) -> str:
    """Return what became of the record: it is the same, new in its content, or its decision is void."""
    columns = proposal.columns
    if decided(record):
        if record.fingerprint == columns["fingerprint"]:
            return "decided"
        note(record, STALE, who=who, was=record.approval)
        record.approval = Approval.PENDING
        _rewrite(record, columns)
        return STALE
    if all(getattr(record, column) == value for column, value in columns.items()):
        return "unchanged"
    _rewrite(record, columns)
    return "changed"


def _rewrite(record: MigrationLog, columns: dict[str, object]) -> None:
    for column, value in columns.items():
        setattr(record, column, value)
    record.save(update_fields=[*columns, "approval", "history"])
