"""One contract of search for both databases: the scope first, then the rank (DESIGN 6)."""

from django.db import connection
from django.test import TestCase

from channels_app.addresses import ChatAddress
from memory_app import items
from memory_app.embedding import query_vector
from memory_app.index import ITEMS
from memory_app.models import ItemKind, MemoryEmbedding, MemoryItem, MemoryTurn, TurnKind
from memory_app.scopes import CHAT_SCOPE, GLOBAL, Scope, ScopeError
from memory_app.search import (
    Mode,
    SearchError,
    search,
    search_everywhere,
    search_turns,
    search_turns_everywhere,
)
from memory_app.turns import MESSAGE_SOURCE, SYSTEM_SOURCE, NewTurn, append_turn
from sessions_app.models import Session
from tests.fakes.embedder import FakeEmbedder
from tests.memory_app.cast import (
    ALICE,
    ALICE_ELSEWHERE,
    BOB,
    GROUP,
    TOPIC,
    remember,
    scope,
    session,
)
from tests.memory_app.stage import give_vectors

EMBEDDER = FakeEmbedder().as_embedder()


def found(
    where: ChatAddress | Scope, query: str, mode: Mode = Mode.KEYWORD, limit: int = 5
) -> list[str]:
    place = where if isinstance(where, Scope) else scope(where)
    vector = query_vector(query, embedder=EMBEDDER)
    hits = search(query, scope=place, limit=limit, mode=mode, vector=vector)
    return [hit.item.content for hit in hits]


class ScopeTests(TestCase):
    def test_it_finds_this_chats_item_however_many_others_hold_the_same(self):
        """The scope is part of the query, not a filter behind its best five."""
        for chat in range(50):
            for number in range(10):
                remember(ChatAddress("fake", "private", f"9{chat}"), f"rainy days {'!' * number}?")
        remember(ALICE, "likes rainy days")
        give_vectors(EMBEDDER)

        for mode in Mode:
            self.assertEqual(found(ALICE, "rainy days", mode), ["likes rainy days"], mode)

    def test_it_shows_nothing_that_moved_away_while_it_searched(self):
        item = remember(ALICE, "likes tea").item
        statements = 0

        def move(execute, sql, params, many, context):
            nonlocal statements
            statements += 1
            if statements == 2:  # it is found, and not read yet
                items.move(item.pk, scope=scope(ALICE), to=scope(BOB), version=1)
            return execute(sql, params, many, context)

        with connection.execute_wrapper(move):
            hits = search("tea", scope=scope(ALICE), limit=1, mode=Mode.KEYWORD, vector=None)

        self.assertEqual(hits, [])
        self.assertGreater(statements, 2)

    def test_it_finds_nothing_of_anybody_else(self):
        """Alice, the group of her number, its topic, her number on another account, bob, and the shared memory."""
        remember(ALICE, "canary zq-probe")
        give_vectors(EMBEDDER)

        for mode in Mode:
            self.assertEqual(found(ALICE, "zq-probe", mode), ["canary zq-probe"])
            for stranger in (GROUP, TOPIC, ALICE_ELSEWHERE, BOB, GLOBAL):
                self.assertEqual(found(stranger, "zq-probe", mode), [], (stranger, mode))

    def test_it_refuses_a_scope_that_is_none(self):
        for scope_type, scope_id in (("", ""), (CHAT_SCOPE, ""), ("all", "x")):
            with self.assertRaises(ScopeError):
                found(Scope(scope_type, scope_id), "tea")

    def test_it_keeps_the_order_of_a_chat_whatever_others_store(self):
        """How rare a word is counts inside the scope: otherwise an order would tell what others talk about."""
        remember(ALICE, "the heron by the lake")
        remember(ALICE, "the otter by the lake")
        before = found(ALICE, "heron otter")
        for number in range(30):
            remember(BOB, f"otter {number}")

        self.assertEqual(found(ALICE, "heron otter"), before)


