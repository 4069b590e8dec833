"""Renaming and merging of chats and sessions (DESIGN 4, R12).

Rows that point to a chat or session by ForeignKey need nothing when a key changes, and one UPDATE a table when two become one;
they are found through `_meta`, so a table that is added later is not forgotten. A model whose unique constraint holds such a
ForeignKey says itself how its rows merge, in a classmethod `merge_rows(column, old_pk, into_pk)`; a test finds those that do not.
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from django.db import IntegrityError, models, transaction
from django.db.models import F
from django.db.models.functions import Greatest, Least
from django.utils import timezone

from channels_app.addresses import ChatAddress, SessionKey
from channels_app.clock import DbNow
from channels_app.fields import address_columns
from sessions_app.models import (
    Access,
    Approval,
    Chat,
    ChatAlias,
    Lane,
    MigrationLog,
    Session,
)

# Of two chats that become one, what the one that stays has not set comes from the other.
KEPT_IF_EMPTY = ("title", "time_zone", "model", "pairing_code", "first_line")

Imported = dict[str, Any] | None


class Requeue(Protocol):
    """Hand the turns of a lane that ends to the one that survives; supplied from above."""

    def __call__(self, ended: Lane, *, into: Lane) -> None: ...


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


def rename_session(session: Session, key: SessionKey) -> None:
    """Give a session another key of its chat; nobody else has it. One UPDATE, however long its history."""
    Session.objects.filter(pk=session.pk).update(key=str(key), suffix=key.suffix)


def merge_sessions(old: Session, into: Session) -> None:
    """Move everything of `old` to `into` and remove its row. The caller holds the lanes of both."""
    for model, column in _pointing_at(Session):
        _repoint(model, column, old.pk, into.pk)
    Session.objects.filter(pk=into.pk).update(
        created_at=Least(F("created_at"), old.created_at),
        last_active_at=Greatest(F("last_active_at"), old.last_active_at),
        # What was set aside in either stays set aside.
        history_from=Greatest(F("history_from"), old.history_from),
        settings={**old.settings, **into.settings},
        title=into.title or old.title,
        imported_at=into.imported_at or old.imported_at,
        imported=_both_imported(old.imported, into.imported),
    )
    old.delete()


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
    lanes = _lock_lanes(chat)
    if not _lock_chats(chat) or _lanes_of(chat) != [lane.pk for lane in lanes]:
        return False
    if _chat_at(to) not in (None, chat):
        return False
    old = chat.address
    # A row that was merged into this chat may still hold the address: the two change theirs.
    stub = Chat.objects.filter(chat_key=to.chat_key).first()
    if stub is not None:
        Chat.objects.filter(pk=stub.pk).update(chat_key=uuid.uuid4().hex)
    _set_address(chat, to)
    if stub is not None:
        _set_address(stub, old)
    _move_sessions(chat, chat, to)
    _follow(old, to, lanes)
    _remember(old, to, chat, reason, result="renamed")
    return True


def _set_address(chat: Chat, address: ChatAddress) -> None:
    Chat.objects.filter(pk=chat.pk).update(
        chat_key=address.chat_key,
        channel=address.channel,
        target_type=address.target_type,
        target_id=address.target_id,
    )


def _merge_chats(old: Chat, into: Chat, reason: str, requeue: Requeue) -> bool:
    """False: something changed before all of it was locked, look again."""
    lanes = _lock_lanes(old, into)
    if not _lock_chats(old, into) or _lanes_of(old, into) != [lane.pk for lane in lanes]:
        return False
    source, target = old.address, into.address
    _move_sessions(old, into, target)
    _merge_lanes(old, into, requeue)
    for model, column in _pointing_at(Chat):
        _repoint(model, column, old.pk, into.pk)
    _join_settings(old, into)
    Chat.objects.filter(pk=old.pk).update(merged_into=into)
    _follow(source, target, lanes)
    _remember(source, target, into, reason, result="merged")
    return True


def _move_sessions(old: Chat, into: Chat, to: ChatAddress) -> None:
    """Give the sessions of a chat their keys at the new address, joining those that exist there."""
    for session in Session.objects.filter(chat=old):
        key = session.session_key.at(to.with_thread(session.session_key.address.thread_id))
        twin = Session.objects.filter(key=str(key)).first()
        if twin is not None:
            merge_sessions(session, twin)
            continue
        rename_session(session, key)
        Session.objects.filter(pk=session.pk).update(chat=into)


def _merge_lanes(old: Chat, into: Chat, requeue: Requeue) -> None:
    for lane in Lane.objects.filter(chat=old).order_by("pk"):
        twin = Lane.objects.filter(chat=into, thread=lane.thread).first()
        if twin is None:
            Lane.objects.filter(pk=lane.pk).update(chat=into)
            continue
        survivor, other = _by_survival(lane, twin)
        active = _active_of_both(lane, twin)
        requeue(other, into=survivor)
        for model, column in _pointing_at(Lane):
            _repoint(model, column, other.pk, survivor.pk)
        other.delete()
        Lane.objects.filter(pk=survivor.pk).update(chat=into, active_session=active)


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


def _follow(old: ChatAddress, new: ChatAddress, lanes: list[Lane]) -> None:
    """Rewrite the text columns that follow a rename, by exact match only."""
    threads = {"", *(lane.thread for lane in lanes)}
    for model, field in address_columns():
        if field.follows is None:
            continue
        for thread in threads:
            rows = model._base_manager.filter(
                field.follows, **{field.name: str(old.with_thread(thread))}
            )
            rows.update(**{field.name: str(new.with_thread(thread)), **field.resets})


def _remember(old: ChatAddress, new: ChatAddress, chat: Chat, reason: str, *, result: str) -> None:
    ChatAlias.objects.filter(address=new.chat_key).delete()
    ChatAlias.objects.update_or_create(
        address=old.chat_key, defaults={"chat": chat, "reason": reason[:64]}
    )
    now = timezone.now()
    MigrationLog.objects.create(
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


def _lock_lanes(*chats: Chat) -> list[Lane]:
    return list(Lane.objects.filter(chat__in=chats).order_by("pk").select_for_update())


def _lanes_of(*chats: Chat) -> list[int]:
    return list(Lane.objects.filter(chat__in=chats).order_by("pk").values_list("pk", flat=True))


def _lock_chats(*chats: Chat) -> bool:
    """Lock chats and read them again; False if one was merged away or moved meanwhile."""
    keys = [chat.chat_key for chat in chats]
    rows = Chat.objects.filter(pk__in=[chat.pk for chat in chats], merged_into=None)
    locked = list(rows.order_by("pk").select_for_update())
    for chat in chats:
        chat.refresh_from_db()
    return len(locked) == len(chats) and [chat.chat_key for chat in chats] == keys


def _pointing_at(target: type[models.Model]) -> Iterator[tuple[type[models.Model], str]]:
    """Yield model and column of every ForeignKey to `target`, hidden ones and many-to-many tables included."""
    for relation in target._meta.get_fields(include_hidden=True):
        if isinstance(relation, models.ManyToOneRel):
            yield relation.field.model, relation.field.name


def _repoint(model: type[models.Model], column: str, old_pk: int, into_pk: int) -> None:
    rule: Callable[[str, int, int], None] | None = getattr(model, "merge_rows", None)
    if rule is not None:
        rule(column, old_pk, into_pk)
        return
    rows = model._base_manager.filter(**{column: old_pk})
    if model._meta.auto_created:  # a many-to-many table: what both have stays once
        kept = model._base_manager.filter(**{column: into_pk})
        (other,) = (
            field.name for field in model._meta.fields if field.is_relation and field.name != column
        )
        rows.filter(**{f"{other}__in": kept.values(other)}).delete()
    rows.update(**{column: into_pk})
