"""What is asked of the Bot API to send one part. Source: protocols/telegram.md, sections 4 and 5."""

import mimetypes
from dataclasses import dataclass, field
from typing import Any

from channels_app import media
from channels_app.addresses import ChatAddress
from channels_app.channels import SendError
from channels_app.messages import OutboundMessage, OutboundPart
from channels_app.telegram.client import Upload

MEGABYTE = 1024 * 1024
LARGEST_PHOTO = 10 * MEGABYTE
LARGEST_FILE = 50 * MEGABYTE
OGG = b"OggS"  # how the only voice messages that Telegram knows begin


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    parameters: dict[str, Any] = field(default_factory=dict)
    upload: Upload | None = None


def request(message: OutboundMessage) -> Request:
    """Return the call that sends one part. Raises `SendError` for what Telegram cannot take."""
    where = {**chat(message.address), **_reply(message.reply_to)}
    if message.part.file:
        return _file(message.part, where)
    return Request("sendMessage", {**where, **_text(message.part)})


def chat(address: ChatAddress) -> dict[str, Any]:
    """Return the parameters that name a chat and its topic."""
    return {
        "chat_id": _number(address.target_id, address),
        "message_thread_id": _number(address.thread_id, address) if address.thread_id else None,
    }


def _number(text: str, address: ChatAddress) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise SendError(
            f'"{address}": "{text}" is no id of Telegram, which are numbers '
            f"such as {address.channel}:private:5550001 or {address.channel}:group:-1001234500001",
            permanent=True,
        ) from error


def _reply(message_id: str) -> dict[str, Any]:
    if not message_id.isdecimal():
        return {}
    return {
        "reply_parameters": {
            "message_id": int(message_id),
            "allow_sending_without_reply": True,
        }
    }


def _text(part: OutboundPart) -> dict[str, Any]:
    return {
        "text": part.text,
        "entities": part.markup if part.markup and not part.plain else None,
        "link_preview_options": {"is_disabled": True},
    }


def _file(part: OutboundPart, where: dict[str, Any]) -> Request:
    content = media.read(part.file)
    if len(content) > LARGEST_FILE:
        raise SendError(
            f"{part.file_name} has {len(content) // MEGABYTE} MB: Telegram takes 50", permanent=True
        )
    method, parameter = _kind(part.file_kind, content)
    mime = mimetypes.guess_type(part.file_name)[0] or "application/octet-stream"
    return Request(method, where, Upload(parameter, content, part.file_name, mime))


def _kind(kind: str, content: bytes) -> tuple[str, str]:
    """What Telegram would not take as a picture or voice message goes as a document."""
    if kind == "image" and len(content) <= LARGEST_PHOTO:
        return "sendPhoto", "photo"
    if kind == "voice" and content.startswith(OGG):
        return "sendVoice", "voice"
    return "sendDocument", "document"
