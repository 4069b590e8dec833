"""Renaming, merging and splitting of chats and sessions (DESIGN 4, R12). Every change is kept in a ledger, so it can be taken back.

Rows that point to a chat or session by ForeignKey need nothing when a key changes, and one UPDATE a table when two become one;
they are found through `_meta`, so a table that is added later is not forgotten. A model whose unique constraint holds such a
ForeignKey says itself how its rows merge, in a classmethod `merge_rows(column, old_pk, into_pk)`; a test finds those that do not.
"""

import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from django.db import IntegrityError, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest, Least
from django.utils import timezone

from channels_app.addresses import ChatAddress, SessionKey
from channels_app.clock import DbNow
from channels_app.fields import address_columns
from sessions_app.ledger import AT_ONCE, Ledger, Rows
from sessions_app.models import (
    Access,
    Approval,
    Chat,
    ChatAlias,
    Lane,
    MigrationLog,
    Session,
)
from sessions_app.relations import pointing_at

# Of two chats that become one, what the one that stays has not set comes from the other.
KEPT_IF_EMPTY = ("title", "time_zone", "model", "pairing_code", "first_line")

Imported = dict[str, Any] | None


class Requeue(Protocol):
    """Make the turns of a lane that ends ready for the one that survives, and wake that; supplied from above."""

    def __call__(self, ended: Lane, *, into: Lane, ledger: Ledger) -> None: ...


def move_chat(chat: Chat, to: ChatAddress, *, reason: str, requeue: Requeue) -> Chat:
    """Give a chat a new address, or join it with the chat that has it. Everything follows in one transaction.

    Returns the chat that is left. Moving it where it already is changes nothing.
    """
    assert to.typed, "a chat only ever moves to an address whose type is known"
    to = to.with_thread("")
    while True:
        chat = _root(Chat.objects.get(pk=chat.pk))
        if chat.chat_key == to.chat_key:
            return chat
        into = _chat_at(to)
        try:
            with transaction.atomic():
                if into is None or into.pk == chat.pk:
                    if _rename_chat(chat, to, reason):
                        return Chat.objects.get(pk=chat.pk)
                elif _merge_chats(chat, into, reason, requeue):
                    return Chat.objects.get(pk=into.pk)
        except IntegrityError:
            # A chat was made at that address just now: join it. Anything else is not ours to swallow.
            if into is not None or _chat_at(to) is None:
                raise


def rename_session(session: Session, key: SessionKey, *, ledger: Ledger, **more: Any) -> None:
    """Give a session another key, which nobody else has. One row, however long its history. `more` are other columns of it."""
    rows = Session.objects.filter(pk=session.pk)
    ledger.update(rows, key=str(key), suffix=key.suffix, **more)


def merge_sessions(old: Session, into: Session, *, ledger: Ledger) -> dict[str, int]:
    """Move everything of `old` to `into` and remove its row. The caller holds the lanes of both.

    Returns the number of rows that moved, for each ForeignKey.
    """
    moved = {
        f"{model._meta.label}.{column}": _repoint(model, column, old.pk, into.pk, ledger)
        for model, column in pointing_at(Session)
    }
    _join_sessions(old, into, ledger)
    ledger.delete(old)
    return moved


def _join_sessions(old: Session, into: Session, ledger: Ledger) -> None:
    ledger.update(
        Session.objects.filter(pk=into.pk),
        created_at=Least(F("created_at"), old.created_at),
        last_active_at=Greatest(F("last_active_at"), old.last_active_at),
        # What was set aside in either stays set aside.
        history_from=Greatest(F("history_from"), old.history_from),
        settings={**old.settings, **into.settings},
        title=into.title or old.title,
        imported_at=into.imported_at or old.imported_at,
        imported=_both_imported(old.imported, into.imported),
    )


def split_session(
    session: Session, into: Session, *, rows: Rows, ids: Sequence[int], ledger: Ledger
) -> int:
    """Move some of the rows that point to a session to another one, with what belongs to those rows. The caller holds the lanes.

    `rows` are those of one model, by its column `session`; `ids` ascend. Returns the number of rows that moved.
    """
    moved = 0
    for start in range(0, len(ids), AT_ONCE):
        chunk = ids[start : start + AT_ONCE]
        named = rows.filter(pk__in=chunk)
        moved += ledger.replace(named, "session", old=session.pk, new=into.pk)
        for model, column in pointing_at(rows.model):
            for field in _sessions_of(model):
                theirs = model._base_manager.filter(**{f"{column}__in": chunk, field: session.pk})
                ledger.update(theirs, **{field: into})
    return moved


def _sessions_of(model: type[models.Model]) -> list[str]:
    return [field.name for field in model._meta.local_fields if field.related_model is Session]


def follow_session(old_key: str, chat: Chat, *, which: Q, ledger: Ledger) -> None:
    """Give those rows whose text column names a session by its old key to the chat it belongs to now."""
    for model, field in address_columns():
        if field.of_session is not None:
            rows = model._base_manager.filter(field.of_session, which, **{field.name: old_key})
            ledger.update(rows, **{field.name: chat.chat_key, **field.becomes})