class StateTests(TestCase):
    def test_it_never_finds_what_is_not_to_be_recalled(self):
        item = {name: remember(ALICE, f"canary {name}").item for name in ("a", "b", "c", "d")}
        remember(ALICE, "canary held", held=True)
        give_vectors(EMBEDDER)
        new = items.NewItem(kind=ItemKind.FACT, content="bird b")
        items.archive(item["a"].pk, scope=scope(ALICE), version=1)
        items.supersede(item["b"].pk, new, scope=scope(ALICE), version=1)
        items.forget(item["c"].pk, scope=scope(ALICE))

        for mode in Mode:
            self.assertIn("canary d", found(ALICE, "canary", mode))
            gone = {"canary a", "canary b", "canary c", "canary held"}
            self.assertFalse(gone & set(found(ALICE, "canary", mode)), mode)

    def test_it_finds_what_was_stored_a_moment_ago(self):
        """By keyword at once, though its vector comes later."""
        remember(ALICE, "likes tea")
        give_vectors(EMBEDDER)

        remember(ALICE, "likes zq-probe")

        self.assertEqual(found(ALICE, "zq-probe"), ["likes zq-probe"])
        self.assertEqual(found(ALICE, "zq-probe", Mode.HYBRID)[0], "likes zq-probe")

    def test_it_follows_an_item_that_is_edited_restored_or_moved(self):
        item = remember(ALICE, "likes tea").item
        edited = items.edit(
            item.pk, scope=scope(ALICE), version=1, content="likes mate", title="", importance=0.5
        )
        as_edited = found(ALICE, "tea"), found(ALICE, "mate")
        archived = items.archive(item.pk, scope=scope(ALICE), version=edited.item.version)
        restored = items.restore(item.pk, scope=scope(ALICE), version=archived.version)
        as_restored = found(ALICE, "mate")

        items.move(item.pk, scope=scope(ALICE), to=scope(BOB), version=restored.version)

        self.assertEqual((as_edited, as_restored), (([], ["likes mate"]), ["likes mate"]))
        self.assertEqual((found(ALICE, "mate"), found(BOB, "mate")), ([], ["likes mate"]))

    def test_it_leaves_no_trace_of_what_is_forgotten(self):
        """No hit, no index entry, no vector; somebody who counts rows finds none either."""
        item = remember(ALICE, "zq-probe").item
        give_vectors(EMBEDDER)
        items.forget(item.pk, scope=scope(ALICE))

        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute(
                    f"SELECT count(*) FROM {ITEMS.name} WHERE {ITEMS.name} MATCH 'wzq OR owner : s*'"
                )
            else:
                cursor.execute(f"SELECT count(*) FROM {ITEMS.table} WHERE search_vector <> ''")
            entries = cursor.fetchone()[0]

        self.assertEqual([found(ALICE, "zq-probe", mode) for mode in Mode], [[], [], []])
        self.assertEqual((entries, MemoryEmbedding.objects.count()), (0, 0))

    def test_it_leaves_no_word_in_the_file_of_the_index(self):
        """FTS5 marks a word as deleted and keeps it until its segments are merged; PostgreSQL's vacuum needs no help."""
        if connection.vendor != "sqlite":
            return
        item = remember(ALICE, "zq-probe").item

        before = self.index_file()
        items.forget(item.pk, scope=scope(ALICE))

        self.assertIn(b"probe", before)
        self.assertNotIn(b"probe", self.index_file())

    def index_file(self) -> bytes:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT block FROM {ITEMS.name}_data")
            return b"".join(block for (block,) in cursor.fetchall())


class RankTests(TestCase):
    def test_it_puts_the_whole_query_before_some_of_it(self):
        remember(ALICE, "moved the redis cluster to another room in spring, with much noise")
        remember(ALICE, "redis alone")

        self.assertTrue(found(ALICE, "redis cluster")[0].startswith("moved"))
        self.assertEqual(found(ALICE, "redis cluster")[1:], ["redis alone"])

    def test_it_puts_the_newest_first_among_equals(self):
        for number in range(4):
            remember(ALICE, f"likes tea {number}")

        newest_first = [f"likes tea {number}" for number in (3, 2, 1, 0)]
        self.assertEqual(found(ALICE, "tea"), newest_first)
        self.assertEqual(found(ALICE, "tea", limit=2), newest_first[:2])

    def test_it_takes_the_words_that_say_something(self):
        """`what`, `is` and `the` stand in every sentence; they must not bring every sentence along."""
        remember(ALICE, "what the weather is like in May")
        remember(ALICE, "the pump is broken")

        self.assertEqual(found(ALICE, "what is the state of the pump"), ["the pump is broken"])

    def test_it_leaves_out_what_holds_next_to_nothing_of_the_query(self):
        remember(ALICE, "the heron, the otter, the vole and the newt live by the lake")
        remember(ALICE, "newt soup")

        shown = found(ALICE, "heron otter vole lake newt toad")

        self.assertEqual([content[:9] for content in shown], ["the heron"])

    def test_it_gives_no_more_than_asked_for(self):
        for number in range(8):
            remember(ALICE, f"tea {number}")
        give_vectors(EMBEDDER)

        for mode in Mode:
            self.assertEqual(len(found(ALICE, "tea", mode, limit=3)), 3)
            self.assertEqual(found(ALICE, "tea", mode, limit=0), [])

    def test_it_reads_a_query_of_any_length(self):
        remember(ALICE, "likes tea")

        for query in (
            "a " * 10_000,
            "茶" * 10_000,
            "x" * 10_000,
            "tea " + "\0" * 10_000,
            "🫖" * 5_000,
        ):
            found(ALICE, query)

        self.assertEqual(found(ALICE, "tea " + "and so on " * 2_000), ["likes tea"])

    def test_it_wants_a_vector_for_a_search_by_vector(self):
        with self.assertRaises(SearchError):
            search("tea", scope=scope(ALICE), limit=1, mode=Mode.VECTOR, vector=None)

    def test_it_searches_by_keyword_where_there_is_no_vector(self):
        remember(ALICE, "likes tea")

        [hit] = search("tea", scope=scope(ALICE), limit=1, mode=Mode.HYBRID, vector=None)

        self.assertEqual(hit.mode, Mode.KEYWORD)

    def test_it_finds_by_vector_only_what_is_near_enough(self):
        remember(ALICE, "likes tea")
        remember(ALICE, "owns a boat")
        give_vectors(EMBEDDER)
        strict = FakeEmbedder().as_embedder(floor=0.5)

        vector = query_vector("likes tea", embedder=strict)
        hits = search("likes tea", scope=scope(ALICE), limit=5, mode=Mode.VECTOR, vector=vector)

        self.assertEqual([hit.item.content for hit in hits], ["likes tea"])


