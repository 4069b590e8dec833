"""What is asked of a protocol end to send one part. Source: protocols/milky.md, sections 5, 7, 8 and 10.

Media travel inside the request: we share neither a disk nor a URL with the protocol end.
"""

import base64
import re
from dataclasses import dataclass
from typing import Any

from channels_app import media
from channels_app.addresses import ChatAddress
from channels_app.channels import SendError
from channels_app.messages import OutboundMessage, OutboundPart
from channels_app.milky.markdown import flattened
from channels_app.splitting import is_blank, split_text, units

SMALLEST, LARGEST = 10001, 4294967295  # numbers of people and groups
# A person as the model knows him from the line above what he says; in a mail address or a link it is none. Chinese leaves no
# blanks around it, so only ASCII letters tell.
MENTION = re.compile(r"(?<![\w./])@([1-9][0-9]{4,9})(?![\w.@]*\w)", re.ASCII)
NUMBERING = len("(1000/1000) ")
# What every protocol end takes as a picture or as a voice message; anything else is sent as a file.
PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM")
VOICES = (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")


@dataclass(frozen=True, slots=True)
class Request:
    api: str
    parameters: dict[str, Any]


def split(markdown: str, *, limit: int) -> list[OutboundPart]:
    """Return the messages that a Markdown text becomes, numbered if there are several, none of them blank."""
    text = flattened(markdown)
    if units(text) <= limit:
        return [] if is_blank(text) else [OutboundPart(text)]
    parts = split_text(text, limit - NUMBERING)
    if len(parts) == 1:
        return [OutboundPart(parts[0])]
    return [OutboundPart(f"({number}/{len(parts)}) {part}") for number, part in enumerate(parts, 1)]


def request(message: OutboundMessage) -> Request:
    """Return the call that sends one part. Raises `SendError` for what QQ has no place for."""
    is_group = _is_group(message.address)
    number = _number(message.address)
    whom = {"group_id": number} if is_group else {"user_id": number}
    content = media.read(message.part.file) if message.part.file else b""
    segments = _segments(message, content)
    if segments is None:
        return Request(
            "upload_group_file" if is_group else "upload_private_file",
            {**whom, "file_uri": _inline(content), "file_name": message.part.file_name},
        )
    send = "send_group_message" if is_group else "send_private_message"
    return Request(send, {**whom, "message": segments})


def reaction(address: ChatAddress, message_id: str, *, face: str) -> Request | None:
    """Return the call that shows a group that a message was seen, None where nothing can show it."""
    if address.target_type != "group" or not face or not message_id.isdecimal():
        return None
    return Request(
        "send_group_message_reaction",
        {"group_id": _number(address), "message_seq": int(message_id), "reaction": face},
    )


def _is_group(address: ChatAddress) -> bool:
    """Nothing is sent to what is not known to be a person or a group, nor to a topic."""
    if address.target_type not in ("private", "group") or address.thread_id:
        raise SendError(
            f'"{address}" is no chat of QQ: those are {address.channel}:private:<number> '
            f"and {address.channel}:group:<number>",
            permanent=True,
        )
    return address.target_type == "group"


def _number(address: ChatAddress) -> int:
    number = int(address.target_id) if _is_plain_number(address.target_id) else 0
    if not SMALLEST <= number <= LARGEST:
        raise SendError(
            f'"{address}": "{address.target_id}" is no number of QQ, which go '
            f"from {SMALLEST} to {LARGEST}",
            permanent=True,
        )
    return number


def _is_plain_number(text: str) -> bool:
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(LARGEST)):
        return False
    return not text.startswith("0")  # it would be a second address of the same chat


def _segments(message: OutboundMessage, content: bytes) -> list[dict[str, Any]] | None:
    """Return what a message is made of, None for what only an upload can carry."""
    part = message.part
    quote = _quote(message.reply_to)
    if not part.file:
        is_group = message.address.target_type == "group"
        return [*quote, *(_with_mentions(part.text) if is_group else _plain(part.text))]
    if part.file_kind == "image" and _is_picture(content):
        return [*quote, {"type": "image", "data": {"uri": _inline(content)}}]
    if part.file_kind == "voice" and _is_voice(content):
        # QQ's voice messages hold nothing else, no quote either.
        return [{"type": "record", "data": {"uri": _inline(content)}}]
    return None


def _with_mentions(text: str) -> list[dict[str, Any]]:
    """Turn each @<QQ number> into a mention, with the blank behind it that QQ wants."""
    segments: list[dict[str, Any]] = []
    at = 0
    for found in MENTION.finditer(text):
        if not SMALLEST <= int(found[1]) <= LARGEST:
            continue
        mention = {"type": "mention", "data": {"user_id": int(found[1])}}
        segments += [*_plain(text[at : found.start()]), mention]
        at = found.end()
        if not text[at : at + 1].isspace():
            segments += _plain(" ")
    return [*segments, *_plain(text[at:])]


def _plain(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "data": {"text": text}}] if text else []


def _quote(message_id: str) -> list[dict[str, Any]]:
    if not (message_id.isascii() and message_id.isdecimal()):
        return []
    return [{"type": "reply", "data": {"message_seq": int(message_id)}}]


def _inline(content: bytes) -> str:
    return f"base64://{base64.b64encode(content).decode()}"


def _is_picture(content: bytes) -> bool:
    return content.startswith(PICTURES) or (content[:4] == b"RIFF" and content[8:12] == b"WEBP")


def _is_voice(content: bytes) -> bool:
    return content.startswith(VOICES) or (content[:4] == b"RIFF" and content[8:12] == b"WAVE")
