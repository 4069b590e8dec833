"""Random lives of a memory over many chats, against a plain model of it (DESIGN 6)."""

from dataclasses import dataclass, replace

from django.db import transaction
from django.test import TestCase
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from memory_app import embedding, items
from memory_app.embedding import query_vector
from memory_app.items import ForgottenError, NewItem, Outcome, content_hash
from memory_app.models import ItemKind, MemoryEmbedding, MemoryItem, TurnKind
from memory_app.recall import recall
from memory_app.scopes import GLOBAL, Scope
from memory_app.search import Mode, search, search_everywhere
from memory_app.turns import NewTurn, append_turn
from tests.fakes.embedder import FakeEmbedder
from tests.memory_app.cast import ALICE, ALICE_ELSEWHERE, BOB, GROUP, TOPIC, key, scope
from tests.memory_app.stage import give_vectors

CHATS = (ALICE, GROUP, ALICE_ELSEWHERE, BOB)
SCOPES = (*map(scope, CHATS), GLOBAL)
READERS = (*CHATS, TOPIC)
WORDS = ("花火", "乌龙茶", "redis", "불꽃", "café", "🐉")
MOST = 200  # more than any life holds: what is found is everything that matches

EMBEDDER = FakeEmbedder().as_embedder()


@dataclass(frozen=True)
class Kept:
    """One item as the plain model knows it."""

    scope: Scope
    content: str
    word: str
    turn: int
    proofs: frozenset[int] = frozenset()
    state: str = "active"
    version: int = 1
    held: bool = False

    @property
    def is_recallable(self) -> bool:
        return self.state == "active" and not self.held


class MemoryMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.life = transaction.atomic()
        self.life.__enter__()
        self.items: dict[int, Kept] = {}
        self.gone_words: set[tuple[Scope, str]] = set()
        self.gone_turns: set[int] = set()
        self.gone_proofs: set[tuple[Scope, int]] = set()
        self.turns = [
            append_turn(chat, NewTurn(kind=TurnKind.NOTICE, content="said"))
            for chat in (ALICE, BOB)
        ]

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.life.__exit__(None, None, None)

    def pick(self, number: int, *states: str) -> int | None:
        """Return one of the items in some state, the same for the same number."""
        fitting = sorted(pk for pk, item in self.items.items() if item.state in states)
        return fitting[number % len(fitting)] if fitting else None

    def twin(self, where: Scope, content: str) -> int | None:
        same = [
            pk
            for pk, item in self.items.items()
            if item.is_recallable
            and (item.scope, content_hash(item.content)) == (where, content_hash(content))
        ]
        return min(same, default=None)

    def bump(self, pk: int, **changes: object) -> None:
        item = self.items[pk]
        self.items[pk] = replace(item, version=item.version + 1, **changes)  # type: ignore[arg-type]

    def new(
        self, content: str, turn: int, *, asked_again: bool = False, held: bool = False
    ) -> NewItem:
        return NewItem(
            kind=ItemKind.FACT,
            content=content,
            source_turn=self.turns[turn],
            asked_again=asked_again,
            held=held,
        )

    def is_refused(self, where: Scope, content: str, turn: int) -> bool:
        proof = self.turns[turn].pk
        return (
            (where, content_hash(content)) in self.gone_words
            or (where, proof) in self.gone_proofs
            or proof in self.gone_turns
        )

    def see(self, pk: int, turn: int) -> None:
        self.bump(pk, proofs=self.items[pk].proofs | {self.turns[turn].pk})

    @rule(
        where=st.sampled_from(SCOPES),
        word=st.sampled_from(WORDS),
        number=st.integers(0, 3),
        turn=st.integers(0, 1),
        asked_again=st.booleans(),
        held=st.booleans(),
    )
    def store(
        self, where: Scope, word: str, number: int, turn: int, asked_again: bool, held: bool
    ) -> None:
        content = f"{word} {number}"
        new = self.new(content, turn, asked_again=asked_again, held=held)
        if not asked_again and self.is_refused(where, content, turn):
            try:
                items.store(new, scope=where)
            except ForgottenError:
                return
            raise AssertionError(f"{content} was forgotten in {where} and is learnt again")
        twin = self.twin(where, content)
        stored = items.store(new, scope=where)
        if twin is None:
            assert stored.outcome == Outcome.ADDED
            self.items[stored.item.pk] = Kept(where, content, word, self.turns[turn].pk, held=held)
        else:
            assert (stored.outcome, stored.item.pk) == (Outcome.SEEN, twin)
            self.see(twin, turn)

    @rule(number=st.integers(0, 50), word=st.sampled_from(WORDS))
    def supersede(self, number: int, word: str) -> None:
        pk = self.pick(number, "active")
        if pk is None:
            return
        item, content = self.items[pk], f"{word} instead of {pk}"
        stored = items.supersede(
            pk, self.new(content, 0, asked_again=True), scope=item.scope, version=item.version
        )
        twin = self.twin(item.scope, content)
        if twin is None:
            self.items[stored.item.pk] = Kept(item.scope, content, word, self.turns[0].pk)
        else:
            self.see(twin, 0)
        if stored.item.pk != pk:
            self.bump(pk, state="superseded")

    @rule(number=st.integers(0, 50), word=st.sampled_from(WORDS))
    def edit(self, number: int, word: str) -> None:
        pk = self.pick(number, "active", "archived")
        if pk is None:
            return
        item, content = self.items[pk], f"{word} edited {pk}"
        items.edit(
            pk, scope=item.scope, version=item.version, content=content, title="", importance=0.5
        )
        self.bump(pk, content=content, word=word)

    @rule(number=st.integers(0, 50))
    def archive(self, number: int) -> None:
        pk = self.pick(number, "active")
        if pk is not None:
            items.archive(pk, scope=self.items[pk].scope, version=self.items[pk].version)
            self.bump(pk, state="archived")

    @rule(number=st.integers(0, 50))
    def restore(self, number: int) -> None:
        pk = self.pick(number, "archived", "superseded")
        if pk is not None:
            items.restore(pk, scope=self.items[pk].scope, version=self.items[pk].version)
            self.bump(pk, state="active")

    @rule(number=st.integers(0, 50), to=st.sampled_from(SCOPES))
    def move(self, number: int, to: Scope) -> None:
        pk = self.pick(number, "active", "archived", "superseded")
        if pk is not None and self.items[pk].scope != to:
            items.move(pk, scope=self.items[pk].scope, to=to, version=self.items[pk].version)
            self.bump(pk, scope=to, held=False)

    @rule(number=st.integers(0, 50))
    def forget(self, number: int) -> None:
        pk = self.pick(number, "active", "archived", "superseded")
        if pk is None:
            return
        item = self.items[pk]
        items.forget(pk, scope=item.scope)
        self.gone_words.add((item.scope, content_hash(item.content)))
        self.gone_turns.add(item.turn)
        self.gone_proofs |= {(item.scope, turn) for turn in item.proofs}
        self.bump(pk, state="forgotten", content="", word="", held=False)

    @rule()
    def give_vectors(self) -> None:
        give_vectors(EMBEDDER)

    @rule()
    def reindex(self) -> None:
        items.rewrite_words()
        embedding.reindex(EMBEDDER.model)
        give_vectors(EMBEDDER)

    @rule(reader=st.sampled_from(READERS), word=st.sampled_from(WORDS), by_vector=st.booleans())
    def recall(self, reader, word: str, by_vector: bool) -> None:
        vector = query_vector(word, embedder=EMBEDDER) if by_vector else None
        hits = recall(word, key=key(reader), budget=MOST, vector=vector)

        places = [hit.item.scope_id for hit in hits]
        assert places == sorted(places, key=lambda place: place == GLOBAL.scope_id), "shared first"
        shown = [content_hash(hit.item.content) for hit in hits]
        assert len(shown) == len(set(shown)), "twice the same"
        readable = [
            content_hash(item.content)
            for item in self.items.values()
            if item.is_recallable and item.word == word and item.scope in (scope(reader), GLOBAL)
        ]
        assert set(readable) <= set(shown) if by_vector else set(readable) == set(shown)
        assert all(self.items[hit.item.pk].scope in (scope(reader), GLOBAL) for hit in hits)
        assert all(self.items[hit.item.pk].is_recallable for hit in hits)

    @rule(where=st.sampled_from(SCOPES), word=st.sampled_from(WORDS))
    def search(self, where: Scope, word: str) -> None:
        hits = search(word, scope=where, limit=MOST, mode=Mode.KEYWORD, vector=None)

        expected = {
            pk
            for pk, item in self.items.items()
            if item.is_recallable and item.scope == where and item.word == word
        }
        assert {hit.item.pk for hit in hits} == expected
        scores = [(-hit.score, -hit.item.pk) for hit in hits]
        assert scores == sorted(scores), "in no order"

    @rule(word=st.sampled_from(WORDS))
    def search_everywhere(self, word: str) -> None:
        hits = search_everywhere(word, within=MemoryItem.objects.all(), asked_by="root", limit=MOST)

        assert {hit.item.pk for hit in hits} == {
            pk for pk, item in self.items.items() if item.word == word and item.state != "forgotten"
        }

    @invariant()
    def it_holds_what_the_model_holds(self) -> None:
        rows = {
            row.pk: (row.scope_type, row.scope_id, row.content, row.status, row.version, row.held)
            for row in MemoryItem.objects.all()
        }
        assert rows == {
            pk: (
                item.scope.scope_type,
                item.scope.scope_id,
                item.content,
                item.state,
                item.version,
                item.held,
            )
            for pk, item in self.items.items()
        }

    @invariant()
    def it_keeps_no_vector_of_old_words(self) -> None:
        for row in MemoryEmbedding.objects.select_related("item"):
            assert row.item.status != "forgotten"
            assert row.content_hash == row.item.content_hash


class MachineTests(TestCase):
    def test_it_keeps_to_the_model_whatever_happens(self):
        run_state_machine_as_test(
            MemoryMachine,
            settings=settings(
                max_examples=40,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow],
            ),
        )
