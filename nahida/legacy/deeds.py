"""What a decision does to the rows, in the caller's transaction, kept in the ledger of its record (DESIGN 8.5-8.8).

Each returns the result of the record. What does not come out as it was planned raises, and nothing stays of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from django.db.models import F, Max, Min
from django.db.models.functions import Greatest, Least

from channels_app.addresses import ChatAddress, SessionKey
from memory_app.models import DreamState, MemoryTurn
from nahida.legacy.decide import DecisionError, typed_key
from nahida.legacy.evidence import REQUESTER
from nahida.legacy.facts import parsed, requester_of, task_of
from nahida.legacy.gather import KIND
from nahida.legacy.ground import Ground, allow, lock_ground
from nahida.legacy.inspect import lines_of
from nahida.legacy.proposals import (
    DISABLE_CRON,
    KEEP_LEGACY,
    MANUAL_REVIEW,
    RENAME,
    RETARGET,
    SPLIT,
)
from nahida.legacy.records import close
from nahida.legacy.scoping import follow_memory
from nahida.legacy.tying import fates, switch_off, tie
from sessions_app import rekey
from sessions_app.ledger import Ledger
from sessions_app.models import Approval, Chat, MigrationLog, Session

RENAMED: Final = "renamed"
MERGED: Final = "merged"
DIVIDED: Final = "split"
KEPT: Final = "kept_legacy"
CRON_DISABLED: Final = "cron_disabled"
REJECTED: Final = "rejected"

DEEDS = {
    Approval.REJECTED: REJECTED,
    Approval.KEEP_LEGACY: KEEP_LEGACY,
    Approval.RENAME: RENAME,
    Approval.SPLIT: SPLIT,
}
# Decided by themselves; the others go along with their requester.
OWN_WAYS = (Approval.REJECTED, Approval.KEEP_LEGACY, Approval.RENAME, Approval.SPLIT)
TURNS = "memory_app.MemoryTurn.session"


class RefusedError(Exception):
    """The record cannot be applied as it stands; the message says what a person can do."""


@dataclass(frozen=True, slots=True)
class Act:
    """A record that is being applied. `log` is what its history tells beside the result.

    `after` is done when its own changes are kept: those of other records come later, and are taken back before.
    """

    record: MigrationLog
    ledger: Ledger
    who: str
    allows: bool
    log: dict[str, Any] = field(default_factory=dict)
    after: list[Callable[[], None]] = field(default_factory=list)

    @property
    def planned(self) -> dict[str, Any]:
        affected: dict[str, Any] = self.record.affected
        return affected

    def expect(self, what: str, number: int) -> None:
        if number != self.planned.get(what, 0):
            raise RefusedError(
                f"{number} {what} would have moved, {self.planned.get(what, 0)} were planned: inspect again"
            )


def do(record: MigrationLog, *, who: str, allows: bool) -> str:
    """Do what was decided, close the record, and return its result."""
    deed = DEEDS.get(Approval(record.approval), record.recommendation)
    with Ledger(record) as ledger:
        act = Act(record, ledger, who, allows)
        result = _ACTS[deed](act) if deed in _ACTS else _refuse(act)
    for step in act.after:
        step()
    close(record, result, who=who, **act.log)
    return result


def _refuse(act: Act) -> str:
    raise RefusedError(
        f"there is nothing to do for {act.record.recommendation}: decide it otherwise"
    )


def _reject(act: Act) -> str:
    return REJECTED


def _keep(act: Act) -> str:
    session = _session(act)
    ground = lock_ground([session.pk], _chats_of_jobs(act, renames=False), act.ledger)
    act.ledger.update(Session.objects.filter(pk=session.pk), legacy_untyped=True)
    _settle_jobs(act, ground, renames=False)
    _tell_overrides(act, ground, session)
    return KEPT


def _disable(act: Act) -> str:
    ground = lock_ground([], _chats_of_jobs(act, renames=False), act.ledger)
    _settle_jobs(act, ground, renames=False)
    return CRON_DISABLED


def _rename(act: Act) -> str:
    wanted = _target(act.record.new_key, "new_session_id")
    _require_requester(act.record)
    children = list(_children(act, wanted))
    sessions = [pk for pk in (act.record.subject_pk, *(its.subject_pk for its in children)) if pk]
    jobs = [address for one in (act.record, *children) for address in _chats_told(one)]
    ground = lock_ground(sessions, [wanted.address, *jobs], act.ledger)
    if act.record.subject_pk is None:
        _settle_jobs(act, ground, renames=True)
        return RENAMED
    act.after.extend(partial(_take_along, act, child, ground) for child in children)
    return _move(act, wanted, ground)


def _move(act: Act, wanted: SessionKey, ground: Ground) -> str:
    """Give the session its key in its chat, with all that hangs on it; one that has the key already takes it in."""
    session, chat = _session(act), ground.chat(wanted.address)
    key = wanted.at(chat.address.with_thread(wanted.address.thread_id))
    overrides = ground.overrides_of(session.pk)
    act.expect("active_sessions", len(overrides))
    twin = Session.objects.filter(key=str(key)).exclude(pk=session.pk).first()
    if twin is None:
        rekey.rename_session(session, key, ledger=act.ledger, chat=chat, legacy_untyped=False)
    else:
        _require_sure(twin, chat)
        moved = rekey.merge_sessions(session, twin, ledger=act.ledger)
        act.expect("memory_turns", moved[TURNS])
    _move_overrides(act, session.key, overrides, chat)
    act.expect("memory_items", follow_memory(act.record, chat, act.ledger))
    _settle_jobs(act, ground, renames=True)
    if act.allows:
        allow(chat, act.ledger)
    act.ledger.stand(twin or session)
    act.record.new_key = str(key)
    return RENAMED if twin is None else MERGED


def _require_sure(twin: Session, chat: Chat) -> None:
    doubted = MigrationLog.objects.filter(
        kind=KIND, subject_pk=twin.pk, recommendation=MANUAL_REVIEW, result=""
    )
    if twin.chat_id != chat.pk or doubted.exists():
        raise RefusedError(f"{twin.key} exists and is in doubt itself: decide that one first")


def _move_overrides(act: Act, old_key: str, overrides: list[Any], chat: Chat) -> None:
    """An override of the same number follows its session; the one of the typed chat stays before it."""
    family = parsed(old_key)
    for lane in overrides:
        its = lane.chat.address
        if family is None or its.typed or its != family.address:
            act.log.setdefault("overrides_left", []).append(str(its))
        elif not rekey.move_override(lane, chat, ledger=act.ledger):
            act.log.setdefault("overrides_given_up", []).append(str(its))


def _tell_overrides(act: Act, ground: Ground, session: Session) -> None:
    """If a session stays, so does what leads to it, and the log says so."""
    left = [str(lane.chat.address) for lane in ground.overrides_of(session.pk)]
    if left:
        act.log["overrides_left"] = left


def _children(act: Act, wanted: SessionKey) -> Iterator[MigrationLog]:
    """Yield the records of the subagents' sessions that go along, their own children included."""
    for child in act.planned.get("children", []):
        rows = MigrationLog.objects.filter(kind=KIND, old_key=child["old"], result="")
        its = rows.exclude(approval__in=OWN_WAYS).select_for_update().first()
        if its is None or not _names_only(its, wanted.address.chat_key):
            continue
        key = parsed(its.old_key)
        assert key is not None, "a child's key is its requester's and more"
        its.new_key = str(wanted.subagent(task_of(key)))
        yield its


