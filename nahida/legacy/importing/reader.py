"""The old file, read so that nothing of it changes and nothing appears beside it. Source: legacy/LEGACY_DB.md, 1 to 3."""

import json
import math
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from channels_app.messages import storable

MAGIC = b"SQLite format 3\x00"
SIDECARS = ("-wal", "-journal")
COPY_TRIES = 3
DEEPEST_JSON = 100  # levels; what nests deeper would stop whoever reads it later

NEEDED = {
    "sessions": {"session_id", "created_at", "last_active_at"},
    "memory_turns": {"id", "session_id", "role", "content"},
}

Row = dict[str, Any]


class OldFileError(Exception):
    """The file is not, or not wholly, a database of the old bot."""


class OldFile:
    """An open copy, or the file itself where nothing was pending. Every table and column may be missing.

    Text that is no UTF-8, and bytes where text should be, are read as text; what is wrong in them shows as `\\xff`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.row_factory = sqlite3.Row
        connection.text_factory = _decoded
        self.tables = {
            name: bool(sql and sql.upper().startswith("CREATE VIRTUAL"))
            for name, sql in connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
            )
        }

    def columns(self, table: str) -> set[str]:
        if table not in self.tables:
            return set()
        query = f"PRAGMA table_info({_quoted(table)})"
        return {row["name"] for row in self._connection.execute(query)}

    def count(self, table: str, *, up_to: int | None = None) -> int:
        """Return how many rows it has, or those of them whose `id` is not larger."""
        if table not in self.tables:
            return 0
        where = "" if up_to is None else f"WHERE id <= {up_to}"
        query = f"SELECT count(*) FROM {_quoted(table)} {where}"
        [found] = self._connection.execute(query).fetchone()
        return int(found)

    def rows(
        self,
        table: str,
        wanted: Sequence[str],
        *,
        after: int | None = None,
        by: str | None = None,
    ) -> Iterator[Row]:
        """Yield the rows of a table in the order they were made, or by a column; a column it does not have is None.

        `after` leaves out those whose `id` is not larger.
        """
        has = self.columns(table)
        if not has:
            return
        listed = ", ".join(f'"{name}"' if name in has else f'NULL AS "{name}"' for name in wanted)
        where = "" if after is None else f"WHERE id > {int(after)}"
        made = "id" if "id" in has else "rowid"
        order = f'"{by}", {made}' if by else made
        query = f'SELECT {listed} FROM "{table}" {where} ORDER BY {order}'
        for row in self._connection.execute(query):
            yield {name: _text_of_bytes(row[name]) for name in wanted}

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
            f'SELECT DISTINCT "{column}" FROM "{table}" WHERE "{column}" != \'\' AND NOT EXISTS '
            f'(SELECT 1 FROM "{parent}" AS p WHERE p."{key}" = "{table}"."{column}") ORDER BY 1'
        )
        return [str(_text_of_bytes(found)) for [found] in self._connection.execute(query)]

    def damage(self) -> str:
        """Return what is wrong with the pages of the tables that are read, "" if nothing.

        Indexes and virtual tables are left alone: the one are not read, and the other ask for modules that are not here.
        """
        for table, is_virtual in self.tables.items():
            if not is_virtual:
                query = f"PRAGMA quick_check({_quoted(table)})"
                [found] = self._connection.execute(query).fetchone()
                if found != "ok":
                    return f"{table}: {found.splitlines()[-1]}"
        return ""

    @property
    def version(self) -> int | None:
        """Return what it says its schema is; nothing rests on that."""
        if "version" not in self.columns("schema_version"):
            return None
        [found] = self._connection.execute("SELECT max(version) FROM schema_version").fetchone()
        return int(found) if isinstance(found, int) else None

    @property
    def mark(self) -> str:
        """Return what tells this database from another: its first session; "" while it has none."""
        [session] = self._connection.execute(
            "SELECT coalesce(min(created_at || ' ' || session_id), '') FROM sessions"
        ).fetchone()
        return storable(str(session))[:64]


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _text_of_bytes(value: Any) -> Any:
    return _decoded(value) if isinstance(value, bytes) else value


def _quoted(table: str) -> str:
    return '"{}"'.format(table.replace('"', '""'))


@contextmanager
def opened(path: Path, *, scratch: Path) -> Iterator[OldFile]:
    """Open an old database. `scratch` is a directory for a copy, needed where the old bot has not written all of it back.

    Raises OldFileError, also while it is read, and at the end if the file itself was read and changed meanwhile.
    """
    real = Path(
        os.path.realpath(path)
    )  # what is pending lies beside the file, not beside a link to it
    try:
        _check_head(real)
        before, is_copied = _stamp(real), bool(_sidecars(real))
        connection = _copied(real, scratch) if is_copied else _unchanging(real)
    except OSError as error:
        raise OldFileError(f"{path} cannot be read: {error.strerror}") from error
    except sqlite3.Error as error:
        raise OldFileError(f"{path} cannot be read as a database: {error}") from error
    with closing(connection):
        try:
            yield _checked(path, connection)
        except sqlite3.Error as error:  # our own database has errors of other classes
            raise OldFileError(f"{path} cannot be read as a database: {error}") from error
    if not is_copied and _stamp(real) != before:
        raise OldFileError(f"{path} changed while it was read: stop the old bot and import again")


def _check_head(path: Path) -> None:
    if path.is_dir():
        raise OldFileError(f"{path} is a directory: name the file nahida.db in it")
    if path.exists() and not path.is_file():
        raise OldFileError(f"{path} is no file: name the nahida.db of the old bot")
    with path.open("rb") as file:
        head = file.read(100)
    if not head.startswith(MAGIC):
        what = "is no SQLite database, or an encrypted one" if head else "is empty"
        raise OldFileError(f"{path} {what}: name the nahida.db of the old bot")
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    expected = (65536 if page == 1 else page) * pages
    # Without the log of pending writes, which may hold the rest.
    if path.stat().st_size < expected and not _sidecars(path):
        raise OldFileError(f"{path} is cut off: {path.stat().st_size} of {expected} bytes")


def _sidecars(path: Path) -> list[Path]:
    """Return the logs of pending writes. One that is empty tells that the bot may be at work."""
    beside = (path.with_name(path.name + ending) for ending in SIDECARS)
    return [sidecar for sidecar in beside if sidecar.exists()]


def _stamp(path: Path) -> list[tuple[str, int, int]]:
    stats = [(each.name, each.stat()) for each in (path, *_sidecars(path)) if each.exists()]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def _unchanging(path: Path) -> sqlite3.Connection:
    """Open a file which SQLite then neither locks nor writes beside, not even one in WAL mode."""
    return sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)


def _copied(path: Path, scratch: Path) -> sqlite3.Connection:
    """Open a copy in which all that was pending is written back. Its space is free again with the connection's end, whatever ends it."""
    for _ in range(COPY_TRIES):
        with tempfile.TemporaryDirectory(prefix="legacy-", dir=scratch) as folder:
            if (copy := _copy(path, Path(folder))) is not None:
                with closing(sqlite3.connect(copy)) as connection:
                    connection.execute("PRAGMA journal_mode = DELETE").fetchone()
                return _unchanging(copy)
    raise OldFileError(f"{path} is being written to: stop the old bot and import again")


