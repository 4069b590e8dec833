"""What becomes of an item, scope by scope (DESIGN 6)."""

from django.test import TestCase

from channels_app.addresses import ChatAddress
from memory_app import items
from memory_app.items import (
    ForgottenError,
    ItemError,
    MissingError,
    NewItem,
    Outcome,
    StaleError,
    content_hash,
)
from memory_app.models import (
    ItemKind,
    ItemStatus,
    MemoryCandidate,
    MemoryEmbedding,
    MemoryItem,
    MemoryTurn,
    RecallReceipt,
    TurnKind,
)
from memory_app.scopes import CHAT_SCOPE, GLOBAL, GLOBAL_SCOPE, Scope, ScopeError
from memory_app.turns import NewTurn, append_turn
from sessions_app.models import Chat
from sessions_app.principal import Principal
from tests.memory_app.cast import ALICE, ALICE_ELSEWHERE, BOB, GROUP, remember, scope


def said(address: ChatAddress, text: str) -> MemoryTurn:
    return append_turn(address, NewTurn(kind=TurnKind.NOTICE, content=text))


def contents(where: Scope) -> list[str]:
    rows = MemoryItem.objects.in_scope(where).recallable().order_by("pk")
    return list(rows.values_list("content", flat=True))


class StoreTests(TestCase):
    def test_it_keeps_one_copy_for_each_chat(self):
        """The same words in two chats are two items; a third copy in the first is a duplicate."""
        first = remember(ALICE, "likes oolong tea")
        other = remember(BOB, "likes oolong tea")
        again = remember(ALICE, "  Likes oolong   TEA. ")

        self.assertEqual((first.outcome, other.outcome), (Outcome.ADDED, Outcome.ADDED))
        self.assertEqual((again.outcome, again.item.pk), (Outcome.SEEN, first.item.pk))
        self.assertEqual(contents(scope(ALICE)), ["likes oolong tea"])
        self.assertEqual(contents(scope(BOB)), ["likes oolong tea"])

    def test_it_adds_what_proves_it_to_what_is_known(self):
        one, two = said(ALICE, "I own a grey cat"), said(ALICE, "my grey cat")
        remember(ALICE, "owns a grey cat", source_turn=one)

        again = remember(ALICE, "owns a grey cat", source_turn=two, confidence=0.5)

        self.assertEqual(again.item.source_turn, one)
        self.assertEqual(again.item.evidence, [{"turn": two.pk}])
        self.assertEqual((again.item.version, again.item.confidence), (2, 1.0))

    def test_it_does_not_take_a_held_item_for_a_known_one(self):
        remember(GLOBAL, "likes oolong tea", held=True)

        self.assertEqual(remember(GLOBAL, "likes oolong tea").outcome, Outcome.ADDED)

    def test_it_refuses_a_scope_that_is_none(self):
        """A write without a scope raises; it never means everybody's."""
        for scope_type, scope_id in (("", ""), ("chat", ""), ("", "x"), ("person", "x")):
            with self.assertRaises(ScopeError):
                remember(Scope(scope_type, scope_id), "tea")
        for scope_id in ("10001", "fake:10001", "fake:private:1:abcd1234", "fake:group:1:topic:2"):
            with self.assertRaises(ScopeError, msg=scope_id):
                remember(Scope(CHAT_SCOPE, scope_id), "tea")

        self.assertEqual(MemoryItem.objects.count(), 0)

    def test_it_takes_chats_with_any_character(self):
        for parts in (
            ("telegram", "group", "-1009"),
            ("wx", "private", "o9c-q@im.chat"),
            ("x", "private", "a'b"),
            ("x", "private", "50%"),
            ("x", "private", "名"),
        ):
            address = ChatAddress(*parts)
            remember(address, "tea")
            self.assertEqual(contents(scope(address)), ["tea"], parts)

    def test_it_refuses_what_says_nothing_or_too_much(self):
        for content in ("", " \n", "a" * (items.LONGEST + 1)):
            with self.assertRaises(ItemError):
                remember(ALICE, content)

    def test_it_stores_what_a_database_would_refuse(self):
        stored = remember(ALICE, "tea\0 and \ud800 more", title="\0")

        self.assertTrue(stored.item.content.startswith("tea"))

    def test_it_masks_secrets_everywhere_and_says_so(self):
        stored = remember(
            ALICE,
            "db password is hunter2-xyz",
            title="token 123456:AAfake",
            evidence=[{"quote": "db password is hunter2-xyz"}],
        )

        row = MemoryItem.objects.values().get()
        self.assertEqual(stored.masked, ("token", "password"))
        self.assertNotIn("hunter2", str(row))
        self.assertNotIn("AAfake", str(row))