def move_override(lane: Lane, chat: Chat, *, ledger: Ledger) -> bool:
    """Let the lane of an old chat, in which nothing ever ran, become that of its session's typed chat. The caller holds both.

    False: the typed chat has a lane whose own `/new` stays active, and only that one is left.
    """
    twin = Lane.objects.filter(chat=chat, thread=lane.thread).first()
    if twin is None:
        ledger.update(Lane.objects.filter(pk=lane.pk), chat=chat)
        return True
    active = _active_of_both(lane, twin)
    for model, column in pointing_at(Lane):
        _repoint(model, column, lane.pk, twin.pk, ledger)
    ledger.delete(lane)
    ledger.update(Lane.objects.filter(pk=twin.pk), active_session=active)
    return active == lane.active_session


def _both_imported(old: Imported, into: Imported) -> Imported:
    if old is None or into is None:
        return old if into is None else into
    return {**into, "merged": [*into.get("merged", []), old]}


def _chat_at(address: ChatAddress) -> Chat | None:
    """Return what the chat whose row holds an address has become. An alias does not hold its address."""
    chat = Chat.objects.filter(chat_key=address.chat_key).first()
    return chat and _root(chat)


def _root(chat: Chat) -> Chat:
    while chat.merged_into_id is not None:
        chat = Chat.objects.get(pk=chat.merged_into_id)
    return chat


def _rename_chat(chat: Chat, to: ChatAddress, reason: str) -> bool:
    """False: something changed before all of it was locked, look again."""
    lanes = lock_lanes(chat)
    if not lock_chats(chat) or lanes_of(chat) != [lane.pk for lane in lanes]:
        return False
    # A row that was merged into this chat may still hold the address: the two change theirs. It is read once, as a chat that is
    # made at the address after that must not be taken for such a row: the address is then refused, and looked at again.
    stub = Chat.objects.filter(chat_key=to.chat_key).first()
    if stub is not None and _root(stub) != chat:
        return False
    old = chat.address
    with Ledger(_record(old, to, chat, reason, result="renamed")) as ledger:
        if stub is not None:
            ledger.update(Chat.objects.filter(pk=stub.pk), chat_key=uuid.uuid4().hex)
        _set_address(chat, to, ledger)
        if stub is not None:
            _set_address(stub, old, ledger)
        _move_sessions(chat, chat, to, ledger)
        _follow(old, to, lanes, ledger)
        _remember(old, to, chat, reason, ledger)
    return True


def _set_address(chat: Chat, address: ChatAddress, ledger: Ledger) -> None:
    ledger.update(
        Chat.objects.filter(pk=chat.pk),
        chat_key=address.chat_key,
        channel=address.channel,
        target_type=address.target_type,
        target_id=address.target_id,
    )


def _merge_chats(old: Chat, into: Chat, reason: str, requeue: Requeue) -> bool:
    """False: something changed before all of it was locked, look again."""
    lanes = lock_lanes(old, into)
    if not lock_chats(old, into) or lanes_of(old, into) != [lane.pk for lane in lanes]:
        return False
    source, target = old.address, into.address
    with Ledger(_record(source, target, into, reason, result="merged")) as ledger:
        _move_sessions(old, into, target, ledger)
        _merge_lanes(old, into, requeue, ledger)
        for model, column in pointing_at(Chat):
            _repoint(model, column, old.pk, into.pk, ledger)
        with ledger.watch(Chat.objects.filter(pk__in=[old.pk, into.pk])):
            _join_settings(old, into)
            Chat.objects.filter(pk=old.pk).update(merged_into=into)
        _follow(source, target, lanes, ledger)
        _remember(source, target, into, reason, ledger)
    return True


def _move_sessions(old: Chat, into: Chat, to: ChatAddress, ledger: Ledger) -> None:
    """Give the sessions of a chat their keys at the new address, joining those that exist there."""
    for session in Session.objects.filter(chat=old):
        key = session.session_key.at(to.with_thread(session.session_key.address.thread_id))
        twin = Session.objects.filter(key=str(key)).first()
        if twin is not None:
            merge_sessions(session, twin, ledger=ledger)
            continue
        rename_session(session, key, ledger=ledger, chat=into)


def _merge_lanes(old: Chat, into: Chat, requeue: Requeue, ledger: Ledger) -> None:
    for lane in Lane.objects.filter(chat=old).order_by("pk"):
        twin = Lane.objects.filter(chat=into, thread=lane.thread).first()
        if twin is None:
            ledger.update(Lane.objects.filter(pk=lane.pk), chat=into)
            continue
        survivor, other = _by_survival(lane, twin)
        active = _active_of_both(lane, twin)
        with ledger.watch(Lane.objects.filter(pk=survivor.pk)):
            requeue(other, into=survivor, ledger=ledger)
        for model, column in pointing_at(Lane):
            _repoint(model, column, other.pk, survivor.pk, ledger)
        ledger.delete(other)
        ledger.update(Lane.objects.filter(pk=survivor.pk), chat=into, active_session=active)


