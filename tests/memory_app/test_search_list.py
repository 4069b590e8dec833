"""The fixed list: each query finds its item first, in every mode, on both databases, and in the owner's search."""

from typing import ClassVar

from django.test import TestCase

from memory_app.embedding import Embedder, query_vector
from memory_app.models import ItemKind, MemoryItem, MemoryTurn, TurnKind
from memory_app.search import (
    Mode,
    search,
    search_everywhere,
    search_turns,
    search_turns_everywhere,
)
from memory_app.turns import NewTurn, append_turn
from tests.fakes.embedder import FakeEmbedder
from tests.memory_app.cast import ALICE, BOB, GROUP, scope, session
from tests.memory_app.queries import ASKED, NOTHING, REMEMBERED
from tests.memory_app.stage import fill, give_vectors


class ItemListTests(TestCase):
    names: ClassVar[dict[int, str]]
    embedder: ClassVar[Embedder]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.names = {pk: name for name, pk in fill().items()}
        cls.embedder = FakeEmbedder().as_embedder()
        give_vectors(cls.embedder)

    def first(self, query: str, mode: Mode) -> str | None:
        vector = query_vector(query, embedder=self.embedder)
        hits = search(query, scope=scope(ALICE), limit=5, mode=mode, vector=vector)
        return self.names[hits[0].item.pk] if hits else None

    def test_it_is_long_enough(self):
        self.assertGreaterEqual(len(ASKED), 80)

    def test_it_finds_each_item_first_by_keyword(self):
        wrong = [
            (query, got)
            for query, want in ASKED
            if (got := self.first(query, Mode.KEYWORD)) != want
        ]

        self.assertEqual(wrong, [])

    def test_it_finds_each_item_first_by_both(self):
        wrong = [
            (query, got) for query, want in ASKED if (got := self.first(query, Mode.HYBRID)) != want
        ]

        self.assertEqual(wrong, [])

    def test_it_finds_each_item_first_in_the_owners_search(self):
        hers = MemoryItem.objects.in_scope(scope(ALICE)).filter(kind=ItemKind.FACT)
        wrong = []
        for query, want in ASKED:
            hits = search_everywhere(query, within=hers, asked_by="the owner", limit=5)
            if not hits or self.names[hits[0].item.pk] != want:
                wrong.append(query)

        self.assertEqual(wrong, [])

    def test_it_finds_nothing_for_what_nobody_said(self):
        found = [query for query in NOTHING if self.first(query, Mode.KEYWORD)]

        self.assertEqual(found, [])

    def test_it_finds_nothing_of_strangers(self):
        """The very same words stand in the memory of others; bob has none."""
        for query, _ in ASKED:
            for mode in Mode:
                vector = query_vector(query, embedder=self.embedder)
                if vector is None:
                    continue
                self.assertEqual(
                    search(query, scope=scope(BOB), limit=5, mode=mode, vector=vector), [], query
                )


class TranscriptListTests(TestCase):
    names: ClassVar[dict[int, str]]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.names = {}
        for name, content in REMEMBERED.items():
            append_turn(GROUP, NewTurn(kind=TurnKind.IMPORTED, content=content))
            turn = append_turn(ALICE, NewTurn(kind=TurnKind.IMPORTED, content=content))
            cls.names[turn.pk] = name

    def test_it_finds_each_line_first(self):
        """The transcript has the tokenizer of the memory: a query that finds an item finds the line it came from."""
        wrong = []
        for query, want in ASKED:
            hits = search_turns(query, session=session(ALICE), limit=5)
            if not hits or self.names[hits[0].turn.pk] != want:
                wrong.append(query)

        self.assertEqual(wrong, [])

    def test_it_finds_each_line_first_in_the_owners_search(self):
        hers = MemoryTurn.objects.filter(session__chat__chat_key=ALICE.chat_key)
        wrong = []
        for query, want in ASKED:
            hits = search_turns_everywhere(query, within=hers, asked_by="the owner", limit=5)
            if not hits or self.names[hits[0].turn.pk] != want:
                wrong.append(query)

        self.assertEqual(wrong, [])
