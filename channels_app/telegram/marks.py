"""What is marked in a text, and the text as a model reads it, who sees no marks. Pure. Source: protocols/telegram.md, section 4."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from channels_app.telegram.wire import Node

CODE = ("code", "pre")

_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")
_TICKS = re.compile("`+")
_NEWLINE = "\n".encode("utf-16-le")


@dataclass(frozen=True, slots=True)
class Entity:
    """`offset` and `end` are in UTF-16 units; `covered` is the text between them."""

    type: str
    offset: int
    end: int
    covered: str
    url: str = ""
    user_id: int | None = None
    language: str = ""


def entities(message: Node, text: str) -> Iterator[Entity]:
    wire = text.encode("utf-16-le")
    for entity in message.nodes("entities") or message.nodes("caption_entities"):
        offset, length = entity.number("offset"), entity.number("length")
        if offset is None or length is None or offset < 0 or length <= 0:
            continue
        covered = wire[2 * offset : 2 * (offset + length)].decode("utf-16-le", "replace")
        yield Entity(
            entity.text("type"),
            offset,
            offset + length,
            covered,
            entity.text("url"),
            entity.node("user").number("id"),
            entity.text("language"),
        )


def written_out(text: str, marked: Sequence[Entity]) -> str:
    """Add where links lead, and code as Markdown. What only looks different stays as it is, spoilers too."""
    wire = text.encode("utf-16-le")
    added: list[tuple[int, int, bytes]] = []
    outer_first = sorted(marked, key=lambda each: (each.offset, -each.end, each.type in CODE))
    for depth, entity in enumerate(outer_first, start=1):
        before, behind = _around(entity, wire)
        # At one place what ends comes before what begins, and the inner end before the outer one.
        added.append((entity.offset, depth, before.encode("utf-16-le")))
        added.append((entity.end, -depth, behind.encode("utf-16-le")))
    written, at = b"", 0
    for place, _, mark in sorted(added):
        written += wire[2 * at : 2 * place] + mark
        at = place
    return (written + wire[2 * at :]).decode("utf-16-le", "replace")


def _around(entity: Entity, wire: bytes) -> tuple[str, str]:
    match entity.type:
        case "text_link":
            return "", leading_to(entity.covered, entity.url)
        case "code":
            return fences(entity.covered)
        case "pre":
            before, behind = wire[: 2 * entity.offset], wire[2 * entity.end :]
            opening, closing = block_fences(entity.covered, entity.language)
            return (
                opening if not before or before.endswith(_NEWLINE) else f"\n{opening}",
                closing if not behind or behind.startswith(_NEWLINE) else f"{closing}\n",
            )
    return "", ""


def leading_to(label: str, url: str) -> str:
    """Return what follows a link: its address, unless that is what it shows."""
    return f" ({url})" if url and url.rstrip("/") != label.rstrip("/") else ""


def fences(code: str) -> tuple[str, str]:
    ticks = "`" * (_longest_run(code) + 1)
    touches = code.startswith("`") or code.endswith("`")
    return (f"{ticks} ", f" {ticks}") if touches else (ticks, ticks)


def block_fences(code: str, language: str) -> tuple[str, str]:
    ticks = "`" * max(3, _longest_run(code) + 1)
    word = language if _LANGUAGE.fullmatch(language) else ""
    return f"{ticks}{word}\n", ticks if code.endswith("\n") else f"\n{ticks}"


def _longest_run(code: str) -> int:
    return max((len(ticks) for ticks in _TICKS.findall(code)), default=0)