def _names_only(record: MigrationLog, chat_key: str) -> bool:
    own = (part for part in record.evidence if part["source"] != REQUESTER)
    return all(part["chat_address"] == chat_key for part in own)


def _take_along(act: Act, child: MigrationLog, ground: Ground) -> None:
    with Ledger(child) as ledger:
        its = Act(child, ledger, act.who, act.allows)
        result = _move(its, SessionKey.parse(child.new_key), ground)
    close(child, result, who=act.who, along_with=act.record.pk, **its.log)


def _require_requester(record: MigrationLog) -> None:
    """What only its requester's move says of a subagent's session holds once that has happened."""
    if record.approval == Approval.RENAME:
        return
    if not any(part["source"] == REQUESTER for part in record.evidence):
        return
    key = SessionKey.parse(record.new_key)
    requester = requester_of(str(key), task_of(key))
    if not Session.objects.filter(key=requester).exists():
        raise RefusedError(f"its requester is not {requester} yet: apply that one first")


def _split(act: Act) -> str:
    session = _session(act)
    targets = [one for one in act.record.targets if one["turn_ids"]]
    keys = [_target(one["new_session_id"], "split_targets") for one in targets]
    _check_turns(session, targets)
    addresses = [*(key.address for key in keys), *_chats_of_jobs(act, renames=False)]
    ground = lock_ground([session.pk], addresses, act.ledger)
    for key, target in zip(keys, targets, strict=True):
        _split_off(act, session, key, target["turn_ids"], ground.chat(key.address))
    act.ledger.update(Session.objects.filter(pk=session.pk), legacy_untyped=True)
    _settle_jobs(act, ground, renames=False)
    _tell_overrides(act, ground, session)
    act.ledger.stand(session)
    return DIVIDED


