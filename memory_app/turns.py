"""Turns through a lane: append, take, commit (DESIGN 5, R1-R12).

Every transaction here begins with the lane's lock, and whoever works on a batch writes only under the lane's token.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from channels_app import media, outbox
from channels_app.addresses import ChatAddress
from channels_app.messages import PART_CAP, PART_PAUSE, Attachment, storable
from channels_app.models import Delivery
from memory_app import models
from memory_app.files import with_placeholders
from memory_app.models import WANT_AN_ANSWER, MemoryTurn, Role, TurnKind, TurnState
from memory_app.tokens import index_text
from sessions_app import lanes
from sessions_app.ledger import Ledger
from sessions_app.models import Access, Draft, Lane, Session
from sessions_app.routing import access_of, base_session

ATTEMPTS = 3
GAVE_UP = "I tried three times and could not answer that. Please ask again."
# Marks a line that the system wrote, not the model: shown to people, left out of the model's history.
SYSTEM_SOURCE = "system"
MESSAGE_SOURCE = "message"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurn:
    """What `append_turn` stores. `state` None: pending if the kind wants an answer, else done."""

    kind: TurnKind
    content: str
    role: Role = Role.USER
    state: TurnState | None = None
    source: str = ""
    sender: str = ""
    sender_name: str = ""
    rights: str = ""
    message_id: str = ""
    origin: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    sent_at: datetime | None = None
    attachments: tuple[Attachment, ...] = ()
    delivery: Delivery | None = None
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class Take:
    """What a holder found: the lane's count of turns when it looked, and the batch it has to answer."""

    inbox: int
    turn_ids: tuple[int, ...] = ()

    @property
    def batch(self) -> int:
        return self.turn_ids[0]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to an address that is not the answer itself. `record` also stores it in that chat's base session."""

    address: ChatAddress
    text: str
    files: tuple[Attachment, ...] = ()
    record: bool = False
    origin: str = ""
    sender: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a batch is answered with; no text means that nothing is said. A notice is the system's, not the model's."""

    text: str = ""
    is_notice: bool = False
    deliver: bool = True
    reply_to: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    state: TurnState = TurnState.DONE


Also = Callable[[MemoryTurn | None, Delivery | None], None]


def nothing_else(answer: MemoryTurn | None, delivery: Delivery | None) -> None:
    """The `also` of a batch that only needs its answer stored."""


def append_turn(
    where: ChatAddress | Lane, new: NewTurn, *, session: Session | None = None
) -> MemoryTurn:
    """Store a turn in a lane, in its active session unless another is named.

    The one way in, the importer apart. Under the lane's lock, so that id order in a lane is commit order; a `Lane` is one that
    the caller has locked.
    """
    lane = where if isinstance(where, Lane) else lanes.lock(where)
    assert transaction.get_connection().in_atomic_block, "the lane's lock lives in a transaction"
    state = new.state or (
        TurnState.PENDING
        if new.kind in WANT_AN_ANSWER and new.role == Role.USER
        else TurnState.DONE
    )
    content = storable(new.content)
    session = session or lane.active_session
    turn = MemoryTurn.objects.create(
        session=session,
        lane=lane,
        kind=new.kind,
        role=new.role,
        content=content,
        search_tokens=index_text(content),
        source=new.source,
        sender=new.sender,
        sender_name=storable(new.sender_name)[:200],
        rights=new.rights,
        message_id=new.message_id,
        origin=new.origin,
        state=state,
        metadata=new.metadata | ({"part": True} if new.is_part else {}),
        sent_at=new.sent_at,
        delivery=new.delivery,
    )
    models.Attachment.objects.bulk_create(_attachment(turn, file) for file in new.attachments)
    Session.objects.filter(pk=session.pk).update(last_active_at=turn.created_at)
    if state == TurnState.PENDING:
        is_part = new.is_part and new.kind == TurnKind.MESSAGE
        lanes.wake(lane, pause=_pause(lane) if is_part else timedelta(0))
    return turn


def _attachment(turn: MemoryTurn, file: Attachment) -> models.Attachment:
    return models.Attachment(
        turn=turn,
        kind=storable(file.kind)[:16],
        file=file.file,
        platform_id=storable(file.platform_id),
        text=storable(file.text),
        name=media.safe_name(file.name),
        mime=storable(file.mime)[:100],
        size=file.size if file.size is not None and 0 <= file.size < 2**63 else None,
    )


def _pause(lane: Lane) -> timedelta:
    """R7: wait a moment for the next part, but not longer than the cap after the first one."""
    waiting = MemoryTurn.objects.pending().filter(lane=lane, batch=None)
    last, *before = waiting.order_by("-pk").values_list("created_at", "metadata")
    first = last[0]
    for at, metadata in before:
        # What is no part, or came long before, belongs to another message that waits here.
        if not metadata.get("part") or first - at > PART_CAP:
            break
        first = at
    return max(min(PART_PAUSE, first + PART_CAP - timezone.now()), timedelta(0))


def take(lane_id: int, token: uuid.UUID) -> Take | None:
    """R3: mark what is to be answered next as running. None if the token is no longer ours.

    A batch whose holder died comes first, alone and unchanged. Nothing to take: a `Take` without turns.
    """
    with transaction.atomic():
        lane = lanes.hold(lane_id, token)
        return Take(lane.inbox, _take(lane, token)) if lane else None


def _take(lane: Lane, token: uuid.UUID) -> tuple[int, ...]:
    turns = list(MemoryTurn.objects.running().filter(lane=lane).order_by("pk"))
    if turns and _is_stopped(lane, turns):
        _end(turns, TurnState.STOPPED)
        return ()
    if not turns:
        turns = _next_batch(lane) if lanes.is_due(lane) else []
        if not turns:
            return ()
        # Whoever said /stop ended what waited then: what waits now is wanted.
        Lane.objects.filter(pk=lane.pk).update(stop_before=0)
        lane.stop_before = 0
    if turns[0].attempt >= ATTEMPTS:
        _fail(lane, turns, GAVE_UP)
        return ()
    return _start(lane, token, turns)


def _next_batch(lane: Lane) -> list[MemoryTurn]:
    """Return the batch whose turn it is: one that was begun before, else the first unbroken run of like turns."""
    pending = list(MemoryTurn.objects.pending().filter(lane=lane).order_by("pk"))
    if not pending:
        return []
    first = pending[0]
    if first.batch is not None:
        return [turn for turn in pending if turn.batch == first.batch]
    if first.kind in (TurnKind.COMMAND, TurnKind.JOB):
        return [first]
    batch: list[MemoryTurn] = []
    for turn in pending:
        if turn.batch is not None or _likeness(turn) != _likeness(first):
            break
        batch.append(turn)
    return batch


def _likeness(turn: MemoryTurn) -> tuple[int, str, str]:
    return turn.session_id, turn.kind, turn.rights


def _start(lane: Lane, token: uuid.UUID, turns: Sequence[MemoryTurn]) -> tuple[int, ...]:
    ids = tuple(turn.pk for turn in turns)
    MemoryTurn.objects.filter(pk__in=ids, state=turns[0].state).update(
        state=TurnState.RUNNING, attempt=F("attempt") + 1, batch=ids[0]
    )
    Draft.objects.update_or_create(lane=lane, defaults={"turn": ids[0], "token": token, "text": ""})
    return ids


def commit(
    lane_id: int,
    token: uuid.UUID,
    *,
    turn_ids: Sequence[int],
    compose: Callable[[Lane, Sequence[MemoryTurn]], Answer],
    outgoing: Sequence[Outgoing] = (),
    also: Also = nothing_else,
) -> bool:
    """R4: store the answer and everything that leaves with it, or nothing. False if the token is no longer ours.

    `compose` runs inside, so a command's own writes are part of it. `also` adds what the caller's rows need. Addresses are read
    here again: meanwhile the chat may have moved or been blocked.
    """
    while True:
        for address in {message.address for message in outgoing}:
            lanes.ensure(address)
        try:
            with transaction.atomic():
                return _commit_once(lane_id, token, turn_ids, compose, outgoing, also)
        except lanes.MergedAwayError:
            continue


def _commit_once(
    lane_id: int,
    token: uuid.UUID,
    turn_ids: Sequence[int],
    compose: Callable[[Lane, Sequence[MemoryTurn]], Answer],
    outgoing: Sequence[Outgoing],
    also: Also,
) -> bool:
    lanes.lock_all({message.address for message in outgoing}, also=[lane_id])
    lane = lanes.hold(lane_id, token)
    if lane is None:
        return False
    turns = list(MemoryTurn.objects.running().filter(pk__in=turn_ids).order_by("pk"))
    assert len(turns) == len(turn_ids), "only the token's holder ends running turns"
    if access_of(lane.chat) == Access.BLOCKED:
        _end(turns, TurnState.STOPPED)
        also(None, None)
        return True
    answer = compose(lane, turns)
    for message in outgoing:
        write_out(message)
    turn, delivery = _store_answer(lane, turns, answer)
    _end(turns, answer.state, answered_by=turn)
    also(turn, delivery)
    return True


def _store_answer(
    lane: Lane, turns: Sequence[MemoryTurn], answer: Answer
) -> tuple[MemoryTurn | None, Delivery | None]:
    if not answer.text.strip():
        return None, None
    delivery = None
    if answer.deliver:
        # The id of a message means something in its own chat only, and this one may have moved.
        reply_to = answer.reply_to if turns[0].origin == str(lane.address) else ""
        delivery = outbox.post(lane.address, answer.text, reply_to=reply_to)
    line = (
        system_line(answer.text, delivery=delivery)
        if answer.is_notice
        else NewTurn(
            kind=TurnKind.MESSAGE,
            role=Role.ASSISTANT,
            content=answer.text,
            metadata=answer.metadata,
            delivery=delivery,
        )
    )
    return append_turn(lane, line, session=turns[0].session), delivery


def system_line(text: str, *, delivery: Delivery | None) -> NewTurn:
    """Return what the system itself says in a chat: the answer to a command, why there is no answer."""
    return NewTurn(
        kind=TurnKind.NOTICE,
        role=Role.ASSISTANT,
        content=text,
        source=SYSTEM_SOURCE,
        delivery=delivery,
    )


def _end(
    turns: Sequence[MemoryTurn], state: TurnState, *, answered_by: MemoryTurn | None = None
) -> None:
    ids = [turn.pk for turn in turns]
    as_found = MemoryTurn.objects.filter(pk__in=ids, state=turns[0].state)
    as_found.update(state=state, answered_by=answered_by)
    Draft.objects.filter(lane=turns[0].lane).delete()


def _fail(lane: Lane, turns: Sequence[MemoryTurn], text: str) -> None:
    """End a batch as failed and say so, in the caller's transaction; nothing is said to those who did not want an answer."""
    if access_of(lane.chat) == Access.BLOCKED or _is_stopped(lane, turns):
        _end(turns, TurnState.STOPPED)
        return
    notice, _ = _store_answer(lane, turns, Answer(text, is_notice=True))
    _end(turns, TurnState.FAILED, answered_by=notice)


