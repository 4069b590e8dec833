"""What Telegram says to our texts: its own parser, and the rules of its reference."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any
from unittest import TestCase

from aiogram.types import MessageEntity
from aiogram.utils.text_decorations import html_decoration

from channels_app.messages import OutboundPart
from channels_app.telegram.markdown import split
from tests.fakes.telegram import tdlib
from tests.fakes.telegram.text import MOST_IN_TEXT, text_of, units

Entity = dict[str, Any]


class MarkdownCase(TestCase):
    def show(self, text: str) -> list[OutboundPart]:
        """Split a text without a failure that is only logged, and let Telegram judge what comes out."""
        with self.assertNoLogs("channels_app.telegram"):
            parts = split(text)
        for part in parts:
            self.assert_telegram_takes(part)
        return parts

    def show_one(self, text: str) -> OutboundPart:
        (part,) = self.show(text)
        return part

    def marks(self, text: str) -> list[tuple[str, str]]:
        """Return what is marked in a text that fits into one message: the types, and what they cover."""
        part = self.show_one(text)
        return [(entity["type"], covered(part.text, entity)) for entity in part.markup]

    def assert_telegram_takes(self, part: OutboundPart) -> None:
        self.assertLessEqual(units(part.text), MOST_IN_TEXT)
        self.assertLessEqual(len(part.markup), 100)
        entities = {"entities": part.markup} if part.markup else {}
        self.assertEqual(text_of({"text": part.text, **entities}), {"text": part.text, **entities})
        self.assert_nested_well(part.markup)
        self.assertEqual(read_back(part), (part.text, in_order(map(canonical, part.markup))))

    def assert_nested_well(self, entities: Sequence[Entity]) -> None:
        self.assertEqual(entities, in_order(entities))
        for outer, inner in combinations(entities, 2):
            if inner["offset"] >= end(outer):
                continue
            kinds = outer["type"], inner["type"]
            self.assertLessEqual(end(inner), end(outer), "they cross")
            self.assertNotIn(outer["type"], ("code", "pre"), "nothing is inside of code")
            self.assertNotEqual(*kinds)
            if inner["type"] in ("code", "pre"):
                self.assertEqual(outer["type"], "blockquote", "code is inside of nothing else")


def covered(text: str, entity: Entity) -> str:
    raw = text.encode("utf-16-le")[2 * entity["offset"] : 2 * end(entity)]
    return raw.decode("utf-16-le")


def end(entity: Entity) -> int:
    return int(entity["offset"] + entity["length"])


def in_order(entities: Iterable[Entity]) -> list[Entity]:
    return sorted(entities, key=lambda entity: (entity["offset"], -entity["length"]))


def canonical(entity: Entity) -> Entity:
    """The same entity with its link as the server would write it."""
    if "url" not in entity:
        return entity
    _, (link,) = tdlib.parse(f'<a href="{entity["url"]}">x</a>', "html")
    return entity | {"url": link["url"]}


def read_back(part: OutboundPart) -> tuple[str, list[Entity]]:
    """Write a part as HTML by somebody else's hand and let Telegram's parser read it."""
    entities = [MessageEntity(**entity) for entity in part.markup]
    html = html_decoration.unparse(part.text, entities)
    # Its author calls the attribute of a language by another name than Telegram does.
    text, read = tdlib.parse(html.replace("<code language=", "<code class="), "html")
    return text, in_order(read)
