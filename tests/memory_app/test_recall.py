"""What a session is reminded of: its chat first, then what all share, and nothing of anybody else's (DESIGN 6)."""

from django.test import TestCase

from channels_app.addresses import ChatAddress, SessionKey
from memory_app import items
from memory_app.embedding import query_vector
from memory_app.models import MemoryTurn, RecallReceipt, TurnKind
from memory_app.recall import keep_receipts, recall, receipts_of
from memory_app.scopes import GLOBAL
from memory_app.search import Hit
from memory_app.turns import NewTurn, append_turn
from tests.fakes.embedder import FakeEmbedder
from tests.memory_app.cast import ALICE, ALICE_ELSEWHERE, BOB, GROUP, TOPIC, key, remember, scope
from tests.memory_app.stage import give_vectors

EMBEDDER = FakeEmbedder().as_embedder()


def recalled(
    who: SessionKey, query: str, *, budget: int = 10, by_vector: bool = False
) -> list[str]:
    vector = query_vector(query, embedder=EMBEDDER) if by_vector else None
    hits = recall(query, key=who, budget=budget, vector=vector)
    return [hit.item.content for hit in hits]


class RecallTests(TestCase):
    def test_it_recalls_the_chats_own_before_what_all_share(self):
        remember(GLOBAL, "tea")
        remember(ALICE, "likes tea, and has a great many kinds of it in the kitchen")
        give_vectors(EMBEDDER)

        for by_vector in (False, True):
            hits = recalled(key(ALICE), "tea", by_vector=by_vector)
            self.assertEqual([len(hit) for hit in hits], [58, 3], hits)

    def test_it_fills_with_shared_items_what_the_chat_leaves(self):
        for number in range(3):
            remember(ALICE, f"tea {number}")
            remember(GLOBAL, f"shared tea {number}")

        self.assertEqual(len(recalled(key(ALICE), "tea", budget=4)), 4)
        self.assertEqual(recalled(key(ALICE), "tea", budget=4)[3], "shared tea 2")
        self.assertEqual(recalled(key(ALICE), "tea", budget=2), ["tea 2", "tea 1"])
        self.assertEqual(recalled(key(ALICE), "tea", budget=0), [])

    def test_it_recalls_once_what_both_hold(self):
        remember(GLOBAL, "Likes tea.")
        remember(ALICE, "likes tea")

        self.assertEqual(recalled(key(ALICE), "tea"), ["likes tea"])

    def test_it_shows_an_untyped_key_the_shared_memory_only(self):
        remember(ALICE, "likes tea")
        remember(GLOBAL, "shared tea")

        for text in ("fake:10001", "fake:unknown:10001", "fake:10001:abcd1234"):
            self.assertEqual(recalled(SessionKey.parse(text), "tea"), ["shared tea"], text)

    def test_it_shows_every_session_of_a_chat_the_same(self):
        """`/new`, a topic, a job and a subagent begin with an empty history; the memory is the chat's."""
        remember(GROUP, "likes tea")
        own = key(GROUP)

        for other in (own.new(), own.cron("j1"), own.subagent("t1"), key(TOPIC)):
            self.assertEqual(recalled(other, "tea"), ["likes tea"], str(other))

    def test_it_recalls_nothing_of_other_chats(self):
        """Allergies of one are no answer to another, nor what was learnt in private to a group she is in."""
        remember(ALICE, "allergic to peanuts, birthday 12 Mar")
        give_vectors(EMBEDDER)

        for stranger in (GROUP, TOPIC, ALICE_ELSEWHERE, BOB):
            for query in ("any allergies I should know of?", "when is my birthday", "peanuts"):
                for by_vector in (False, True):
                    self.assertEqual(recalled(key(stranger), query, by_vector=by_vector), [])
        self.assertTrue(recalled(key(ALICE), "peanuts", by_vector=True))


class ReceiptTests(TestCase):
    def setUp(self) -> None:
        self.answer = append_turn(ALICE, NewTurn(kind=TurnKind.NOTICE, content="an answer"))
        self.mine = remember(ALICE, "likes tea").item
        self.shared = remember(GLOBAL, "tea is in the kitchen").item

    def hits(self) -> list[Hit]:
        return recall("tea", key=key(ALICE), budget=5, vector=None)

    def shown(self, who: ChatAddress, turn: MemoryTurn) -> list[int]:
        return [receipt.item_id for receipt in receipts_of(turn, key=key(who))]

    def test_it_records_what_was_shown_and_how_it_was_found(self):
        keep_receipts(self.hits(), turn=self.answer)

        first = RecallReceipt.objects.earliest("pk")
        self.assertEqual(self.shown(ALICE, self.answer), [self.mine.pk, self.shared.pk])
        self.assertEqual((first.scope_type, first.mode), ("chat", "keyword"))
        self.assertGreater(first.score, 0)

    def test_it_leaves_no_record_of_what_was_forgotten_meanwhile(self):
        hits = self.hits()
        items.forget(self.mine.pk, scope=scope(ALICE))

        keep_receipts(hits, turn=self.answer)

        self.assertEqual([row.item_id for row in RecallReceipt.objects.all()], [self.shared.pk])

    def test_it_no_longer_shows_what_moved_to_another_chat(self):
        keep_receipts(self.hits(), turn=self.answer)

        items.move(self.mine.pk, scope=scope(ALICE), to=scope(BOB), version=1)

        self.assertEqual(self.shown(ALICE, self.answer), [self.shared.pk])
        self.assertEqual(self.shown(GROUP, self.answer), [self.shared.pk])
