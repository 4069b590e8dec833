"""Talk with the assistant: one question, its answer as JSON or as it grows."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from decimal import Decimal
from typing import Annotated, Any

from asgiref.sync import sync_to_async
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Field, Path, Router, Schema, Status
from pydantic import ConfigDict

from channels_app.addresses import (
    API,
    AddressError,
    ChatAddress,
    KeyKind,
    SessionKey,
    account,
    classify,
)
from channels_app.messages import InboundMessage, Sender
from memory_app.models import MemoryTurn, ModelCall, Role, TurnState
from nahida.agent.follow import Update, end_of, follow
from nahida.agent.intake import Outcome, accept
from nahida.gateway import oneoff
from nahida.gateway.auth import BearerKey, Caller, caller_of
from nahida.gateway.fields import Key, Name, Text, require_room
from nahida.gateway.idempotency import IdempotencyName, once
from nahida.gateway.paging import MAX_ID
from nahida.gateway.problems import (
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    problems,
)
from nahida.ops.stopping import stopping
from sessions_app import lanes
from sessions_app.models import Session
from sessions_app.routing import find_chat, resume_session

router = Router(tags=["chat"])

LONGEST_WAIT_S = 300
MAX_ACCOUNT = MemoryTurn._meta.get_field("sender").max_length or 0  # escapes make it longer
COMMENT_EVERY_S = 15  # proxies end a stream that is silent for longer
EVENT_STREAM = "text/event-stream"
STREAM_RESPONSE: dict[str, Any] = {
    "responses": {
        200: {
            "content": {
                EVENT_STREAM: {
                    "schema": {
                        "type": "string",
                        "description": (
                            "events `turn` (the ids), `draft` ({text}: the whole text so far), `reset` (the drafts so far are "
                            "void), and as the last one `done` or `error` with the same object as the JSON answer"
                        ),
                    }
                }
            }
        }
    }
}


class Question(Schema):
    model_config = ConfigDict(extra="forbid", from_attributes=True)

    text: Text
    user: Name | None = Field(
        None,
        description="who asks, as you call them: each user of a key has a chat of their own. "
        "Without a user nothing is remembered from one question to the next.",
    )
    session: Key | None = Field(
        None, description="go on with this session of the user's chat instead of the latest"
    )
    stream: bool = Field(False, description="answer with server-sent events, as does Accept")
    wait_s: float = Field(
        60, ge=0, le=LONGEST_WAIT_S, description="answer 202 when it takes longer"
    )


class TurnUsage(Schema):
    requests: int = Field(description="calls of a model")
    tokens_in: int
    tokens_out: int
    cost: Decimal | None = Field(description="null if no price is known")


class ChatAnswer(Schema):
    turn_id: int
    session_key: str | None = Field(description="null for a question without a user")
    session_key_kind: KeyKind | None
    state: TurnState
    text: str = Field(description='"" while there is no answer, or when nothing is to be said')
    usage: TurnUsage


TurnId = Annotated[int, Path(ge=1, le=MAX_ID)]


@router.post(
    "",
    auth=BearerKey("chat"),
    response={200: ChatAnswer, 202: ChatAnswer, **problems(404, 422)},
    openapi_extra=STREAM_RESPONSE,
    summary="Ask",
)
async def ask(
    request: HttpRequest,
    payload: Question,
    response: HttpResponse,
    idempotency_key: IdempotencyName = None,
) -> Any:
    turn_id = await sync_to_async(_accept)(request, payload, idempotency_key)
    if payload.stream or _wants_events(request):
        return _stream(caller_of(request), turn_id)
    if payload.wait_s:
        await _wait(turn_id, payload.wait_s)
    answer = await sync_to_async(_answer)(caller_of(request), turn_id)
    if answer.state in (TurnState.PENDING, TurnState.RUNNING):
        response["Location"] = f"{request.path.rstrip('/')}/{turn_id}"
        return Status(202, answer)
    return answer


@router.get(
    "/{turn_id}",
    auth=BearerKey("chat"),
    response={200: ChatAnswer, **problems(404)},
    openapi_extra=STREAM_RESPONSE,
    summary="Look whether a question is answered",
)
async def look(request: HttpRequest, turn_id: TurnId) -> Any:
    answer = await sync_to_async(_answer)(caller_of(request), turn_id)
    return _stream(caller_of(request), turn_id) if _wants_events(request) else answer


def _accept(request: HttpRequest, question: Question, idempotency_key: str | None) -> int:
    caller = caller_of(request)

    def act() -> dict[str, Any]:
        return {"turn_id": _take_in(caller, question)}

    turn_id: int = once(request, idempotency_key, act)["turn_id"]
    return turn_id


def _take_in(caller: Caller, question: Question) -> int:
    """Hand a question to the intake and return its turn. The caller holds a transaction."""
    address = _address(caller, question)
    if question.session is not None:
        _resume(address, question.session)
    event = uuid.uuid4().hex
    accepted = accept(
        InboundMessage(
            address=address,
            event_key=event,
            message_id=event,
            text=question.text,
            sender=Sender(_account(address), name=question.user or ""),
            addressed=True,
        )
    )
    if accepted.turn_id is None:
        reason = accepted.notice or "the owner has blocked this chat"
        raise ForbiddenError(f"the question is not answered: {reason}")
    assert accepted.outcome != Outcome.DUPLICATE, "the event is new"
    if chat := find_chat(address):
        caller.take_in(chat)
    return accepted.turn_id


def _account(address: ChatAddress) -> str:
    text = account(API, address.target_id)
    if len(text) > MAX_ACCOUNT:
        raise InvalidRequestError("the user has too many odd characters: choose a plainer name")
    return text


def _address(caller: Caller, question: Question) -> ChatAddress:
    """Return the chat of a question: the user's, that of the session, or one that is used only once."""
    if question.user is not None:
        if question.user.startswith(oneoff.MARK):
            raise InvalidRequestError(f'a user must not begin with "{oneoff.MARK}": rename it')
        address = ChatAddress.api(caller.key.pk, user=question.user)
        if question.session is not None and address != _address_of(question.session):
            raise NotFoundError("session of this user", question.session)
        return address
    if question.session is None:
        return oneoff.address(caller.key)
    address = _address_of(question.session)
    if not _is_own(caller, address):
        raise NotFoundError("session", question.session)
    return address