class ChangeTests(TestCase):
    def test_it_keeps_what_was_superseded_and_links_it(self):
        """A contradiction leaves the new fact active and the old one as linked history."""
        old = remember(ALICE, "loves mapo tofu").item
        new = NewItem(kind=ItemKind.FACT, content="cannot stand mapo tofu any more")

        stored = items.supersede(old.pk, new, scope=scope(ALICE), version=old.version)

        old.refresh_from_db()
        self.assertEqual((old.status, old.superseded_by), (ItemStatus.SUPERSEDED, stored.item))
        self.assertEqual(contents(scope(ALICE)), ["cannot stand mapo tofu any more"])

    def test_it_supersedes_nothing_by_the_same_words(self):
        old = remember(ALICE, "loves mapo tofu").item
        new = NewItem(kind=ItemKind.FACT, content="Loves mapo tofu!")

        stored = items.supersede(old.pk, new, scope=scope(ALICE), version=old.version)

        self.assertEqual((stored.item.pk, stored.outcome), (old.pk, Outcome.SEEN))
        self.assertEqual(contents(scope(ALICE)), ["loves mapo tofu"])

    def test_it_leaves_everything_where_it_cannot_supersede(self):
        old = remember(ALICE, "loves mapo tofu").item
        new = NewItem(kind=ItemKind.FACT, content="hates mapo tofu")

        with self.assertRaises(StaleError):
            items.supersede(old.pk, new, scope=scope(ALICE), version=old.version + 1)

        self.assertEqual(contents(scope(ALICE)), ["loves mapo tofu"])

    def test_it_changes_the_words_and_drops_the_vector_of_the_old_ones(self):
        item = remember(ALICE, "likes tea").item
        MemoryEmbedding.objects.create(item=item, model="m", dimensions=1, vector=b"\0\0\0\0")

        stored = items.edit(
            item.pk, scope=scope(ALICE), version=1, content="pin 4471", title="", importance=0.9
        )

        self.assertEqual(stored.item.content, "pin [PIN removed]")
        self.assertEqual((stored.item.version, stored.masked), (2, ("PIN",)))
        self.assertEqual(MemoryEmbedding.objects.count(), 0)

    def test_it_changes_only_what_its_author_saw(self):
        item = remember(ALICE, "likes tea").item
        items.archive(item.pk, scope=scope(ALICE), version=1)

        with self.assertRaises(StaleError):
            items.restore(item.pk, scope=scope(ALICE), version=1)

        self.assertEqual(contents(scope(ALICE)), [])

    def test_it_reaches_no_item_of_another_scope(self):
        item = remember(ALICE, "likes tea").item
        acts = (items.archive, items.restore, items.release)

        for where in (scope(GROUP), scope(BOB), scope(ALICE_ELSEWHERE), GLOBAL):
            for act in acts:
                with self.assertRaises(MissingError):
                    act(item.pk, scope=where, version=1)
            with self.assertRaises(MissingError):
                items.forget(item.pk, scope=where)
            with self.assertRaises(MissingError):
                items.move(item.pk, scope=where, to=Scope(CHAT_SCOPE, "x:private:1"), version=1)

        item.refresh_from_db()
        self.assertEqual((item.version, item.scope_id), (1, ALICE.chat_key))

    def test_it_archives_and_restores(self):
        item = remember(ALICE, "likes tea").item

        archived = items.archive(item.pk, scope=scope(ALICE), version=1)
        gone = contents(scope(ALICE))
        items.restore(item.pk, scope=scope(ALICE), version=archived.version)

        self.assertEqual((gone, contents(scope(ALICE))), ([], ["likes tea"]))

    def test_it_moves_an_item_with_its_vector_and_releases_it(self):
        item = remember(GLOBAL, "likes tea", held=True).item
        MemoryEmbedding.objects.create(item=item, model="m", dimensions=1, vector=b"\0\0\0\0")

        items.move(item.pk, scope=GLOBAL, to=scope(ALICE), version=1)

        self.assertEqual((contents(GLOBAL), contents(scope(ALICE))), ([], ["likes tea"]))
        self.assertEqual(MemoryEmbedding.objects.filter(item=item).count(), 1)

    def test_it_releases_held_items_one_by_one_or_by_kind(self):
        one = remember(GLOBAL, "likes tea", held=True, kind=ItemKind.PREFERENCE).item
        remember(GLOBAL, "has a cat", held=True)
        remember(scope(BOB), "has a dog", held=True)

        items.release(one.pk, scope=GLOBAL, version=1)
        count = items.release_all(scope=GLOBAL, kind=ItemKind.FACT)

        self.assertEqual((count, contents(GLOBAL)), (1, ["likes tea", "has a cat"]))
        self.assertEqual(contents(scope(BOB)), [])

    def test_it_finds_by_number_only_what_may_be_read(self):
        item = remember(ALICE, "likes tea").item

        mine = items.find(item.pk, scopes=(scope(ALICE), GLOBAL))
        others = [items.find(item.pk, scopes=(scope(who), GLOBAL)) for who in (BOB, GROUP)]

        self.assertEqual((mine, others), (item, [None, None]))


