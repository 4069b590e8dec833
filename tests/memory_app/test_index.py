"""The full-text index follows its rows, on both databases and over every migrate (DESIGN 6)."""

from django.core.checks import run_checks
from django.db import connection
from django.test import TestCase

from channels_app.addresses import ChatAddress
from memory_app.index import ITEMS, TURNS, create_indexes, index_present, scope_word, session_word
from memory_app.models import MemoryItem, MemoryTurn, TurnKind
from memory_app.tokens import fts5_query, index_text, query_runs, tsquery
from memory_app.turns import NewTurn, append_turn
from sessions_app.models import Session

ALICE = ChatAddress("fake", "private", "10001")
SQLITE = connection.vendor == "sqlite"


def found(table: str, owner: str, query: str, where: str) -> list[int]:
    """Ask the index itself, limited to one owner inside the query."""
    with connection.cursor() as cursor:
        if SQLITE:
            match = f'owner : "{owner}" AND tokens : ({fts5_query(query_runs(query))})'
            cursor.execute(f"SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH %s", [match])
        else:
            cursor.execute(
                f"SELECT id FROM {table} WHERE {where} "
                "AND search_vector @@ to_tsquery('simple', %s) ORDER BY id",
                [tsquery(query_runs(query))],
            )
        return [pk for (pk,) in cursor.fetchall()]


def items(scope_id: str, query: str) -> list[int]:
    where = f"scope_type = 'chat' AND scope_id = '{scope_id}'"
    return found(ITEMS.table, scope_word("chat", scope_id), query, where)


def turns(session: Session, query: str) -> list[int]:
    return found(TURNS.table, session_word(session.pk), query, f"session_id = {session.pk}")


def item(scope_id: str, content: str) -> MemoryItem:
    return MemoryItem.objects.create(
        scope_type="chat",
        scope_id=scope_id,
        kind="fact",
        content=content,
        search_tokens=index_text(content),
    )


class IndexTests(TestCase):
    def test_it_finds_an_item_in_its_own_scope_only(self):
        """B041 and B043: two characters, one character, and Latin stuck to Chinese."""
        mine = item(str(ALICE), "昨晚跟室友把redis缓存改到v2集群")
        item("fake:private:20002", "昨晚跟室友把redis缓存改到v2集群")

        for query in ("室友", "友", "redis", "v2", "redis 集群"):
            self.assertEqual(items(str(ALICE), query), [mine.pk], query)
        self.assertEqual(items("fake:private:1000", "室友"), [])

    def test_it_follows_an_item_that_moves_changes_or_goes(self):
        row = item("fake:private:1", "likes oolong tea")

        MemoryItem.objects.filter(pk=row.pk).update(scope_id="fake:private:2")
        moved = items("fake:private:1", "oolong"), items("fake:private:2", "oolong")
        MemoryItem.objects.filter(pk=row.pk).update(search_tokens=index_text("likes coffee"))
        changed = items("fake:private:2", "oolong"), items("fake:private:2", "coffee")
        MemoryItem.objects.all().delete()

        self.assertEqual((moved, changed), (([], [row.pk]), ([], [row.pk])))
        self.assertEqual(items("fake:private:2", "coffee"), [])

    def test_it_finds_a_turn_in_its_own_session_only(self):
        turn = append_turn(ALICE, NewTurn(kind=TurnKind.IMPORTED, content="きのう花火を見た"))
        other = Session.objects.create(
            chat=turn.session.chat, key=f"{ALICE}:0000abcd", suffix="0000abcd"
        )

        before = turns(turn.session, "花火"), turns(other, "花火")
        MemoryTurn.objects.filter(pk=turn.pk).update(session=other)
        after = turns(turn.session, "花火"), turns(other, "花火")

        self.assertEqual((before, after), (([turn.pk], []), ([], [turn.pk])))

    def test_it_lets_a_scopes_word_lead_only_to_what_may_be_recalled(self):
        row = item(str(ALICE), "likes oolong tea")

        for change in ({"held": True}, {"held": False, "status": "archived"}):
            MemoryItem.objects.filter(pk=row.pk).update(**change)
            gone = items(str(ALICE), "oolong")
            self.assertEqual(gone, [] if SQLITE else [row.pk], change)
        MemoryItem.objects.filter(pk=row.pk).update(status="active")

        self.assertEqual(items(str(ALICE), "oolong"), [row.pk])

    def test_it_takes_scopes_with_any_character(self):
        """B048: hyphens, quotes, percent signs and other scripts are bound, never spliced."""
        for scope_id in ("telegram:group:-1009", "wx:private:o9c-q@im.chat", "x:private:名"):
            row = item(scope_id, "tea")
            self.assertEqual(items(scope_id, "tea"), [row.pk], scope_id)

    def test_it_tells_scopes_apart_that_share_a_beginning(self):
        self.assertNotEqual(scope_word("chat", "a:b"), scope_word("chat:a", "b"))
        self.assertNotEqual(scope_word("chat", "x"), scope_word("chat", "xy"))


class UpkeepTests(TestCase):
    def test_it_changes_nothing_where_everything_is_there(self):
        row = item(str(ALICE), "tea")

        create_indexes()

        self.assertEqual(items(str(ALICE), "tea"), [row.pk])
        self.assertEqual(index_present(databases=["default"]), [])

    def test_it_is_built_anew_where_it_stopped_following(self):
        """As a table remake leaves it on SQLite: no triggers, no word about it, and rows that were missed."""
        before = item(str(ALICE), "green tea")
        connection.check_constraints()
        with connection.cursor() as cursor:
            cursor.execute(
                f"DROP TRIGGER {ITEMS.name}_insert"
                if SQLITE
                else f"ALTER TABLE {ITEMS.table} DROP COLUMN search_vector"
            )
        missed = item(str(ALICE), "black tea")
        connection.check_constraints()
        report = [check.id for check in run_checks(databases=["default"], tags=["database"])]

        create_indexes()

        self.assertEqual(report, ["memory_app.E001"])
        self.assertEqual(items(str(ALICE), "tea"), [before.pk, missed.pk])
        self.assertEqual(index_present(databases=["default"]), [])

    def test_it_is_built_anew_where_its_triggers_are_of_another_version(self):
        if not SQLITE:
            return
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TRIGGER {ITEMS.name}_insert")
            cursor.execute(
                f"CREATE TRIGGER {ITEMS.name}_insert AFTER INSERT ON {ITEMS.table} BEGIN SELECT 1; END"
            )
        missed = item(str(ALICE), "black tea")

        create_indexes()

        self.assertEqual(items(str(ALICE), "tea"), [missed.pk])