def _by_survival(lane: Lane, twin: Lane) -> tuple[Lane, Lane]:
    """The holder of a live token goes on undisturbed; of two, or of none, the older row."""
    live = set(
        Lane.objects.filter(
            pk__in=[lane.pk, twin.pk], token__isnull=False, lease_until__gte=DbNow()
        ).values_list("pk", flat=True)
    )
    survivor, other = sorted(
        (lane, twin), key=lambda candidate: (candidate.pk not in live, candidate.pk)
    )
    return survivor, other


def _active_of_both(lane: Lane, twin: Lane) -> Session:
    """A conversation begun by /new wins over the base one, and the address that stays over the old one."""
    lane.refresh_from_db()
    twin.refresh_from_db()
    if not twin.active_session.suffix and lane.active_session.suffix:
        return lane.active_session
    return twin.active_session


def _join_settings(old: Chat, into: Chat) -> None:
    accesses = {old.access, into.access}
    if Access.BLOCKED in accesses:
        into.access = Access.BLOCKED
    elif Access.ALLOWED in accesses:
        into.access = Access.ALLOWED
    into.is_owner = into.is_owner or old.is_owner
    for column in KEPT_IF_EMPTY:
        setattr(into, column, getattr(into, column) or getattr(old, column))
    if into.answer_policy == Chat._meta.get_field("answer_policy").default:
        into.answer_policy = old.answer_policy
    into.refused_count += old.refused_count
    parent = into.parent_id or old.parent_id
    into.parent_id = None if parent in (old.pk, into.pk) else parent
    columns = ["access", "is_owner", "answer_policy", "refused_count", "parent", *KEPT_IF_EMPTY]
    into.save(update_fields=columns)


def _follow(old: ChatAddress, new: ChatAddress, lanes: list[Lane], ledger: Ledger) -> None:
    """Rewrite the text columns that follow a rename, by exact match only."""
    threads = {"", *(lane.thread for lane in lanes)}
    for model, field in address_columns():
        if field.follows is None:
            continue
        following = model._base_manager.filter(field.follows)
        for thread in threads:
            before, after = str(old.with_thread(thread)), str(new.with_thread(thread))
            if field.resets:
                rows = following.filter(**{field.name: before}).exclude(**field.resets)
                ledger.update(rows, **field.resets)
            ledger.replace(following, field.name, old=before, new=after)


def _remember(old: ChatAddress, new: ChatAddress, chat: Chat, reason: str, ledger: Ledger) -> None:
    with ledger.watch(ChatAlias.objects.filter(address__in=[old.chat_key, new.chat_key])):
        ChatAlias.objects.filter(address=new.chat_key).delete()
        ChatAlias.objects.update_or_create(
            address=old.chat_key, defaults={"chat": chat, "reason": reason[:64]}
        )


def _record(
    old: ChatAddress, new: ChatAddress, chat: Chat, reason: str, *, result: str
) -> MigrationLog:
    now = timezone.now()
    return MigrationLog.objects.create(
        kind="chat_move",
        old_key=old.chat_key,
        new_key=new.chat_key,
        subject_pk=chat.pk,
        recommendation="rename",
        approval=Approval.APPROVED,
        result=result,
        reason=reason,
        history=[{"what": result, "who": "system", "at": now.isoformat()}],
        finished_at=now,
    )


def lock_lanes(*chats: Chat) -> list[Lane]:
    return list(Lane.objects.filter(chat__in=chats).order_by("pk").select_for_update())


def lanes_of(*chats: Chat) -> list[int]:
    return list(Lane.objects.filter(chat__in=chats).order_by("pk").values_list("pk", flat=True))


def lock_chats(*chats: Chat) -> bool:
    """Lock chats and read them again; False if one was merged away or moved meanwhile."""
    keys = [chat.chat_key for chat in chats]
    rows = Chat.objects.filter(pk__in=[chat.pk for chat in chats], merged_into=None)
    locked = list(rows.order_by("pk").select_for_update())
    for chat in chats:
        chat.refresh_from_db()
    return len(locked) == len(chats) and [chat.chat_key for chat in chats] == keys


def _repoint(
    model: type[models.Model], column: str, old_pk: int, into_pk: int, ledger: Ledger
) -> int:
    rows = model._base_manager.filter(**{column: old_pk})
    kept = model._base_manager.filter(**{column: into_pk})
    rule: Callable[[str, int, int], None] | None = getattr(model, "merge_rows", None)
    if rule is not None:
        with ledger.watch(rows | kept):
            number = rows.count()
            rule(column, old_pk, into_pk)
        return number
    if model._meta.auto_created:  # a many-to-many table: what both have stays once
        (other,) = (
            field.name for field in model._meta.fields if field.is_relation and field.name != column
        )
        doubled = rows.filter(**{f"{other}__in": kept.values(other)})
        with ledger.watch(doubled):
            doubled.delete()
    return ledger.replace(model._base_manager.all(), column, old=old_pk, new=into_pk)