class ForgetTests(TestCase):
    def setUp(self) -> None:
        self.turn = said(ALICE, "my locker is zq-probe")
        stored = remember(
            ALICE,
            "the locker is zq-probe",
            title="zq-probe",
            source_turn=self.turn,
            evidence=[{"quote": "zq-probe"}],
        )
        self.item = stored.item
        MemoryEmbedding.objects.create(item=self.item, model="m", dimensions=1, vector=b"\0" * 4)
        RecallReceipt.objects.create(turn=self.turn, item=self.item, scope_type=CHAT_SCOPE)
        MemoryCandidate.objects.create(
            scope_type=CHAT_SCOPE,
            scope_id=ALICE.chat_key,
            kind=ItemKind.FACT,
            content="the locker is zq-probe",
            item=self.item,
        )

    def test_it_leaves_no_word_vector_or_receipt(self):
        items.forget(self.item.pk, scope=scope(ALICE))

        left = [*MemoryItem.objects.values(), *MemoryCandidate.objects.values()]
        self.assertNotIn("probe", str(left))
        self.assertFalse(MemoryEmbedding.objects.exists() or RecallReceipt.objects.exists())

    def test_it_leaves_where_it_was_what_it_hashed_to_and_who_said_it(self):
        gone = items.forget(self.item.pk, scope=scope(ALICE))

        self.assertEqual(gone.status, ItemStatus.FORGOTTEN)
        self.assertEqual((gone.scope_id, gone.source_turn), (ALICE.chat_key, self.turn))
        self.assertEqual(gone.content_hash, content_hash("the locker is zq-probe"))

    def test_it_drops_the_same_words_and_others_of_the_same_turn(self):
        items.forget(self.item.pk, scope=scope(ALICE))

        with self.assertRaises(ForgottenError):
            remember(ALICE, "The locker is zq-probe")
        with self.assertRaises(ForgottenError):
            remember(ALICE, "keeps things in zq-probe", source_turn=self.turn)
        with self.assertRaises(ForgottenError):
            remember(GLOBAL, "lockers", kind=ItemKind.DECISION, evidence=[{"turn": self.turn.pk}])

    def test_it_drops_the_same_words_said_there_but_meant_for_all(self):
        items.forget(self.item.pk, scope=scope(ALICE))

        with self.assertRaises(ForgottenError):
            remember(GLOBAL, "the locker is zq-probe", source_session=self.turn.session)

    def test_it_learns_what_another_turn_proves_too(self):
        items.forget(self.item.pk, scope=scope(ALICE))
        later = said(ALICE, "the locker is green")

        stored = remember(
            ALICE, "has a green locker", source_turn=later, evidence=[{"turn": self.turn.pk}]
        )

        self.assertEqual(stored.outcome, Outcome.ADDED)

    def test_it_forgets_in_this_chat_only(self):
        items.forget(self.item.pk, scope=scope(ALICE))

        self.assertEqual(remember(BOB, "the locker is zq-probe").outcome, Outcome.ADDED)

    def test_it_remembers_again_what_a_person_asks_for_himself(self):
        items.forget(self.item.pk, scope=scope(ALICE))

        stored = remember(ALICE, "the locker is zq-probe", asked_again=True)

        self.assertEqual(stored.outcome, Outcome.ADDED)

    def test_it_lets_nothing_bring_it_back(self):
        gone = items.forget(self.item.pk, scope=scope(ALICE))

        for act in (items.restore, items.archive, items.release):
            with self.assertRaises(MissingError):
                act(gone.pk, scope=scope(ALICE), version=gone.version)
        with self.assertRaises(MissingError):
            items.move(gone.pk, scope=scope(ALICE), to=scope(BOB), version=gone.version)
        self.assertIsNone(items.find(gone.pk, scopes=[scope(ALICE)]))

    def test_it_forgets_all_of_one_scope_and_nothing_else(self):
        remember(GROUP, "the group's")
        remember(GLOBAL, "everybody's")
        remember(ALICE, "another of alice's")

        self.assertEqual(items.forget_all(scope=scope(ALICE)), 2)
        self.assertEqual(items.forget_all(scope=scope(ALICE_ELSEWHERE)), 0)

        self.assertEqual(contents(scope(ALICE)), [])
        self.assertEqual(contents(scope(GROUP)) + contents(GLOBAL), ["the group's", "everybody's"])

    def test_it_keeps_the_old_name_of_an_imported_item_and_no_more(self):
        imported = {"item_id": "mem_1", "title": "zq-probe", "path": "/zq-probe"}
        MemoryItem.objects.filter(pk=self.item.pk).update(imported=imported, content_hash="")

        gone = items.forget(self.item.pk, scope=scope(ALICE))

        self.assertEqual(gone.imported, {"item_id": "mem_1"})
        self.assertEqual(gone.content_hash, content_hash("the locker is zq-probe"))