def write_out(message: Outgoing) -> Delivery | None:
    """Queue a message to another address, whose lane the caller's transaction has locked.

    Text for a web or API chat is stored as a turn, since nothing else carries it (D5). A chat blocked meanwhile gets nothing.
    """
    lane = lanes.lock(message.address)
    if access_of(lane.chat) == Access.BLOCKED:
        return None
    delivery = outbox.post(lane.address, message.text, files=message.files)
    if message.record or delivery is None:
        base = base_session(lane.chat, lane.thread) if message.record else lane.active_session
        append_turn(
            lane,
            NewTurn(
                kind=TurnKind.NOTICE,
                role=Role.ASSISTANT,
                content=with_placeholders(message.text, message.files),
                source=MESSAGE_SOURCE,
                origin=message.origin,
                metadata={"sent_by": message.sender},
                attachments=message.files,
                delivery=delivery,
            ),
            session=base,
        )
    return delivery


def put_back(
    lane_id: int, token: uuid.UUID, *, turn_ids: Sequence[int], by: timedelta, text: str
) -> None:
    """R11: leave a batch for later and let the lane go; the last attempt ends it as failed, with `text`."""
    with transaction.atomic():
        lane = lanes.hold(lane_id, token)
        if lane is None:
            return
        running = MemoryTurn.objects.running().filter(pk__in=turn_ids).order_by("pk")
        turns = list(running)
        if turns[0].attempt >= ATTEMPTS or _is_stopped(lane, turns):
            _fail(lane, turns, text)
            return
        running.update(state=TurnState.PENDING)
        lanes.put_off(lane, by=by)