def _split_off(act: Act, session: Session, wanted: SessionKey, ids: list[int], chat: Chat) -> None:
    key = wanted.at(chat.address.with_thread(wanted.address.thread_id))
    into = Session.objects.filter(key=str(key)).first()
    is_new = into is None
    if into is None:
        into = _part_of(session, key, chat, act.ledger)
    else:
        _require_sure(into, chat)
    moved = rekey.split_session(
        session, into, rows=MemoryTurn.objects.all(), ids=ids, ledger=act.ledger
    )
    if moved != len(ids):
        raise RefusedError(f"{moved} of {len(ids)} turns would have moved to {key}: inspect again")
    _share_times(into, ids, act.ledger, is_new=is_new)
    _share_dreams(session, into, act.ledger, is_new=is_new)
    if act.allows:
        allow(chat, act.ledger)
    act.ledger.stand(into)


def _part_of(session: Session, key: SessionKey, chat: Chat, ledger: Ledger) -> Session:
    imported = session.imported or {}
    part = Session.objects.create(
        key=str(key),
        suffix=key.suffix,
        chat=chat,
        settings=session.settings,
        title=session.title,
        imported_at=session.imported_at,
        imported={"source": imported.get("source"), "split_from": session.key},
    )
    ledger.inserted(part)
    return part


def _share_times(into: Session, ids: list[int], ledger: Ledger, *, is_new: bool) -> None:
    span = MemoryTurn.objects.filter(session=into, pk__range=(ids[0], ids[-1])).aggregate(
        first=Min("created_at"), last=Max("created_at")
    )
    rows = Session.objects.filter(pk=into.pk)
    if is_new:
        ledger.update(rows, created_at=span["first"], last_active_at=span["last"])
    else:
        ledger.update(
            rows,
            created_at=Least(F("created_at"), span["first"]),
            last_active_at=Greatest(F("last_active_at"), span["last"]),
        )


def _share_dreams(session: Session, into: Session, ledger: Ledger, *, is_new: bool) -> None:
    """A new part was dreamt as far as the whole; a session that takes one in, as far as both were."""
    whole = DreamState.objects.filter(session=session).first()
    if is_new and whole:
        ledger.inserted(DreamState.objects.create(session=into, dreamt_to=whole.dreamt_to))
    if not is_new:
        passed = whole.dreamt_to if whole else 0
        rows = DreamState.objects.filter(session=into, dreamt_to__gt=passed)
        ledger.update(rows, dreamt_to=passed)


def _check_turns(session: Session, targets: list[dict[str, Any]]) -> None:
    """Every turn is still one of the session, and goes where its own envelope does not contradict."""
    wanted = {pk: one["chat_address"] for one in targets for pk in one["turn_ids"]}
    wrong = [
        f"turn {line.id} came from {line.chat} and cannot go to {chat}"
        for line in lines_of(session.pk)
        if (chat := wanted.pop(line.id, line.chat)) != line.chat and line.chat
    ]
    if wrong:
        raise RefusedError(wrong[0])
    if wanted:
        raise RefusedError(f"turn {min(wanted)} is not of {session.key} any more: inspect again")


def _settle_jobs(act: Act, ground: Ground, *, renames: bool) -> None:
    found = list(fates(act.record, renames=renames))
    act.expect("cron_jobs", len(found))
    for job, chat_key, why in found:
        if chat_key:
            chat = ground.chats[chat_key]
            tie(job, chat, act.ledger)
            if act.allows:
                allow(chat, act.ledger)
        elif why:
            switch_off(job, why, act.ledger)


def _chats_of_jobs(act: Act, *, renames: bool) -> list[ChatAddress]:
    keys = (chat_key for _, chat_key, _ in fates(act.record, renames=renames) if chat_key)
    return [ChatAddress.parse(key) for key in keys]


def _chats_told(record: MigrationLog) -> list[ChatAddress]:
    jobs = record.affected.get("jobs", [])
    return [ChatAddress.parse(job["chat_address"]) for job in jobs if job["outcome"] == RETARGET]


def _target(text: str, field: str) -> SessionKey:
    try:
        return typed_key(text, field=field)
    except DecisionError as error:
        raise RefusedError(str(error)) from error


def _session(act: Act) -> Session:
    rows = Session.objects.filter(pk=act.record.subject_pk or 0, key=act.record.old_key)
    session = rows.select_for_update().first()
    if session is None:
        raise RefusedError(f"no session has the key {act.record.old_key} any more: inspect again")
    return session


_ACTS = {
    REJECTED: _reject,
    KEEP_LEGACY: _keep,
    DISABLE_CRON: _disable,
    RENAME: _rename,
    SPLIT: _split,
}
