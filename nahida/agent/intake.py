"""A message arrives: accepted once, in one transaction, or refused with a reason (DESIGN 5)."""

import logging
import secrets
from dataclasses import dataclass, replace
from enum import StrEnum

from django.conf import settings
from django.db import transaction

from channels_app import outbox
from channels_app.messages import InboundMessage, Part, storable
from channels_app.models import InboundEvent
from memory_app.models import MemoryTurn, Role, TurnKind, TurnState
from memory_app.turns import NewTurn, append_turn, edit_pending, system_line
from nahida import queue
from nahida.agent import slash
from nahida.agent.policy import rights_of
from sessions_app import lanes
from sessions_app.deadlocks import outlast_deadlocks
from sessions_app.models import Access, AnswerPolicy, Chat, Lane
from sessions_app.routing import access_of, chat_for

logger = logging.getLogger(__name__)

PAIRING_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # nothing that looks like something else
PAIRING_LENGTH = 8
EVENT_KEY_LENGTH = 300


class Outcome(StrEnum):
    QUEUED = "queued"
    OBSERVED = "observed"
    ANSWERED = "answered"
    REFUSED = "refused"
    DUPLICATE = "duplicate"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of a message. `notice` is what the chat was told at once, "" for nothing."""

    outcome: Outcome
    turn_id: int | None = None
    notice: str = ""


def accept(message: InboundMessage) -> Accepted:
    """Store a message once and wake its lane. When this returns, the wire may forget the message."""
    if not message.address.typed:
        logger.warning("%s: no chat type, so nothing is stored or answered", message.address)
        return Accepted(Outcome.IGNORED)
    if "\0" in f"{message.address.target_id}{message.address.thread_id}":
        logger.warning("%s: an id with a NUL cannot be stored", message.address)
        return Accepted(Outcome.IGNORED)
    message = _storable(message)
    return outlast_deadlocks(lambda: _accept_once(message))


@transaction.atomic
def _accept_once(message: InboundMessage) -> Accepted:
    _, is_new = InboundEvent.objects.get_or_create(
        channel=message.address.channel, event_key=message.event_key
    )
    if not is_new:
        return Accepted(Outcome.DUPLICATE)
    if message.sender.is_self:
        return Accepted(Outcome.IGNORED)
    chat = chat_for(message.address)
    accepted = {
        Access.BLOCKED: lambda: Accepted(Outcome.IGNORED),
        Access.PENDING: lambda: _refuse(chat, message),
        Access.ALLOWED: lambda: _store(chat, message),
    }[Access(access_of(chat))]()
    _note_signs_of_life(chat, message)  # last: lanes are locked before chats
    return accepted


def _store(chat: Chat, message: InboundMessage) -> Accepted:
    is_own_live_word = not (message.edits or message.forwarded_from)
    command = slash.parse(message.text) if is_own_live_word else None
    policy = AnswerPolicy(chat.answer_policy)
    addressed = message.addressed or command is not None
    answers = policy == AnswerPolicy.ALWAYS or (policy != AnswerPolicy.OBSERVE and addressed)
    keeps = answers or policy != AnswerPolicy.ADDRESSED_ONLY
    if message.edits:
        return _edit(lanes.lock(message.address), message, keeps=keeps)
    if not keeps:
        return Accepted(Outcome.IGNORED)
    lane = lanes.lock(message.address)
    if command is not None and answers:
        return _command(lane, message, command)
    state = TurnState.PENDING if answers else TurnState.OBSERVED
    turn = append_turn(lane, _turn(lane, message, state=state))
    if not answers:
        return Accepted(Outcome.OBSERVED, turn.pk)
    if message.part == Part.WHOLE:
        queue.wake_on_commit(queue.RUN_LANE, lane.pk)
    return Accepted(Outcome.QUEUED, turn.pk)


def _command(lane: Lane, message: InboundMessage, command: slash.Command) -> Accepted:
    """R9: some commands are answered here and now, the others wait for their turn."""
    if not command.is_immediate:
        turn = append_turn(lane, _turn(lane, message, kind=TurnKind.COMMAND))
        queue.wake_on_commit(queue.RUN_LANE, lane.pk)
        return Accepted(Outcome.QUEUED, turn.pk)
    turn = append_turn(lane, _turn(lane, message, kind=TurnKind.COMMAND, state=TurnState.DONE))
    text = slash.run(command, lane=lane, turn=turn)
    delivery = outbox.post(lane.address, text, reply_to=message.message_id)
    answer = append_turn(lane, system_line(text, delivery=delivery), session=turn.session)
    MemoryTurn.objects.filter(pk=turn.pk).update(answered_by=answer)
    if delivery is not None:
        queue.wake_on_commit(queue.DELIVER, delivery.pk)
    return Accepted(Outcome.ANSWERED, turn.pk, text)


def _edit(lane: Lane, message: InboundMessage, *, keeps: bool) -> Accepted:
    """R10: an edit changes what still waits, and is otherwise only noted. Commands never run again."""
    if edit_pending(lane, message_id=message.edits, text=message.text):
        return Accepted(Outcome.QUEUED)
    if not keeps:
        return Accepted(Outcome.IGNORED)
    turn = append_turn(lane, _turn(lane, message, kind=TurnKind.EDIT, state=TurnState.OBSERVED))
    return Accepted(Outcome.OBSERVED, turn.pk)


def _turn(
    lane: Lane,
    message: InboundMessage,
    *,
    kind: TurnKind = TurnKind.MESSAGE,
    state: TurnState | None = None,
) -> NewTurn:
    extras = {
        "quote": message.quote,
        "reply_to": message.reply_to,
        "forwarded_from": message.forwarded_from,
    }
    return NewTurn(
        kind=kind,
        role=Role.USER,
        content=message.text,
        state=state,
        source=message.address.channel,
        sender=message.sender.account,
        sender_name=message.sender.name,
        rights=rights_of(message.sender, lane.chat).word,
        message_id=message.edits or message.message_id,
        origin=str(message.address),
        metadata={**message.metadata, **{name: text for name, text in extras.items() if text}},
        sent_at=message.sent_at,
        attachments=message.attachments,
        is_part=message.part == Part.PIECE,
    )


def _refuse(chat: Chat, message: InboundMessage) -> Accepted:
    """Tell a stranger once, and kindly, how to be let in; nothing beyond the first line is kept."""
    wants_answer = chat.is_private or message.addressed or slash.parse(message.text) is not None
    if not wants_answer:
        return Accepted(Outcome.REFUSED)
    lane = lanes.lock(message.address)
    chat = Chat.objects.select_for_update().get(pk=lane.chat_id)
    chat.refused_count += 1
    if chat.pairing_code:
        chat.save(update_fields=["refused_count"])
        return Accepted(Outcome.REFUSED)
    chat.pairing_code = "".join(secrets.choice(PAIRING_ALPHABET) for _ in range(PAIRING_LENGTH))
    chat.first_line = message.text.strip().split("\n")[0][:300]
    chat.save(update_fields=["refused_count", "pairing_code", "first_line"])
    text = (
        f"Hello! {settings.NAHIDA.site.name} does not know this chat yet. "
        f"Please ask the owner to let it in with the code {chat.pairing_code}."
    )
    if delivery := outbox.post(lane.address, text, reply_to=message.message_id):
        queue.wake_on_commit(queue.DELIVER, delivery.pk)
    return Accepted(Outcome.REFUSED, notice=text)


def _note_signs_of_life(chat: Chat, message: InboundMessage) -> None:
    """A chat that writes can be reached again, and may have a new title."""
    changes: dict[str, object] = {}
    if chat.unreachable_since is not None:
        changes["unreachable_since"] = None
        if chat.muted_until is None:
            changes["unreachable_reason"] = ""
    if message.chat_title and message.chat_title != chat.title:
        changes["title"] = message.chat_title
    if changes:
        Chat.objects.filter(pk=chat.pk).update(**changes)


def _storable(message: InboundMessage) -> InboundMessage:
    return replace(
        message,
        text=storable(message.text),
        event_key=storable(message.event_key)[:EVENT_KEY_LENGTH],
        chat_title=storable(message.chat_title)[:300],
        quote=storable(message.quote),
        forwarded_from=storable(message.forwarded_from),
        sender=replace(message.sender, name=storable(message.sender.name)),
    )
