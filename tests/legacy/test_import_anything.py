"""Old databases in which anything may stand: all of it comes in or is skipped with a reason, and once."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from nahida.legacy.inspect import inspect
from tests.legacy.builder import NEWEST, OldDatabase
from tests.legacy.folder import bring, digests, stored

READ = {
    "sessions": "sessions",
    "memory_turns": "turns",
    "active_sessions": "active sessions",
    "cron_jobs": "jobs",
    "background_tasks": "background tasks",
    "memory_items": "memory items",
    "memory_candidates": "candidates",
    "memory_embeddings": "embeddings",
    "session_key_migration_log": "key log",
}
LONG = "milky:" + "长" * 400
KEYS = ["milky:1", "milky:1:abcd1234", "milky:group:1", "", "one", "a\x00b", LONG, "x" * 70 + ":1"]
JSON = [
    "{",
    "null",
    '"text"',
    "[1, [2]]",
    '{"message_context": {"channel": "milky", "chat_type": "group", "chat_id": "1", "sender_id": "9"}}',
    '{"message_context": {"channel": "a\\u0000b", "chat_type": "group", "chat_id": "\\ud800"}}',
    '{"message_context": {"timestamp": 1e400, "chat_type": ["group"], "chat_id": {}}}',
    '{"timestamp": NaN, "memory_dream_last_turn_id": 1e999, "forked_turn_id": true}',
    '{"attachments": [{"file_size": 99999999999999999999, "kind": 5}, {"kind": "\\u0000"}]}',
    '{"memory_dream_last_turn_id": 99999999999999999999999, "session_id": ["milky:1"]}',
    '{"session_id": "milky:1", "legacy_untyped": "yes"}',
    "[" * 100_000,
    '{"a": ' * 500 + "1" + "}" * 500,
    "9" * 5_000,
    "[1.0, 0.0]",
    "[1e308, 1e308]",
    "[[1], [2, 3]]",
]
TIMES = [
    "2026-05-12T09:00:00+00:00",
    "2026-05-12 09:00:00",
    "2026-05-12T09:00:00.5Z",
    "0001-01-01T00:00:00+14:00",
    "yesterday",
    "",
]
ODD: list[Any] = [b"\xff\xfe", "a\x00b", "", "x" * 1_200, -1, 0, 3, 2**40, 2**63 - 1, 1.5, 1e308]

QUICK = [Phase.reuse, Phase.generate]  # to look for a smaller example takes minutes

texts = st.sampled_from([*KEYS, *TIMES, *ODD, "user", "assistant", "active", "once", "global"])


def values(name: str, kind: str) -> st.SearchStrategy[Any]:
    """Return what may stand in a column: mostly what belongs there."""
    if name in ("session_id", "session_key", "chat_key") or name.endswith("session_id"):
        return st.one_of(st.sampled_from(KEYS), st.sampled_from(KEYS), texts)
    if name.endswith("_json"):
        return st.one_of(st.sampled_from(JSON), st.none())
    if name.endswith("_at"):
        return st.one_of(st.sampled_from(TIMES), texts)
    if name == "mode":
        return st.sampled_from(["once", "interval", "cron", "x"])
    return st.sampled_from([0, 1, 7, 2**40, -1]) if kind == "INTEGER" else texts


@st.composite
def rows(draw: Any, columns: list[tuple[str, str, bool, bool]]) -> dict[str, Any]:
    row = {}
    for name, kind, is_needed, is_id in columns:
        if is_id and kind == "INTEGER":
            row[name] = draw(st.integers(-2, 60))
        elif is_needed or draw(st.booleans()):
            value = draw(values(name, kind))
            row[name] = "" if is_needed and value is None else value
    return row


class AnythingTest(TestCase):
    @settings(max_examples=50, phases=QUICK)
    @given(st.integers(1, NEWEST), st.data())
    def test_it_bears_anything(self, version: int, data: Any):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "old.db")
            with OldDatabase(path, version=version) as old:
                self.fill(old, data)
                read = {kind: self.count(old, table) for table, kind in READ.items()}
            before = digests(path.parent)

            tally = bring(path)

            assert {kind: tally["kinds"][kind]["read"] for kind in read} == read
            assert digests(path.parent) == before
            after = stored()
            again = bring(path)
            assert stored() == after
            assert {kind["imported"] for kind in again["kinds"].values()} == {0}
            for kind, count in again["kinds"].items():
                assert count["skipped"] == tally["kinds"][kind]["skipped"], kind
            inspect(who="alice")

    def fill(self, old: OldDatabase, data: Any) -> None:
        for table in READ:
            told = old.connection.execute(f"PRAGMA table_info({table})").fetchall()
            columns = [(name, kind, bool(need), bool(pk)) for _, name, kind, need, _, pk in told]
            if columns:
                for row in data.draw(st.lists(rows(columns), max_size=4), label=table):
                    self.put(old, table, row)

    def put(self, old: OldDatabase, table: str, row: dict[str, Any]) -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        old.connection.execute(
            f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})"
            if row
            else f"INSERT OR IGNORE INTO {table} DEFAULT VALUES",
            list(row.values()),
        )

    def count(self, old: OldDatabase, table: str) -> int:
        if not old.connection.execute(f"PRAGMA table_info({table})").fetchall():
            return 0
        [found] = old.connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(found)
