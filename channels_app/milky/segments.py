"""What an incoming message is made of, as text and files. Pure, and never raises on odd input.

Source: protocols/milky.md, section 7. What quotes or forwards hold is read as far as a person would: neither endlessly deep nor long.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from channels_app.messages import Attachment, storable

MOST_SEGMENTS = 300  # of one message, with those that it quotes
DEEPEST = 3  # quotes within quotes
MOST_FILES = 50
LONGEST_QUOTE = 1000  # characters
LONGEST_CARD = 500  # characters
LARGEST = 2**63 - 1

_STOCK_SUMMARIES = ("", "[图片]", "[动画表情]")
_CARD_WORDS = ("title", "desc", "description")
_CARD_LINKS = ("qqdocurl", "jumpUrl", "url")
_BRIEF = re.compile(r'\bbrief\s*=\s*"([^"]{1,500})"')

Piece = str | Attachment


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that another one replies to. Ends before 1.2 tell its number alone, so that `sender_id` is None."""

    message_seq: int
    sender_id: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Forward:
    """Other people's messages, packed into one: `shown` stands for it in the text until it is unfolded."""

    forward_id: str
    title: str
    shown: str


@dataclass(frozen=True, slots=True)
class Content:
    text: str
    attachments: tuple[Attachment, ...]
    mentioned: frozenset[int]
    quoted: Quoted | None
    forwards: tuple[Forward, ...]


def read(segments: Any, *, self_id: int, owner: Mapping[str, int]) -> Content:
    """Read a message's segments. `owner` is whose files its files are, as the APIs name it: {"group_id": 20001}.

    A mention of ourselves that opens the message is left out: a command may follow.
    """
    top = list(_nodes(segments))[:MOST_SEGMENTS]
    room = iter(range(MOST_SEGMENTS))
    quoted = next((_quoted(data, room) for kind, data in top if kind == "reply"), None)
    body = [(kind, data) for kind, data in top if kind != "reply"]
    pieces = [_piece(kind, data, owner) for kind, data in _unaddressed(body, self_id)]
    mentions = (number(data, "user_id") for kind, data in body if kind == "mention")
    text = "".join(piece for piece in pieces if isinstance(piece, str)).strip()
    return Content(
        text=text or _bare_mention(body),
        attachments=tuple(piece for piece in pieces if isinstance(piece, Attachment))[:MOST_FILES],
        mentioned=frozenset(mention for mention in mentions if mention is not None),
        quoted=quoted,
        forwards=tuple(forward(data) for kind, data in body if kind == "forward"),
    )


def words(segments: Any, room: Iterator[int], *, depth: int = 1) -> str:
    """Return segments as one text, files described; each takes one of `room`."""
    return _in_words(pieces(segments, room, depth=depth)).strip()


def pieces(segments: Any, room: Iterator[int], *, depth: int = 1) -> Iterator[Piece]:
    """Yield what is said and the files of a message inside another one."""
    for (kind, data), _ in zip(_nodes(segments), room, strict=False):
        if kind != "reply":
            yield _piece(kind, data, {})
        elif depth < DEEPEST and (quoted := words(data.get("segments"), room, depth=depth + 1)):
            yield f"(in reply to: {quoted[:LONGEST_QUOTE]}) "


def forward(data: Mapping[str, Any]) -> Forward:
    title = text(data, "title")
    head = f"[forwarded: {title or 'messages'}]"
    preview = data.get("preview")
    lines = [line for line in preview if isinstance(line, str)] if isinstance(preview, list) else []
    shown = storable("\n".join([head, *lines[:4]]))[:LONGEST_QUOTE].strip()
    return Forward(text(data, "forward_id"), title or "other messages", shown)


def text(data: Mapping[str, Any], key: str) -> str:
    """Return a text that can be stored and sent on, "" for anything else."""
    found = data.get(key)
    return storable(found) if isinstance(found, str) else ""


def number(data: Mapping[str, Any], key: str) -> int | None:
    """Return a whole number that a database takes, None for anything else."""
    found = data.get(key)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= LARGEST:
        return None
    return found


def node(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, Mapping) else {}


def described(file: Attachment) -> str:
    return f"[{': '.join(filter(None, (file.kind, file.name or file.text)))}]"


