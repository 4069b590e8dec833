"""One copy of the whole database in a file of its own, taken while others go on writing."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.utils import timezone

from channels_app.clock import is_postgresql

PG_DUMP: Final = "pg_dump"
REFUSES = "Nothing was changed. To go on without a backup, say --no-backup."


class BackupError(Exception):
    """There is no backup; the message says why, and how to go on."""


def back_up() -> Path:
    """Copy the database to a new file in the data directory and return its path. Raises BackupError."""
    suffix, copy = (".dump", _dump) if is_postgresql() else (".sqlite3", _copy)
    path = _reserve(suffix)
    try:
        copy(path)
    except BaseException:
        path.unlink()
        raise
    return path


def _reserve(suffix: str) -> Path:
    """Make an empty file that nobody else has and only its owner may read."""
    folder = Path(settings.DATA_DIR, "backups")
    now = timezone.localtime()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"nahida-{now:%Y-%m-%d-%H%M%S-%f}{suffix}"
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise BackupError(f"{folder} cannot be written: {error.strerror}. {REFUSES}") from error
    return path


def _copy(path: Path) -> None:
    """SQLite's online backup: what is committed, from the write-ahead log too."""
    connection.ensure_connection()
    try:
        with closing(sqlite3.connect(path)) as target:
            connection.connection.backup(target)
            (verdict,) = target.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise BackupError(f"the database cannot be copied to {path}: {error}. {REFUSES}") from error
    if verdict != "ok":
        raise BackupError(f"the copy of the database is damaged ({verdict}). {REFUSES}")


def _dump(path: Path) -> None:
    program = shutil.which(PG_DUMP)
    if program is None:
        raise BackupError(
            f"{PG_DUMP} is not installed: install PostgreSQL's client programs, of the server's version or later. {REFUSES}"
        )
    command = [program, "--format=custom", "--no-password", f"--file={path}"]
    done = subprocess.run(  # noqa: S603 (a fixed command)
        command, env=_server(connection.settings_dict), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BackupError(f"{PG_DUMP} failed: {done.stderr.strip()}. {REFUSES}")


def _server(database: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment in which PostgreSQL's programs find the database; a password on the command line would show."""
    names = {
        "PGHOST": "HOST",
        "PGPORT": "PORT",
        "PGUSER": "USER",
        "PGPASSWORD": "PASSWORD",
        "PGDATABASE": "NAME",
    }
    found = {name: str(database[key]) for name, key in names.items() if database[key]}
    modes = {"PGSSLMODE": database["OPTIONS"].get("sslmode")}
    return {**os.environ, **found, **{name: mode for name, mode in modes.items() if mode}}
