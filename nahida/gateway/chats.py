"""Chats and what holds in them, as far as a key reaches."""

from datetime import datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from ninja import Field, Query, Router, Schema
from pydantic import AfterValidator, ConfigDict

from channels_app.addresses import AddressError, ChatAddress
from nahida.agent.model import model_names
from nahida.gateway import oneoff, paging
from nahida.gateway.auth import BearerKey, caller_of
from nahida.gateway.fields import Key, Title, Words
from nahida.gateway.idempotency import IdempotencyName, once
from nahida.gateway.paging import Paged
from nahida.gateway.problems import ConflictError, NotFoundError, problems
from sessions_app.models import Access, AnswerPolicy, Chat
from sessions_app.principal import Principal

router = Router(tags=["chats"])

ChatType = Literal["private", "group", "channel", "thread", "unknown"]


def _known_zone(name: str) -> str:
    try:
        return name and ZoneInfo(name).key
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(
            "is no zone of the tz database: write one such as Asia/Shanghai"
        ) from error


def _known_model(name: str) -> str:
    if name and name not in model_names():
        raise ValueError(f"is no configured model: use {', '.join(model_names())}")
    return name


class ChatFilter(Schema):
    channel: Key | None = None
    id: Key | None = Field(None, description="the chat's id on its platform")
    target_type: ChatType | None = None
    access: Access | None = None
    q: Words | None = Field(None, description="text within key or title")


class ChatRow(Schema):
    key: str
    channel: str
    target_type: ChatType
    target_id: str
    parent: str | None
    merged_into: str | None
    title: str
    access: Access
    answer_policy: AnswerPolicy
    time_zone: str = Field(description='"" for that of the site')
    model: str = Field(description='"" for that of the site')
    is_owner: bool
    refused_count: int
    unreachable_since: datetime | None
    unreachable_reason: str
    imported: bool
    created_at: datetime


class ChatPage(Schema):
    items: list[ChatRow]
    next_cursor: str | None


class ChatChange(Schema):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", from_attributes=True)

    title: Title = ""
    access: Access = Access.PENDING
    answer_policy: AnswerPolicy = AnswerPolicy.ADDRESSED
    time_zone: Annotated[Words, AfterValidator(_known_zone)] = ""
    model: Annotated[Words, AfterValidator(_known_model)] = ""
    is_owner: bool = Field(False, description="needs the scope chats:owner too")


@router.get(
    "",
    auth=BearerKey("chats:read"),
    response={200: ChatPage, **problems()},
    summary="List chats, newest first",
)
def list_chats(
    request: HttpRequest, filters: Annotated[ChatFilter, Query()], page: Paged
) -> dict[str, Any]:
    rows, next_cursor = paging.by_id(
        _filtered(_visible(caller_of(request).principal), filters), page
    )
    return {"items": [_row(row) for row in rows], "next_cursor": next_cursor}


@router.get(
    "/{key:key}",
    auth=BearerKey("chats:read"),
    response={200: ChatRow, **problems(404)},
    summary="Show a chat",
)
def show_chat(request: HttpRequest, key: str) -> dict[str, Any]:
    return _row(_found(caller_of(request).principal, key))


@router.patch(
    "/{key:key}",
    auth=BearerKey("chats:write"),
    response={200: ChatRow, **problems(404, 409, 422)},
    summary="Change what holds in a chat",
)
def change_chat(
    request: HttpRequest, key: str, payload: ChatChange, idempotency_key: IdempotencyName = None
) -> dict[str, Any]:
    caller = caller_of(request)
    changes = payload.model_dump(exclude_unset=True)
    if "is_owner" in changes:
        caller.require("chats:owner")

    def act() -> dict[str, Any]:
        chat = _found(caller.principal, key)
        if chat.merged_into is not None:
            raise ConflictError(f"{chat} was merged: change {chat.merged_into} instead")
        if changes.get("access", Access.PENDING) != Access.PENDING:
            changes["pairing_code"] = ""
        for column, value in changes.items():
            setattr(chat, column, value)
        if changes:
            chat.save(update_fields=list(changes))
        return ChatRow(**_row(chat)).model_dump(mode="json")

    return once(request, idempotency_key, act)


def _visible(principal: Principal) -> QuerySet[Chat]:
    chats = Chat.objects.filter(principal.limit("pk")).exclude(oneoff.one_off())
    return chats.select_related("parent", "merged_into")


def _filtered(chats: QuerySet[Chat], filters: ChatFilter) -> QuerySet[Chat]:
    exact = {
        "channel": filters.channel,
        "target_id": filters.id,
        "target_type": filters.target_type,
        "access": filters.access,
    }
    chats = chats.filter(**{column: text for column, text in exact.items() if text})
    if filters.q:
        chats = chats.filter(Q(chat_key__icontains=filters.q) | Q(title__icontains=filters.q))
    return chats


def _found(principal: Principal, text: str) -> Chat:
    """Return the chat of a key: an exact match first, else what the text means as an address."""
    for spelling in _spellings(text):
        if chat := _visible(principal).filter(chat_key=spelling).first():
            return chat
    raise NotFoundError("chat", text)


def _spellings(text: str) -> list[str]:
    if "\x00" in text:
        return []
    try:
        address = ChatAddress.parse(text)
    except AddressError:
        return [text]
    return [text, str(address)] if address.typed else [text]


def _row(chat: Chat) -> dict[str, Any]:
    return {
        "key": chat.chat_key,
        "channel": chat.channel,
        "target_type": chat.target_type,
        "target_id": chat.target_id,
        "parent": chat.parent and chat.parent.chat_key,
        "merged_into": chat.merged_into and chat.merged_into.chat_key,
        "title": chat.title,
        "access": chat.access,
        "answer_policy": chat.answer_policy,
        "time_zone": chat.time_zone,
        "model": chat.model,
        "is_owner": chat.is_owner,
        "refused_count": chat.refused_count,
        "unreachable_since": chat.unreachable_since,
        "unreachable_reason": chat.unreachable_reason,
        "imported": chat.imported_at is not None,
        "created_at": chat.created_at,
    }