def expire(lane_id: int, token: uuid.UUID, *, text: str) -> None:
    """R2: the deadline passed while the holder was busy: its turns fail, and it may commit nothing."""
    with transaction.atomic():
        lane = lanes.hold(lane_id, token)
        if lane is None:
            return
        running = list(MemoryTurn.objects.running().filter(lane=lane).order_by("pk"))
        if running:
            _fail(lane, running, text)
        lanes.give_back(lane_id, token)


def release(lane_id: int, token: uuid.UUID, *, inbox: int) -> bool:
    """R5: let the lane sleep. False: there is more to do, the lane was given back and must be woken."""
    unfinished = MemoryTurn.objects.unfinished().filter(lane=lane_id)
    if lanes.release(lane_id, token, inbox=inbox, unfinished=unfinished):
        return True
    return not lanes.give_back(lane_id, token)


def stop_messages(lane: Lane, stop: MemoryTurn) -> None:
    """R9: end what waits in a locked lane, and mark what runs for its holder to see."""
    waiting = MemoryTurn.objects.pending().filter(lane=lane, pk__lt=stop.pk)
    waiting.filter(kind=TurnKind.MESSAGE).update(state=TurnState.STOPPED)
    Lane.objects.filter(pk=lane.pk).update(stop_before=stop.pk)