def _address_of(session: str) -> ChatAddress:
    try:
        address = SessionKey.parse(session).address
        require_room(address)
    except AddressError as error:
        raise NotFoundError("session", session) from error
    return address


def _is_own(caller: Caller, address: ChatAddress) -> bool:
    """Is this a chat of one of the key's own users?"""
    key, dot, _ = address.target_id.partition(".")
    return address.channel == API and dot == "." and key == str(caller.key.pk)


def _resume(address: ChatAddress, text: str) -> None:
    key = str(SessionKey.parse(text))
    lane = lanes.lock(address)
    session = Session.objects.filter(chat=lane.chat_id, key=key).exclude(oneoff.one_off("chat__"))
    if not session:
        raise NotFoundError("session", text)
    if lane.active_session_id != session[0].pk:
        resume_session(lane, session[0])


def _answer(caller: Caller, turn_id: int) -> ChatAnswer:
    """Return what a question has come to. Raises `NotFoundError` for turns that the key did not ask for."""
    questions = MemoryTurn.objects.filter(role=Role.USER, lane__isnull=False)
    turn = questions.select_related("answered_by", "session__chat").filter(pk=turn_id).first()
    chat = turn.session.chat if turn else None
    if turn is None or chat is None or not _is_own(caller, chat.address):
        raise NotFoundError("turn", turn_id)
    end = end_of(turn)
    key = None if _is_nobody(chat.address) else turn.session.key
    return ChatAnswer(
        turn_id=turn.pk,
        session_key=key,
        session_key_kind=classify(key) if key else None,
        state=TurnState(turn.state),
        text=end.text if end else "",
        usage=_usage(turn),
    )


def _is_nobody(address: ChatAddress) -> bool:
    return address.target_id.partition(".")[2].startswith(oneoff.MARK)


def _usage(turn: MemoryTurn) -> TurnUsage:
    calls = ModelCall.objects.filter(turn=turn.batch or turn.pk)
    sums = calls.aggregate(
        tokens_in=Sum("tokens_in"), tokens_out=Sum("tokens_out"), cost=Sum("cost")
    )
    return TurnUsage(
        requests=calls.count(),
        tokens_in=sums["tokens_in"] or 0,
        tokens_out=sums["tokens_out"] or 0,
        cost=sums["cost"],
    )


async def _wait(turn_id: int, seconds: float) -> None:
    """Return when the turn is answered, the time is over or this process stops."""
    with suppress(TimeoutError, MemoryTurn.DoesNotExist):
        async with asyncio.timeout(seconds), aclosing(_updates(turn_id)) as updates:
            async for _ in updates:
                pass


def _updates(turn_id: int) -> AsyncGenerator[Update, None]:
    return follow(turn_id, stopping=stopping.is_set)


def _wants_events(request: HttpRequest) -> bool:
    return EVENT_STREAM in request.headers.get("Accept", "")


def _stream(caller: Caller, turn_id: int) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        _events(caller, turn_id),
        content_type=EVENT_STREAM,
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


async def _events(caller: Caller, turn_id: int) -> AsyncIterator[str]:
    """Yield a turn's updates as server-sent events, and a comment when there has been none for a while."""
    number = 1
    yield _event(number, "turn", await _answer_json(caller, turn_id))
    async with aclosing(_updates(turn_id)) as updates:
        coming = asyncio.ensure_future(anext(updates, None))
        try:
            while True:
                done, _ = await asyncio.wait({coming}, timeout=COMMENT_EVERY_S)
                if not done:
                    yield ": still there\n\n"
                    continue
                update: Update | None = coming.result()
                if update is None:  # this process stops
                    return
                number += 1
                if update.is_last:
                    name = "done" if update.kind in ("done", "silent") else "error"
                    yield _event(number, name, await _answer_json(caller, turn_id))
                    return
                data = {"text": update.text} if update.kind == "draft" else {}
                yield _event(number, update.kind, data)
                coming = asyncio.ensure_future(anext(updates, None))
        finally:
            coming.cancel()
            with suppress(asyncio.CancelledError, MemoryTurn.DoesNotExist):
                await coming


async def _answer_json(caller: Caller, turn_id: int) -> dict[str, Any]:
    answer = await sync_to_async(_answer)(caller, turn_id)
    return answer.model_dump(mode="json")


def _event(number: int, name: str, data: dict[str, Any]) -> str:
    return f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n"
