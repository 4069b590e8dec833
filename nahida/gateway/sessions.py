"""Sessions and their turns, as far as a key reaches."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import register_converter
from django.utils.http import content_disposition_header
from ninja import Field, Path, Query, Router, Schema
from pydantic import ConfigDict

from channels_app import media
from channels_app.addresses import AddressError, KeyKind, SessionKey, classify
from memory_app.models import Attachment, MemoryTurn, Role, TurnKind, TurnState
from nahida.gateway import oneoff, paging
from nahida.gateway.auth import BearerKey, caller_of
from nahida.gateway.fields import Key, Title, Words
from nahida.gateway.idempotency import IdempotencyName, once
from nahida.gateway.paging import MAX_ID, Paged
from nahida.gateway.problems import NotFoundError, problems
from sessions_app.models import Lane, Session
from sessions_app.principal import Principal

router = Router(tags=["sessions"])


BYTES = "application/octet-stream"
FILE_RESPONSE: dict[str, Any] = {
    "responses": {200: {"content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}}
}
AttachmentId = Annotated[int, Path(ge=1, le=MAX_ID)]


class KeyConverter:
    """Any text: keys hold slashes and, in old rows, whatever their platform allowed."""

    regex = "(?s:.+)"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(KeyConverter, "key")


class SessionFilter(Schema):
    key: Key | None = Field(None, description="exactly this key")
    chat: Key | None = Field(None, description="key of the chat, such as milky:group:20001")
    channel: Key | None = None
    id: Key | None = Field(None, description="the chat's id on its platform")
    session_key_kind: KeyKind | None = None
    q: Words | None = Field(None, description="text within key or title")


class SessionRow(Schema):
    key: str
    session_key_kind: KeyKind
    chat: str | None = Field(description="null for an imported key that names no chat")
    channel: str | None
    target_type: str | None
    target_id: str | None
    thread: str
    title: str
    is_active: bool = Field(description="new messages of its chat or topic go here")
    imported: bool
    created_at: datetime
    last_active_at: datetime


class SessionPage(Schema):
    items: list[SessionRow]
    next_cursor: str | None


class AttachmentRow(Schema):
    id: int
    kind: str
    name: str
    mime: str = Field(description="as the platform says; a picture's is known by its bytes")
    size: int | None = Field(description="in bytes")
    text: str = Field(description="what is known of what it shows")
    is_kept: bool = Field(description="its content can be read")
    error: str = Field(description="why it could not be downloaded")


class TurnRow(Schema):
    id: int
    kind: TurnKind
    role: Role
    text: str
    state: TurnState
    source: str
    sender: str
    sender_name: str
    message_id: str
    origin: str = Field(description="address it came by, as it was then")
    answered_by: int | None
    attachments: list[AttachmentRow]
    sent_at: datetime | None
    created_at: datetime


class TurnPage(Schema):
    session_key: str
    session_key_kind: KeyKind
    items: list[TurnRow]
    next_cursor: str | None


class SessionChange(Schema):
    model_config = ConfigDict(extra="forbid", from_attributes=True)

    title: Title


@router.get(
    "",
    auth=BearerKey("sessions:read"),
    response={200: SessionPage, **problems()},
    summary="List sessions, latest active first",
)
def list_sessions(
    request: HttpRequest, filters: Annotated[SessionFilter, Query()], page: Paged
) -> dict[str, Any]:
    kind = filters.session_key_kind
    rows, next_cursor = paging.by_time(
        _filtered(_visible(caller_of(request).principal), filters),
        page,
        column="last_active_at",
        keep=(lambda session: classify(session.key) == kind) if kind else None,
    )
    active = set(
        Lane.objects.filter(active_session__in=rows).values_list("active_session", flat=True)
    )
    return {
        "items": [_row(row, active=row.pk in active) for row in rows],
        "next_cursor": next_cursor,
    }


@router.get(
    "/{key:key}/turns",
    auth=BearerKey("sessions:read"),
    response={200: TurnPage, **problems(404)},
    summary="Read a session's turns",
)
def list_turns(
    request: HttpRequest, key: str, page: Paged, order: Literal["newest", "oldest"] = "newest"
) -> dict[str, Any]:
    session = _found(caller_of(request).principal, key)
    turns, next_cursor = paging.by_id(
        session.turns.prefetch_related("attachments"), page, oldest_first=order == "oldest"
    )
    return {
        "session_key": session.key,
        "session_key_kind": classify(session.key),
        "items": [_turn(turn) for turn in turns],
        "next_cursor": next_cursor,
    }


@router.get(
    "/{key:key}/attachments/{id}",
    auth=BearerKey("sessions:read"),
    response=problems(404),
    openapi_extra=FILE_RESPONSE,
    summary="Read a file of a session's turns",
)
def read_attachment(request: HttpRequest, key: str, id: AttachmentId) -> HttpResponse:
    """Return its bytes, as a download whatever they are: a page of ours must never be made of them."""
    session = _found(caller_of(request).principal, key)
    file = Attachment.objects.filter(pk=id, turn__session=session).exclude(file="").first()
    if file is None:
        raise NotFoundError("kept attachment", id)
    as_download = content_disposition_header(True, file.name or file.kind)
    assert as_download, "an attachment always has its header"
    return HttpResponse(
        media.read(file.file), content_type=BYTES, headers={"Content-Disposition": as_download}
    )


@router.get(
    "/{key:key}",
    auth=BearerKey("sessions:read"),
    response={200: SessionRow, **problems(404)},
    summary="Show a session",
)
def show_session(request: HttpRequest, key: str) -> dict[str, Any]:
    session = _found(caller_of(request).principal, key)
    return _row(session, active=session.active_lanes.exists())


@router.patch(
    "/{key:key}",
    auth=BearerKey("sessions:write"),
    response={200: SessionRow, **problems(404, 422)},
    summary="Rename a session",
)
def change_session(
    request: HttpRequest, key: str, payload: SessionChange, idempotency_key: IdempotencyName = None
) -> dict[str, Any]:
    principal = caller_of(request).principal

    def act() -> dict[str, Any]:
        session = _found(principal, key)
        session.title = payload.title
        session.save(update_fields=["title"])
        row = _row(session, active=session.active_lanes.exists())
        return SessionRow(**row).model_dump(mode="json")

    return once(request, idempotency_key, act)


def _visible(principal: Principal) -> QuerySet[Session]:
    """Return the sessions within reach; those of questions without a user belong to nobody."""
    return (
        Session.objects.filter(principal.limit("chat"))
        .exclude(oneoff.one_off("chat__"))
        .select_related("chat")
    )


def _filtered(sessions: QuerySet[Session], filters: SessionFilter) -> QuerySet[Session]:
    exact = {
        "chat__chat_key": filters.chat,
        "chat__channel": filters.channel,
        "chat__target_id": filters.id,
    }
    sessions = sessions.filter(**{column: text for column, text in exact.items() if text})
    if filters.key:
        sessions = sessions.filter(key__in=_spellings(filters.key))
    if filters.q:
        sessions = sessions.filter(Q(key__icontains=filters.q) | Q(title__icontains=filters.q))
    return sessions


def _found(principal: Principal, text: str) -> Session:
    """Return the session of a key: an exact match first, else what the text means as a typed key."""
    spellings = _spellings(text)
    found = {session.key: session for session in _visible(principal).filter(key__in=spellings)}
    for spelling in spellings:
        if spelling in found:
            return found[spelling]
    raise NotFoundError("session", text)


def _spellings(text: str) -> list[str]:
    if "\x00" in text:
        return []
    try:
        key = SessionKey.parse(text)
    except AddressError:
        return [text]
    return [text, str(key)] if key.typed and str(key) != text else [text]


def _row(session: Session, *, active: bool) -> dict[str, Any]:
    chat = session.chat
    kind = classify(session.key)
    return {
        "key": session.key,
        "session_key_kind": kind,
        "chat": chat and chat.chat_key,
        "channel": chat and chat.channel,
        "target_type": chat and chat.target_type,
        "target_id": chat and chat.target_id,
        "thread": session.session_key.address.thread_id if kind != "invalid" else "",
        "title": session.title,
        "is_active": active,
        "imported": session.imported_at is not None,
        "created_at": session.created_at,
        "last_active_at": session.last_active_at,
    }


def _turn(turn: MemoryTurn) -> dict[str, Any]:
    return {
        "id": turn.pk,
        "kind": turn.kind,
        "role": turn.role,
        "text": turn.content,
        "state": turn.state,
        "source": turn.source,
        "sender": turn.sender,
        "sender_name": turn.sender_name,
        "message_id": turn.message_id,
        "origin": turn.origin,
        "answered_by": turn.answered_by_id,
        "attachments": [
            _attachment(file) for file in sorted(turn.attachments.all(), key=lambda file: file.pk)
        ],
        "sent_at": turn.sent_at,
        "created_at": turn.created_at,
    }


def _attachment(file: Attachment) -> dict[str, Any]:
    return {
        "id": file.pk,
        "kind": file.kind,
        "name": file.name,
        "mime": file.mime,
        "size": file.size,
        "text": file.text,
        "is_kept": bool(file.file),
        "error": file.error,
    }