def _copy(path: Path, folder: Path) -> Path | None:
    """Copy a file with all that lies beside it. None: it was written to meanwhile."""
    try:
        before = _stamp(path)
        for file in (path, *_sidecars(path)):
            shutil.copyfile(file, folder / file.name)
        return folder / path.name if _stamp(path) == before else None
    except FileNotFoundError:  # a log that was written back just now
        return None


def _checked(path: Path, connection: sqlite3.Connection) -> OldFile:
    file = OldFile(connection)
    if damage := file.damage():
        raise OldFileError(f"{path} is damaged: {damage}")
    for table, columns in NEEDED.items():
        if not columns <= file.columns(table):
            raise OldFileError(
                f"{path} is not of the old bot: it has no table {table} with {', '.join(sorted(columns))}"
            )
    return file


def json_value(raw: Any) -> Any:
    """Read a JSON column so that every database takes it again; None if it is none, or nests too deep."""
    if not isinstance(raw, str):
        return None
    try:
        found = json.loads(raw, parse_float=_finite, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    if raw.count("[") + raw.count("{") > DEEPEST_JSON and _depth(found) > DEEPEST_JSON:
        return None
    return kept(found) if "\\u" in raw else found


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [child for each in level for child in _children(each)]
    return depth


def _children(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _finite(number: str) -> float | None:
    found = float(number)
    return found if math.isfinite(found) else None


def kept(value: Any) -> Any:
    """Return a value as every database takes it in JSON."""
    match value:
        case str():
            return storable(value)
        case list():
            return [kept(each) for each in value]
        case dict():
            return {storable(name): kept(each) for name, each in value.items()}
    return value


def text(value: Any, longest: int | None = None) -> str:
    """Return a value as a text column takes it."""
    return storable("" if value is None else str(value))[:longest]


def whole(value: Any) -> int | None:
    """Return a whole number that a column of eight bytes takes."""
    return value if type(value) is int and 0 <= value < 2**63 else None


def json_object(raw: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an old JSON column as an object, and how it is kept: as it was, even where it is no object."""
    found = json_value(raw)
    if isinstance(found, dict):
        return found, {"metadata": found}
    return {}, {} if raw is None else {"raw_metadata": text(raw)}


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