class TranscriptTests(TestCase):
    def say(self, where: ChatAddress, content: str, **details: object) -> MemoryTurn:
        new = {"kind": TurnKind.IMPORTED, "content": content, **details}
        return append_turn(where, NewTurn(**new))  # type: ignore[arg-type]

    def lines(self, where: ChatAddress, query: str) -> list[str]:
        return [hit.turn.content for hit in search_turns(query, session=session(where), limit=5)]

    def test_it_searches_the_chats_own_lines_only(self):
        self.say(ALICE, "canary zq-probe")

        self.assertEqual(self.lines(ALICE, "zq-probe"), ["canary zq-probe"])
        for stranger in (GROUP, TOPIC, ALICE_ELSEWHERE, BOB):
            self.say(stranger, "hello")
            self.assertEqual(self.lines(stranger, "zq-probe"), [], stranger)

    def test_it_searches_every_session_and_topic_of_the_chat(self):
        self.say(GROUP, "canary one")
        self.say(TOPIC, "canary two")

        self.assertEqual(self.lines(GROUP, "canary"), ["canary two", "canary one"])

    def test_it_leaves_out_commands_prompts_and_what_the_system_says(self):
        """Else a search would find itself, and the list that answered it."""
        self.say(ALICE, "/memory search canary", kind=TurnKind.COMMAND)
        self.say(ALICE, "canary job", kind=TurnKind.JOB)
        self.say(ALICE, "I found canary", kind=TurnKind.NOTICE, source=SYSTEM_SOURCE)
        self.say(ALICE, "canary sent", kind=TurnKind.NOTICE, source=MESSAGE_SOURCE)

        self.assertEqual(self.lines(ALICE, "canary"), ["canary sent"])

    def test_it_searches_an_untyped_session_alone(self):
        turn = self.say(ALICE, "canary of the old session")
        old = Session.objects.create(key="fake:10001", chat=None, imported_at=turn.created_at)
        MemoryTurn.objects.filter(pk=turn.pk).update(session=old)

        hits = search_turns("canary", session=old, limit=5)

        self.assertEqual([hit.turn.pk for hit in hits], [turn.pk])
        self.assertEqual(self.lines(ALICE, "canary"), [])


class OwnersTests(TestCase):
    def test_it_finds_everybodys_and_says_who_asked_but_not_what(self):
        mine = remember(ALICE, "canary zq-probe").item
        held = remember(GLOBAL, "canary zq-probe, shared", held=True).item

        with self.assertLogs("memory_app.search", "INFO") as log:
            hits = search_everywhere(
                "zq-probe", within=MemoryItem.objects.all(), asked_by="root", limit=5
            )

        self.assertEqual({hit.item.pk for hit in hits}, {mine.pk, held.pk})
        self.assertIn("root", log.output[0])
        self.assertNotIn("probe", str(log.output))

    def test_it_filters_before_it_ranks(self):
        """A hundred and more better matches elsewhere do not hide the one that was asked for."""
        for number in range(120):
            remember(BOB, f"tea {number}")
        wanted = remember(ALICE, "somebody who likes tea, and talks about it a great deal").item

        within = MemoryItem.objects.in_scope(scope(ALICE))
        [hit] = search_everywhere("tea", within=within, asked_by="root", limit=5)
        nothing = search_everywhere(
            "tea", within=MemoryItem.objects.none(), asked_by="root", limit=5
        )

        self.assertEqual((hit.item, nothing), (wanted, []))

    def test_it_finds_every_line_that_was_said(self):
        turn = append_turn(ALICE, NewTurn(kind=TurnKind.IMPORTED, content="canary zq-probe"))

        [hit] = search_turns_everywhere(
            "zq-probe", within=MemoryTurn.objects.all(), asked_by="root", limit=5
        )

        self.assertEqual(hit.turn, turn)
