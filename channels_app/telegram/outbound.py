"""What is asked of the Bot API to send one part. Source: protocols/telegram.md, sections 4 and 5."""

import mimetypes
import re
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
UNKNOWN_MIME = "application/octet-stream"
# What Telegram takes as a picture and as a voice message, by its first bytes. A GIF would stand still as a picture.
PNG, JPEG, OGG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"OggS"

_ID = re.compile(r"-?[1-9][0-9]{0,15}")
_MESSAGE_ID = re.compile(r"[1-9][0-9]{0,15}")


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
    return {"chat_id": _chat_id(address), "message_thread_id": _thread_id(address)}


def _chat_id(address: ChatAddress) -> int:
    """People have positive ids and groups negative ones: an answer for a group never goes to the person of that number."""
    is_person = address.target_type == "private"
    known = is_person or address.target_type in ("group", "channel")
    if known and _ID.fullmatch(address.target_id):
        number = int(address.target_id)
        if (number > 0) == is_person:
            return number
    name = address.channel
    raise SendError(
        f'"{address}" is no chat of Telegram: those are {name}:private:5550001, {name}:group:-77001 '
        f"or {name}:group:-1001234500001, and {name}:channel:-1001234500003",
        permanent=True,
    )


def _thread_id(address: ChatAddress) -> int | None:
    if not address.thread_id:
        return None
    if not _MESSAGE_ID.fullmatch(address.thread_id):
        raise SendError(
            f'"{address}" names no topic of Telegram: "{address.thread_id}" should be the number '
            "of the message that began it",
            permanent=True,
        )
    return int(address.thread_id)


def _reply(message_id: str) -> dict[str, Any]:
    if not _MESSAGE_ID.fullmatch(message_id):
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
    mime = part.file_mime or mimetypes.guess_type(part.file_name)[0] or UNKNOWN_MIME
    return Request(method, where, Upload(parameter, content, part.file_name, mime))


def _kind(kind: str, content: bytes) -> tuple[str, str]:
    """What Telegram would not take as a picture or voice message goes as a document."""
    if kind == "image" and len(content) <= LARGEST_PHOTO and _is_photo(content):
        return "sendPhoto", "photo"
    if kind == "voice" and content.startswith(OGG):
        return "sendVoice", "voice"
    return "sendDocument", "document"


def _is_photo(content: bytes) -> bool:
    is_webp = content[:4] == b"RIFF" and content[8:12] == b"WEBP"
    return is_webp or content.startswith((PNG, JPEG))