def _is_stopped(lane: Lane, turns: Sequence[MemoryTurn]) -> bool:
    return turns[0].pk < lane.stop_before


def is_stopped(lane_id: int, token: uuid.UUID, *, batch: int) -> bool:
    """Has somebody asked to stop this batch? Raises `LostLaneError` if it is no longer ours. One query."""
    lane = (
        Lane.objects.filter(pk=lane_id, token=token).values_list("stop_before", flat=True).first()
    )
    if lane is None:
        raise lanes.LostLaneError(lane_id)
    return batch < lane


def edit_pending(lane: Lane, *, message_id: str, text: str) -> bool:
    """R10: replace the text of a message that waits and was never taken. The caller has locked the lane."""
    content = storable(text)
    never_taken = MemoryTurn.objects.pending().filter(lane=lane, batch=None, kind=TurnKind.MESSAGE)
    edited = never_taken.filter(message_id=message_id).update(
        content=content, search_tokens=index_text(content)
    )
    return edited > 0


def move_later(lane: Lane, *, after: MemoryTurn, to: Session) -> None:
    """`/new`: what came later in the old session and still waits belongs to the new one."""
    later = MemoryTurn.objects.filter(lane=lane, session=after.session, pk__gt=after.pk)
    later.filter(state__in=[TurnState.PENDING, TurnState.OBSERVED]).update(session=to)


def requeue(ended: Lane, *, into: Lane, ledger: Ledger) -> None:
    """R12: make the turns of a lane that ends ready for the one that survives; the caller has locked both, and repoints them."""
    running = MemoryTurn.objects.running().filter(lane=ended)
    ledger.update(running.filter(pk__lt=ended.stop_before), state=TurnState.STOPPED)
    ledger.update(running, state=TurnState.PENDING)
    lanes.wake(into)