class SightTests(TestCase):
    def test_it_shows_a_caller_the_memory_of_his_chats_and_what_all_share(self):
        said(ALICE, "hi")
        for where in (scope(ALICE), scope(GROUP), scope(BOB), GLOBAL):
            remember(where, f"{where}")
        chat = Chat.objects.get(chat_key=ALICE.chat_key)

        limited = MemoryItem.objects.reached_by(Principal(frozenset(), frozenset({chat.pk})))
        owner = MemoryItem.objects.reached_by(Principal(frozenset(), None))
        nobody = MemoryItem.objects.reached_by(Principal(frozenset(), frozenset()))

        shown = list(limited.order_by("pk").values_list("content", flat=True))
        self.assertEqual(shown, [ALICE.chat_key, GLOBAL_SCOPE])
        self.assertEqual((owner.count(), nobody.count()), (4, 1))


class HashTests(TestCase):
    def test_it_tells_apart_what_differs_in_more_than_looks(self):
        for one, two in (("C++", "C"), ("now here", "nowhere"), ("a+b", "a-b"), ("喝茶", "喝")):
            self.assertNotEqual(content_hash(one), content_hash(two), one)
        for one, two in (("我用 redis 存", "我用redis存"), ("Tea.", "ｔｅａ"), ("喝 茶。", "喝茶")):
            self.assertEqual(content_hash(one), content_hash(two), one)
