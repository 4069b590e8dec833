"""The full-text index of turns and items, kept by the database itself.

SQLite: FTS5 tables that follow by triggers. PostgreSQL: a generated tsvector column with a GIN index. Neither is a model, and Django's
table remake drops triggers on SQLite without a word, so everything here is idempotent and runs after every migrate (STACK 1).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.core import checks
from django.db import connection, connections
from django.db.backends.utils import CursorWrapper
from django.db.utils import OperationalError, ProgrammingError


class Indexed(NamedTuple):
    """A table whose `search_tokens` are indexed.

    `owner` is the SQL of the token that a search is limited to; rows that are not `shown` to their owner's searches have another.
    """

    table: str
    owner: str
    shown: str
    watched: str

    @property
    def name(self) -> str:
        return f"{self.table}_fts"

    def owner_of(self, row: str) -> str:
        shown, owner = self.shown.format(row=row), self.owner.format(row=row)
        return f"CASE WHEN {shown} THEN '' ELSE 'x' END || {owner}"


ITEMS = Indexed(
    "memory_app_memoryitem",
    # One word whatever the scope holds, and two scopes never share it.
    "'s' || lower(hex({row}.scope_type || char(31) || {row}.scope_id))",
    "{row}.status = 'active' AND NOT {row}.held",
    "scope_type, scope_id, status, held, search_tokens",
)
TURNS = Indexed(
    "memory_app_memoryturn",
    "'n' || {row}.session_id",
    # What was said and answered: no commands, no prompts of jobs, nothing of the system's.
    "({row}.kind IN ('message', 'imported', 'edit') OR ({row}.kind = 'notice' AND {row}.source = 'message'))",
    "session_id, kind, source, search_tokens",
)


def scope_word(scope_type: str, scope_id: str) -> str:
    """Return the index word of a scope, as the trigger writes it."""
    return "s" + f"{scope_type}\x1f{scope_id}".encode().hex()


def session_word(session_id: int) -> str:
    return f"n{session_id}"


def drop_traces(indexed: Indexed) -> None:
    """Take the words of deleted rows out of the index for good: half a second for 100,000 items.

    FTS5 only marks them as deleted until it merges its segments; PostgreSQL's next vacuum does the same there.
    """
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {indexed.name} ({indexed.name}) VALUES ('optimize')")


def create_indexes(*, using: str = "default", **_: Any) -> None:
    """Create what is missing of the index and fill it; nothing happens where all is there."""
    database = connections[using]
    create = {"sqlite": _create_sqlite, "postgresql": _create_postgresql}[database.vendor]
    with database.cursor() as cursor:
        for indexed in (ITEMS, TURNS):
            create(cursor, indexed)


def _sqlite_triggers(indexed: Indexed) -> dict[str, str]:
    table, index = indexed.table, indexed.name

    def write(row: str, *, remove: bool) -> str:
        command, value = (f"{index}, ", "'delete', ") if remove else ("", "")
        owner = indexed.owner_of(row)
        return (
            f"INSERT INTO {index} ({command}rowid, owner, tokens) "
            f"SELECT {value}{row}.id, {owner}, {row}.search_tokens WHERE {row}.search_tokens <> '';"
        )

    add, remove = write("new", remove=False), write("old", remove=True)
    return {
        f"{index}_insert": f"AFTER INSERT ON {table} BEGIN {add} END",
        f"{index}_delete": f"AFTER DELETE ON {table} BEGIN {remove} END",
        f"{index}_update": f"AFTER UPDATE OF {indexed.watched} ON {table} BEGIN {remove} {add} END",
    }


def _create_sqlite(cursor: CursorWrapper, indexed: Indexed) -> None:
    if _is_whole_on_sqlite(cursor, indexed):
        return
    # Without all three triggers the index may have missed writes: build it anew.
    cursor.execute(f"DROP TABLE IF EXISTS {indexed.name}")
    cursor.execute(
        f"CREATE VIRTUAL TABLE {indexed.name} USING fts5"
        "(owner, tokens, content='', tokenize='unicode61 remove_diacritics 0')"
    )
    owner = indexed.owner_of(indexed.table)
    cursor.execute(
        f"INSERT INTO {indexed.name} (rowid, owner, tokens) "
        f"SELECT id, {owner}, search_tokens FROM {indexed.table} WHERE search_tokens <> ''"
    )
    for name, body in _sqlite_triggers(indexed).items():
        cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
        cursor.execute(f"CREATE TRIGGER {name} {body}")


def _create_postgresql(cursor: CursorWrapper, indexed: Indexed) -> None:
    if _is_whole_on_postgresql(cursor, indexed):
        return  # even an ALTER that finds nothing to do locks the table
    cursor.execute(
        f"ALTER TABLE {indexed.table} ADD COLUMN IF NOT EXISTS search_vector tsvector "
        "GENERATED ALWAYS AS (to_tsvector('simple', search_tokens)) STORED"
    )
    cursor.execute(
        # A list of pending entries is read through by every search: writing them at once is the better bargain.
        f"CREATE INDEX IF NOT EXISTS {indexed.name} ON {indexed.table} USING gin (search_vector) "
        "WITH (fastupdate = off)"
    )


def _is_whole_on_postgresql(cursor: CursorWrapper, indexed: Indexed) -> bool:
    # The index goes with its column.
    cursor.execute("SELECT to_regclass(%s)", [indexed.name])
    return cursor.fetchone()[0] is not None


def _is_whole_on_sqlite(cursor: CursorWrapper, indexed: Indexed) -> bool:
    cursor.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [indexed.table]
    )
    there = {sql for (sql,) in cursor.fetchall()}
    return there >= {
        f"CREATE TRIGGER {name} {body}" for name, body in _sqlite_triggers(indexed).items()
    }


@checks.register(checks.Tags.database)
def index_present(*, databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """Report a database whose index does not follow its rows."""
    return [
        checks.Error(
            f"the full-text index of {indexed.table} does not follow its rows",
            hint="run manage.py migrate, which builds it anew",
            id="memory_app.E001",
        )
        for using in databases or ()
        for indexed in (ITEMS, TURNS)
        if _is_broken(using, indexed)
    ]


def _is_broken(using: str, indexed: Indexed) -> bool:
    database = connections[using]
    try:
        with database.cursor() as cursor:
            if indexed.table not in database.introspection.table_names(cursor):
                return False  # not migrated yet
            is_whole = {"sqlite": _is_whole_on_sqlite, "postgresql": _is_whole_on_postgresql}
            return not is_whole[database.vendor](cursor, indexed)
    except (OperationalError, ProgrammingError):
        return False  # unreachable: not this check's finding
