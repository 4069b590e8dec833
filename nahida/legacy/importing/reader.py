"""The old file, read so that nothing of it changes and nothing appears beside it. Source: legacy/LEGACY_DB.md, 1 to 3."""

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MAGIC = b"SQLite format 3\x00"
SIDECARS = ("-wal", "-journal")
COPY_TRIES = 3
CHUNK = 5_000  # rows

Row = dict[str, Any]


class OldFileError(Exception):
    """The file is not, or not wholly, a database of the old bot."""


class OldFile:
    """An open copy, or the file itself where nothing was pending. Every table and column may be missing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self.tables = {
            name: bool(sql and sql.upper().startswith("CREATE VIRTUAL"))
            for name, sql in connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
            )
        }

    def columns(self, table: str) -> set[str]:
        if table not in self.tables:
            return set()
        return {row["name"] for row in self._connection.execute(f'PRAGMA table_info("{table}")')}

    def count(self, table: str) -> int:
        if table not in self.tables:
            return 0
        [found] = self._connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()
        return int(found)

    def rows(self, table: str, wanted: Sequence[str], *, after: int | None = None) -> Iterator[Row]:
        """Yield the rows of a table in the order they were made; a column it does not have is None.

        `after` leaves out those whose `id` is not larger.
        """
        has = self.columns(table)
        if not has:
            return
        listed = ", ".join(f'"{name}"' if name in has else f'NULL AS "{name}"' for name in wanted)
        where = "" if after is None else f"WHERE id > {int(after)}"
        order = "id" if "id" in has else "rowid"
        yield from map(
            dict,
            self._connection.execute(f'SELECT {listed} FROM "{table}" {where} ORDER BY {order}'),
        )

    def span(self, table: str, *, after: int) -> tuple[int | None, int]:
        """Return the first and last `id` larger than `after`; None if there is none."""
        query = f'SELECT min(id), max(id) FROM "{table}" WHERE id > ?'
        [first, last] = self._connection.execute(query, [after]).fetchone()
        return first, last or 0

    def orphans(self, table: str, column: str, parent: str, key: str) -> list[str]:
        """Return what a column names without a row of that key."""
        if column not in self.columns(table):
            return []
        query = (
            f'SELECT DISTINCT "{column}" FROM "{table}" WHERE "{column}" != \'\' '
            f'AND "{column}" NOT IN (SELECT "{key}" FROM "{parent}") ORDER BY 1'
        )
        return [str(found) for [found] in self._connection.execute(query)]

    @property
    def version(self) -> int | None:
        """Return what it says its schema is; nothing rests on that."""
        if "version" not in self.columns("schema_version"):
            return None
        [found] = self._connection.execute("SELECT max(version) FROM schema_version").fetchone()
        return int(found) if isinstance(found, int) else None

    @property
    def mark(self) -> str:
        """Return what tells this database from another: how its first session and its first turn began."""
        [session] = self._connection.execute(
            "SELECT coalesce(min(created_at || ' ' || session_id), '') FROM sessions"
        ).fetchone()
        return str(session)[:64]


@contextmanager
def opened(path: Path, *, scratch: Path) -> Iterator[OldFile]:
    """Open an old database. `scratch` is a directory for a copy, needed where the old bot has not written all of it back.

    Raises OldFileError, also at the end if the file changed meanwhile.
    """
    _check_head(path)
    with tempfile.TemporaryDirectory(prefix="legacy-", dir=scratch) as folder:
        before = _stamp(path)
        with closing(_connect(path, Path(folder))) as connection:
            yield _checked(path, connection)
        if _stamp(path) != before:
            raise OldFileError(
                f"{path} changed while it was read: stop the old bot and import again"
            )


def _check_head(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except IsADirectoryError as error:
        raise OldFileError(f"{path} is a directory: name the file nahida.db in it") from error
    except OSError as error:
        raise OldFileError(f"{path} cannot be read: {error.strerror}") from error
    if not head.startswith(MAGIC):
        what = "is empty" if not head else "is no SQLite database, or an encrypted one"
        raise OldFileError(f"{path} {what}: name the nahida.db of the old bot")
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    expected = (65536 if page == 1 else page) * pages
    # Without the log of pending writes, which may hold the rest.
    if path.stat().st_size < expected and not _sidecars(path):
        raise OldFileError(f"{path} is cut off: {path.stat().st_size} of {expected} bytes")


def _sidecars(path: Path) -> list[Path]:
    beside = (path.with_name(path.name + ending) for ending in SIDECARS)
    return [sidecar for sidecar in beside if sidecar.exists() and sidecar.stat().st_size]


def _stamp(path: Path) -> list[tuple[str, int, int]]:
    stats = [(each.name, each.stat()) for each in (path, *_sidecars(path))]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def _connect(path: Path, folder: Path) -> sqlite3.Connection:
    if not _sidecars(path):
        # Immutable: SQLite neither locks it nor writes beside it, not even for a file in WAL mode.
        return sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)
    for _ in range(COPY_TRIES):
        before = _stamp(path)
        for file in (path, *_sidecars(path)):
            shutil.copyfile(file, folder / file.name)
        if _stamp(path) == before:
            return sqlite3.connect(folder / path.name)
    raise OldFileError(f"{path} is being written to: stop the old bot and import again")


def _checked(path: Path, connection: sqlite3.Connection) -> OldFile:
    try:
        file = OldFile(connection)
        [health] = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        if "no such module" not in str(error):  # a vector index, which is not read
            raise OldFileError(f"{path} cannot be read as a database: {error}") from error
        health = "ok"
    if health != "ok":
        raise OldFileError(f"{path} is damaged: {health}")
    needed = {
        "sessions": {"session_id", "created_at", "last_active_at"},
        "memory_turns": {"id", "session_id", "role", "content"},
    }
    for table, columns in needed.items():
        if not columns <= file.columns(table):
            raise OldFileError(
                f"{path} is not of the old bot: it has no table {table} with {', '.join(sorted(columns))}"
            )
    return file


def json_object(raw: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an old JSON column as an object, and how it is kept: as it was, even where it is no object."""
    try:
        found = json.loads(raw) if isinstance(raw, str) else None
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found, {"metadata": found}
    return {}, {} if raw is None else {"raw_metadata": str(raw)}


def instant(raw: Any) -> datetime | None:
    """Read a time of the old database; without a zone it is UTC. None if it is none."""
    try:
        found = datetime.fromisoformat(str(raw).strip())
    except ValueError:
        return None
    try:
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None
