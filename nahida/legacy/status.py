"""Where the migration stands: what is still legacy, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet
from django.db.models.lookups import In

from channels_app.addresses import UNKNOWN
from channels_app.fields import KeyType
from memory_app.models import ItemStatus, MemoryItem, MemoryTurn
from memory_app.scopes import CHAT_SCOPE, GLOBAL_SCOPE
from nahida.legacy.gather import KIND
from nahida.legacy.records import GONE, decided, status
from scheduler_app.models import CronJob
from sessions_app.models import TYPES_IN_KEYS, MigrationLog, Session

RESULTS = {
    "kept_legacy": "kept as an old session",
    "split": "what a split left over",
    "cron_disabled": "nothing names its chat; its jobs are switched off",
    "rejected": "the proposal was rejected",
}


@dataclass(frozen=True, slots=True)
class Remainder:
    """So many rows of one kind are still legacy, for one reason."""

    kind: str
    number: int
    why: str


def remainders() -> list[Remainder]:
    """Return what is left, the most frequent reason of each kind first. A handful of queries."""
    why = dict(_reasons())
    turns = MemoryTurn.objects.filter(session__in=_legacy()).order_by()
    by_session = turns.values_list("session").annotate(Count("pk"))
    return [
        *_counted("sessions", Counter(why.values())),
        *_counted("turns", _summed((why[session], count) for session, count in by_session)),
        *_counted("jobs", Counter(_reasons_of_jobs())),
        *_counted("items", _summed(_reasons_of_items())),
    ]


def _legacy() -> QuerySet[Session]:
    typed = In(KeyType("key"), TYPES_IN_KEYS)
    return Session.objects.filter(imported_at__isnull=False).exclude(typed)


def _reasons() -> Iterator[tuple[int, str]]:
    records = MigrationLog.objects.filter(kind=KIND).exclude(result=GONE).order_by("pk")
    shown = records.only("old_key", "recommendation", "approval", "result", "reason", "history")
    by_key = {record.old_key: record for record in shown.iterator()}
    for pk, key in _legacy().values_list("pk", "key"):
        yield pk, _reason(by_key.get(key))


def _reason(record: MigrationLog | None) -> str:
    if record is None:
        return "not inspected yet"
    if record.result:
        return RESULTS.get(record.result, record.result)
    state = status(record)
    if state != "open":
        return f"{state}: {record.reason}" if record.reason else state
    if decided(record):
        return f"{record.approval}, not applied yet"
    return f"{record.recommendation} is proposed, not decided yet"


def _reasons_of_jobs() -> Iterator[str]:
    jobs = CronJob.objects.filter(imported_at__isnull=False)
    untyped = jobs.filter(Q(chat=None) | Q(chat__target_type=UNKNOWN))
    for active, reason, error in untyped.values_list("active", "paused_reason", "last_error"):
        if active:
            yield "waits until the type of its chat is known"
        else:
            yield f"switched off: {reason or error}" if reason or error else "was off before"


def _reasons_of_items() -> Iterator[tuple[str, int]]:
    items = MemoryItem.objects.exclude(imported=None).filter(status=ItemStatus.ACTIVE)
    shared = items.filter(scope_type=GLOBAL_SCOPE)
    yield "held: global, but of a kind that belongs to a chat", shared.filter(held=True).count()
    said = shared.filter(held=False, source_session__in=_legacy())
    yield "for all chats, and said in a session that is still legacy", said.count()
    scoped = items.exclude(scope_type=GLOBAL_SCOPE)
    typed = In(KeyType("scope_id"), TYPES_IN_KEYS)
    yield (
        "its scope is that of an old session",
        scoped.exclude(Q(scope_type=CHAT_SCOPE) & Q(typed)).count(),
    )


def _summed(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for why, number in counts:
        total[why] += number
    return total


def _counted(kind: str, whys: Counter[str]) -> Iterator[Remainder]:
    for why, number in whys.most_common():
        if number:
            yield Remainder(kind, number, why)
