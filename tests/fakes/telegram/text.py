"""Texts and captions as the server takes them: parsed, trimmed, and neither empty nor too long."""

from typing import Any

from tests.fakes.telegram import tdlib
from tests.fakes.telegram.answers import bad_request

MOST_BYTES = 32_768  # of a text before it is parsed
MOST_IN_TEXT = 4096  # UTF-16 units after it is parsed and trimmed
MOST_IN_CAPTION = 1024


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def text_of(params: dict[str, Any]) -> dict[str, Any]:
    """Return the text of a message and its entities. Raises what the server says to bad ones."""
    if not params.get("text"):
        raise bad_request("message text is empty")
    text, entities = _read(params["text"], params.get("entities"), params.get("parse_mode"))
    if not text:
        raise bad_request("text must be non-empty")
    if units(text) > MOST_IN_TEXT:
        raise bad_request("message is too long")
    return {"text": text} | ({"entities": entities} if entities else {})


def caption_of(params: dict[str, Any]) -> dict[str, Any]:
    raw = params.get("caption") or ""
    text, entities = _read(raw, params.get("caption_entities"), params.get("parse_mode"))
    if units(text) > MOST_IN_CAPTION:
        raise bad_request("message caption is too long")
    if not text:
        return {}
    return {"caption": text} | ({"caption_entities": entities} if entities else {})


def _read(
    text: str, entities: list[tdlib.Entity] | None, mode: str | None
) -> tuple[str, list[tdlib.Entity]]:
    if len(text.encode()) > MOST_BYTES:
        raise bad_request("text is too long")
    if entities is not None:
        tdlib.require_sound(text, entities)
    elif mode:
        text, entities = tdlib.parse(text, mode)
    return _trimmed(text, entities or [])


def _trimmed(text: str, entities: list[tdlib.Entity]) -> tuple[str, list[tdlib.Entity]]:
    """Cut white space at the end, and at the start as far as the first entity."""
    text = text.rstrip()
    end = units(text)
    kept = [
        entity | {"length": min(entity["length"], end - entity["offset"])}
        for entity in entities
        if entity["offset"] < end
    ]
    first = min((entity["offset"] for entity in kept), default=end)
    skipped = min(first, len(text) - len(text.lstrip(" \n")))
    moved = [entity | {"offset": entity["offset"] - skipped} for entity in kept]
    return text[skipped:], [entity for entity in moved if entity["length"] > 0]
