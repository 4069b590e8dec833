"""Jobs of the old bot that say their chat themselves: tied to it, and the history of their own sessions moved (S34-S36)."""

from collections.abc import Iterator
from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from channels_app.addresses import UNKNOWN, AddressError, ChatAddress, SessionKey
from nahida.legacy.apply import Outcome, apply_record
from nahida.legacy.decide import DecisionError, decide
from nahida.legacy.gather import KIND
from nahida.legacy.ground import allow, lock_ground
from nahida.legacy.inspect import inspect
from nahida.legacy.proposals import KEEP_LEGACY, RENAME, RETARGET
from nahida.legacy.stated import by_job
from nahida.legacy.tying import is_tied, tie
from scheduler_app.models import CronJob, SessionMode
from sessions_app.ledger import Ledger
from sessions_app.models import Approval, MigrationLog, Session

REPAIR: Final = "cron_repair"
TIED: Final = "tied"
LEFT: Final = "left"

NONE: Final = "none"
ACTIVE: Final = "active"
ALL: Final = "all"
HISTORIES: Final = (NONE, ACTIVE, ALL)


def ties(*, who: str, allows: bool) -> Iterator[Outcome]:
    """Tie every job that names a typed chat and is not tied yet, each in a record of its own."""
    for pk in _imported().values_list("pk", flat=True):
        with transaction.atomic():
            job = CronJob.objects.select_related("chat").get(pk=pk)
            chat_key = by_job(job.imported_key, job.imported)
            if chat_key and not is_tied(job):
                yield _tie(job, chat_key, who, allows=allows)


def _tie(job: CronJob, chat_key: str, who: str, *, allows: bool) -> Outcome:
    now = timezone.now()
    record = MigrationLog.objects.create(
        kind=REPAIR,
        old_key=job.imported_key,
        new_key=chat_key,
        subject_pk=job.pk,
        recommendation=RETARGET,
        approval=Approval.APPROVED,
        result=TIED,
        history=[{"what": TIED, "who": who, "at": now.isoformat()}],
        finished_at=now,
    )
    with Ledger(record) as ledger:
        ground = lock_ground([], [ChatAddress.parse(chat_key)], ledger)
        tie(job, ground.chats[chat_key], ledger)
        if allows:
            allow(ground.chats[chat_key], ledger)
    return Outcome(job.imported_key, TIED, chat_key)


def histories(which: str, *, who: str, allows: bool) -> Iterator[Outcome]:
    """Move the sessions in which jobs ran by themselves to the typed chats of these jobs: of all, or of those still active.

    It is a rename like any other, decided here. What a person has decided, or what other evidence contradicts, stays.
    """
    moves = _moves(which)
    if not moves:
        return
    inspect(who=who)
    for old_key, targets in moves.items():
        record = MigrationLog.objects.filter(kind=KIND, old_key=old_key, result="").first()
        if record is None or record.approval != Approval.PENDING:
            yield Outcome(old_key, LEFT, reason="it was decided already")
        elif len(targets) > 1:
            yield Outcome(old_key, LEFT, reason=f"its jobs name {' and '.join(sorted(targets))}")
        else:
            yield _move(record, *targets, who=who, allows=allows)


def _move(record: MigrationLog, target: str, *, who: str, allows: bool) -> Outcome:
    try:
        if record.recommendation == RENAME and record.new_key == target:
            decide(record, Approval.APPROVED, who=who)
        elif record.recommendation == KEEP_LEGACY:  # nothing speaks against it
            decide(record, Approval.RENAME, who=who, new_key=target)
        else:
            return Outcome(record.old_key, LEFT, reason=f"look at its record {record.pk}")
    except DecisionError as error:
        return Outcome(record.old_key, LEFT, reason=str(error))
    return apply_record(record.pk, who=who, allows=allows)


def _moves(which: str) -> dict[str, set[str]]:
    """Return the old keys of jobs' own sessions, and the typed keys their jobs would give them."""
    if which == NONE:
        return {}
    jobs = _imported().exclude(session_mode=SessionMode.MAIN).select_related("chat")
    found: dict[str, set[str]] = {}
    for job in jobs:
        address = _address(job)
        if address and (job.active or which == ALL):
            for old_key, new_key in _own_sessions(job, address):
                found.setdefault(old_key, set()).add(new_key)
    there = Session.objects.filter(key__in=found).order_by("pk").values_list("key", flat=True)
    return {old_key: found[old_key] for old_key in there}


def _own_sessions(job: CronJob, address: ChatAddress) -> Iterator[tuple[str, str]]:
    old_id = job.imported.get("job_id") if isinstance(job.imported, dict) else None
    name = job.session_name if job.session_mode == SessionMode.NAMED else old_id
    if not isinstance(name, str) or not name:
        return
    try:
        new = SessionKey(address).cron(name)
        untyped = ChatAddress(address.channel, UNKNOWN, address.target_id)
        old = SessionKey(untyped, new.suffix)
    except AddressError:
        return
    for text in (old.legacy_key, str(old)):
        yield text, str(new)


def _address(job: CronJob) -> ChatAddress | None:
    if job.chat is not None and job.chat.address.typed:
        return job.chat.address
    told = by_job(job.imported_key, job.imported)
    return ChatAddress.parse(told) if told else None


def _imported() -> QuerySet[CronJob]:
    return CronJob.objects.filter(imported_at__isnull=False).order_by("pk")
