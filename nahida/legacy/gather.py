"""The facts of imported sessions, by a handful of queries however many turns there are."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Left

from channels_app.addresses import AddressError, ChatAddress, SessionKey
from memory_app.models import MemoryItem, MemoryTurn, Role
from memory_app.scopes import GLOBAL_SCOPE
from nahida.legacy.facts import (
    Facts,
    JobFacts,
    SessionFacts,
    Settled,
    base_of,
    job_of,
    older_key,
    parsed,
)
from nahida.legacy.proposals import MOVED, Evidence, Proposal
from nahida.legacy.stated import by_job, in_metadata
from scheduler_app.models import BackgroundTask, CronJob
from sessions_app.models import Lane, MigrationLog, Session

KIND: Final = "session_keys"
# What a finished record says for good; a reverted one, or one whose subject went away, says nothing.
SETTLED = (*MOVED, "split", "kept_legacy", "cron_disabled", "rejected")

FORK = "subagent_fork:"
# What the old bot itself wrote as the user.
NOT_OF_PEOPLE = ("cron_trigger", "subagent_task", "subagent_context_summary")


@dataclass(slots=True)
class _Turns:
    total: int = 0
    named: Counter[str] = field(default_factory=Counter)
    copied: int = 0
    addressless: int = 0

    def add(self, role: str, source: str, origin: str, count: int) -> None:
        self.total += count
        if role == Role.ASSISTANT:
            return
        if chat := chat_named(origin):
            self.named[chat] += count
            self.copied += count if source.startswith(FORK) else 0
        elif role == Role.USER and source.removeprefix(FORK) not in NOT_OF_PEOPLE:
            self.addressless += count


@lru_cache(maxsize=10_000)
def chat_named(origin: str) -> str:
    """Return the key of the typed chat a turn came from, or ""."""
    try:
        address = ChatAddress.parse(origin)
    except AddressError:
        return ""
    return address.chat_key if address.typed else ""


@dataclass(frozen=True, slots=True)
class _Finished:
    """`into` are the keys of the sessions that took the turns."""

    settled: Settled
    subject: int | None
    has_session: bool
    into: frozenset[str]


def gather() -> Facts:
    """Return the facts of all imported sessions that no finished record has settled."""
    finished = _finished(_records().exclude(result=""))
    return Facts(
        sessions=tuple(_sessions(None, finished)),
        jobs=tuple(_jobs(Q())),
        settled=_settled(finished),
        keys=frozenset(Session.objects.values_list("key", flat=True)),
    )


def gather_one(record: MigrationLog) -> Facts:
    """Return what a record rests on today; of the other sessions of its number, what their records say."""
    key = parsed(record.old_key)
    base = base_of(record.old_key, key) if key else record.old_key
    beside = [one for one in _beginning_with(base) if one.pk != record.pk]
    sessions = tuple(_sessions(record, _finished(beside))) if record.subject_pk else ()
    requesters = {text for session in sessions for text in session.requesters}
    if strangers := requesters - {one.old_key for one in beside}:
        beside += _records().filter(old_key__in=strangers).exclude(pk=record.pk)
    jobs = Q(imported_key__in=[record.old_key, base])
    if key and (job := job_of(key)):
        jobs |= Q(imported__job_id=job)
    return Facts(
        sessions=sessions,
        jobs=tuple(_jobs(jobs)),
        standing=tuple(_standing(one) for one in beside if not one.result),
        settled=_settled(_finished(beside)),
        keys=_keys_among({record.old_key, *requesters}, key),
    )


def _records() -> QuerySet[MigrationLog]:
    records = MigrationLog.objects.filter(kind=KIND).order_by("pk")
    return records.defer("targets", "notes", "history")  # a split's targets may be a million ids


def _beginning_with(base: str) -> list[MigrationLog]:
    """Return the records of a family and more, told apart by their keys."""
    return list(_records().annotate(beginning=Left("old_key", len(base))).filter(beginning=base))


def _keys_among(texts: Set[str], key: SessionKey | None) -> frozenset[str]:
    """Return which of these keys sessions have, and the one that could have begun a seemingly typed session."""
    asked = {*texts, *([older_key(key)] if key and key.typed else [])}
    return frozenset(Session.objects.filter(key__in=asked).values_list("key", flat=True))


def _standing(record: MigrationLog) -> Proposal:
    return Proposal(
        record.subject_pk,
        record.old_key,
        record.recommendation,
        record.confidence,
        record.new_key,
        tuple(Evidence(**part) for part in record.evidence),
    )


def _finished(records: Iterable[MigrationLog]) -> dict[str, _Finished]:
    """Return the last finished record of each old key, unless it was reverted."""
    last = {record.old_key: record for record in records if record.result}
    return {
        text: _Finished(
            Settled(record.result, record.new_key, frozenset(_chats_of(record))),
            record.subject_pk,
            record.affected.get("sessions") != 0,
            frozenset(_keys_of(record)),
        )
        for text, record in last.items()
        if record.result in SETTLED
    }


def _chats_of(record: MigrationLog) -> Iterator[str]:
    for part in record.evidence:
        yield part["chat_address"]
    for key in map(parsed, _keys_of(record)):
        if key and key.typed:
            yield key.chat_key


def _keys_of(record: MigrationLog) -> Iterator[str]:
    if record.result in MOVED:
        yield record.new_key
    elif record.result == "split":
        yield from (target["new_session_id"] for target in record.targets)


def _settled(finished: Mapping[str, _Finished]) -> dict[str, Settled]:
    return {text: one.settled for text, one in finished.items()}


def _sessions(
    record: MigrationLog | None, finished: Mapping[str, _Finished]
) -> Iterator[SessionFacts]:
    rows = _unsettled(record, finished)
    only = None if record is None else record.subject_pk
    turns, overrides, items = _turns(only), _overrides(only), _items(record)
    tasks, requesters = _tasks(only)
    nothing = _Turns()
    for pk, key, imported in rows:
        metadata = imported.get("metadata") if isinstance(imported, dict) else None
        own = turns.get(pk, nothing)
        yield SessionFacts(
            pk=pk,
            key=key,
            turns=own.total,
            named=own.named,
            copied=own.copied,
            addressless=own.addressless,
            metadata=in_metadata(metadata),
            overrides=tuple(overrides.get(pk, ())),
            tasks=tasks[pk],
            items=items.get(key, 0),
            requesters=tuple(sorted({*requesters.get(pk, ()), *_requester_in(metadata)})),
        )


def _unsettled(
    record: MigrationLog | None, finished: Mapping[str, _Finished]
) -> list[tuple[int, str, Any]]:
    sessions = Session.objects.filter(imported_at__isnull=False)
    if record is not None:
        sessions = sessions.filter(pk=record.subject_pk or 0, key=record.old_key)
    moved = {one.subject for one in finished.values() if one.settled.moved_to}
    done = {text for text, one in finished.items() if one.has_session and not one.settled.moved_to}
    done.update(key for one in finished.values() for key in one.into)
    rows = sessions.order_by("pk").values_list("pk", "key", "imported")
    # One that still has the key it is said to have moved from was never moved.
    return [
        (pk, key, imported)
        for pk, key, imported in rows.iterator()
        if key not in done and (pk not in moved or key in finished)
    ]


def _turns(only: int | None) -> dict[int, _Turns]:
    """One query; as many rows as there are sessions, sources and addresses in them."""
    turns = MemoryTurn.objects.order_by()
    if only is not None:
        turns = turns.filter(session=only)
    groups = turns.values_list("session", "role", "source", "origin").annotate(Count("pk"))
    found: defaultdict[int, _Turns] = defaultdict(_Turns)
    for session, role, source, origin, count in groups.iterator():
        found[session].add(role, source, origin, count)
    return found


def _overrides(only: int | None) -> dict[int, list[str]]:
    lanes = Lane.objects.filter(thread="").order_by("pk")
    if only is not None:
        lanes = lanes.filter(active_session=only)
    found: defaultdict[int, list[str]] = defaultdict(list)
    for session, chat in lanes.values_list("active_session", "chat__chat_key").iterator():
        found[session].append(chat)
    return found


def _tasks(only: int | None) -> tuple[Counter[int], dict[int, list[str]]]:
    """Return how many tasks each session has part in, and the requesters of those that ran in it."""
    tasks = BackgroundTask.objects.order_by("pk")
    if only is not None:
        tasks = tasks.filter(Q(requester=only) | Q(child=only))
    counts: Counter[int] = Counter()
    requesters: defaultdict[int, list[str]] = defaultdict(list)
    for requester, key, child in tasks.values_list(
        "requester", "requester__key", "child"
    ).iterator():
        counts.update({requester, child} - {None})
        if child is not None:
            requesters[child].append(key)
    return counts, requesters


def _items(record: MigrationLog | None) -> dict[str, int]:
    items = MemoryItem.objects.exclude(scope_type=GLOBAL_SCOPE).order_by()
    if record is not None:
        items = items.filter(scope_id=record.old_key)
    return dict(items.values_list("scope_id").annotate(Count("pk")))


def _jobs(which: Q) -> Iterator[JobFacts]:
    jobs = CronJob.objects.filter(which, imported_at__isnull=False).order_by("pk")
    columns = ("pk", "imported_key", "session_name", "active", "imported")
    for pk, key, session_name, active, imported in jobs.values_list(*columns).iterator():
        job_id = imported.get("job_id") if isinstance(imported, dict) else None
        yield JobFacts(pk, str(job_id or ""), key, session_name, active, by_job(key, imported))


def _requester_in(metadata: Any) -> list[str]:
    requester = metadata.get("requester_session_id") if isinstance(metadata, dict) else None
    return [requester] if isinstance(requester, str) and requester else []
