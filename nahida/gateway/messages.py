"""Send a message to a chat: what the assistant's `message` tool does, with the key as sender."""

import json
from typing import Annotated, Any

from django.conf import settings
from django.http import HttpRequest
from ninja import Field, Router, Schema
from pydantic import BeforeValidator, ConfigDict

from channels_app.addresses import API, ChatAddress, account
from memory_app.turns import write_out
from nahida import queue
from nahida.agent.tools.message import How, outgoing, sent
from nahida.gateway.auth import BearerKey, Caller, caller_of
from nahida.gateway.fields import MAX_KEY, AnyText, require_room
from nahida.gateway.files import MOST_FILES, FileToSend, kept
from nahida.gateway.idempotency import IdempotencyName, once
from nahida.gateway.problems import NotFoundError, problems
from sessions_app.routing import find_chat

router = Router(tags=["messages"])


def _as_text(value: Any) -> Any:
    """A target of another type is an address without a chat type, and gets that answer."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


class Message(Schema):
    model_config = ConfigDict(extra="forbid", from_attributes=True)

    target: Annotated[str | None, BeforeValidator(_as_text)] = Field(
        None,
        max_length=MAX_KEY,
        description="typed address, such as milky:group:20001; required",
    )
    text: AnyText = Field("", description="may be left out where files are attached")
    attachments: list[FileToSend] = Field(
        [],
        max_length=MOST_FILES,
        description="sent behind the text, each as a message of its own",
    )
    delivery: How = Field(
        How.NOTIFY,
        description="notify only sends; record also keeps the text in that chat's conversation",
    )


class MessageSent(Schema):
    result: str
    target: str
    delivery: How
    delivery_id: int | None = Field(description="null for web and API chats, which read it here")


@router.post(
    "",
    auth=BearerKey("send", carries_files=True),
    response={200: MessageSent, **problems(404, 413, 422)},
    summary="Send a message",
)
def send(
    request: HttpRequest, payload: Message, idempotency_key: IdempotencyName = None
) -> dict[str, Any]:
    caller = caller_of(request)
    address = ChatAddress.target(payload.target)
    require_room(address)
    return once(request, idempotency_key, lambda: _send(caller, address, payload))


def _send(caller: Caller, address: ChatAddress, message: Message) -> dict[str, Any]:
    _require_reach(caller, address)
    with kept(message.attachments) as files:
        out = outgoing(
            str(address),
            message.text,
            files=files,
            how=message.delivery,
            origin="",
            sender=account(API, str(caller.key.pk)),
        )
        delivery = write_out(out)
    if delivery is not None:
        queue.wake_on_commit(queue.DELIVER, delivery.pk)
    return {
        "result": sent(out),
        "target": str(out.address),
        "delivery": message.delivery.value,
        "delivery_id": delivery and delivery.pk,
    }


def _require_reach(caller: Caller, address: ChatAddress) -> None:
    """A chat that has not written yet may be written to, but only where a platform could know it."""
    chat = find_chat(address)
    if chat is None:
        allowed = caller.principal.chat_ids is None and address.channel in settings.CHANNELS
    else:
        allowed = caller.principal.reaches(chat.pk)
    if not allowed:
        raise NotFoundError("chat", address)