def _nodes(segments: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for segment in segments if isinstance(segments, list) else ():
        if isinstance(segment, Mapping):
            yield text(segment, "type"), node(segment, "data")


def _unaddressed(
    body: list[tuple[str, Mapping[str, Any]]], self_id: int
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Leave out the mentions of ourselves before the first word."""
    begun = False
    for kind, data in body:
        is_blank = kind == "text" and not text(data, "text").strip()
        is_us = kind == "mention" and number(data, "user_id") == self_id
        if begun or not (is_blank or is_us):
            begun = True
            yield kind, data


def _bare_mention(body: list[tuple[str, Mapping[str, Any]]]) -> str:
    """A message that is a mention and no more still calls us."""
    kinds = {kind for kind, data in body}
    if not kinds <= {"mention", "text"}:
        return ""
    return "".join(_mention(data) for kind, data in body if kind == "mention")


def _quoted(data: Mapping[str, Any], room: Iterator[int]) -> Quoted | None:
    message_seq = number(data, "message_seq")
    if message_seq is None:
        return None
    quoted = words(data.get("segments"), room)[:LONGEST_QUOTE]
    return Quoted(message_seq, number(data, "sender_id"), quoted)


def _in_words(said: Iterator[Piece]) -> str:
    return "".join(piece if isinstance(piece, str) else described(piece) for piece in said)


def _piece(kind: str, data: Mapping[str, Any], owner: Mapping[str, int]) -> Piece:
    match kind:
        case "text":
            return text(data, "text")
        case "mention":
            return _mention(data)
        case "mention_all":
            return "@全体成员"
        case "face":
            return f"[face {text(data, 'face_id')}]"
        case "image":
            return _image(data)
        case "record":
            return _resource("voice", data, _length(data))
        case "video":
            return _resource("video", data, f"{_length(data)} {_measure(data)}".strip())
        case "file":
            return _file(data, owner)
        case "forward":
            return forward(data).shown
        case "market_face":
            return Attachment("sticker", text=text(data, "summary"))
        case "light_app":
            return _card(_light_app(data))
        case "xml":
            return _card(html.unescape("".join(_BRIEF.findall(text(data, "xml_payload"))[:1])))
        case "markdown":
            return text(data, "content")
    return f"[unsupported: {kind[:40] or 'a part without a type'}]"


def _mention(data: Mapping[str, Any]) -> str:
    return f"@{text(data, 'name') or number(data, 'user_id') or '?'}"


def _image(data: Mapping[str, Any]) -> Attachment:
    summary = text(data, "summary")
    what = "" if summary in _STOCK_SUMMARIES else summary
    kind = "sticker" if data.get("sub_type") == "sticker" else "image"
    return _resource(kind, data, f"{what} {_measure(data)}".strip())


def _resource(kind: str, data: Mapping[str, Any], what: str) -> Attachment:
    where = {"resource_id": text(data, "resource_id"), "temp_url": text(data, "temp_url")}
    return Attachment(kind, text=what, platform_id=json.dumps(where))


def _file(data: Mapping[str, Any], owner: Mapping[str, int]) -> Attachment:
    where = {**owner, "file_id": text(data, "file_id"), "file_hash": text(data, "file_hash")}
    return Attachment(
        "file",
        platform_id=json.dumps(where) if owner else "",
        name=text(data, "file_name"),
        size=number(data, "file_size"),
    )


def _length(data: Mapping[str, Any]) -> str:
    seconds = number(data, "duration")
    return "" if seconds is None else f"{seconds} s"


def _measure(data: Mapping[str, Any]) -> str:
    width, height = number(data, "width"), number(data, "height")
    return f"{width}x{height}" if width and height else ""


def _card(what: str) -> str:
    return f"[card: {what[:LONGEST_CARD]}]" if what else "[card]"


def _light_app(data: Mapping[str, Any]) -> str:
    """Return what a mini app's card shows: its own words, then title, description and link of what it shares."""
    try:
        payload = json.loads(text(data, "json_payload"))
    except (ValueError, RecursionError):
        payload = None
    payload = payload if isinstance(payload, dict) else {}
    found = [text(payload, "prompt")]
    for shared in node(payload, "meta").values():
        if isinstance(shared, Mapping):
            found += [text(shared, key) for key in _CARD_WORDS]
            found += list(filter(None, (text(shared, key) for key in _CARD_LINKS)))[:1]
    return " · ".join(dict.fromkeys(filter(None, found))) or text(data, "app_name")
