"""A backup is a whole copy in a new file, or an error that says how to go on."""

import os
import sqlite3
import stat
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

from django.db import connection
from django.test import TransactionTestCase, override_settings

from nahida.ops.backup import BackupError, back_up
from nahida.ops.heartbeat import beat


class BackupStage:
    folder: Path

    def setUp(self) -> None:
        super().setUp()  # type: ignore[misc]  # of the test case beside it
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)  # type: ignore[attr-defined]
        self.folder = Path(folder.name)
        settings = override_settings(DATA_DIR=self.folder)
        settings.enable()
        self.addCleanup(settings.disable)  # type: ignore[attr-defined]


class BackupTests(BackupStage, TransactionTestCase):
    def backups(self) -> list[Path]:
        return sorted(self.folder.rglob("*.*"))

    def test_it_holds_what_was_committed(self):
        beat("before")

        path = back_up()
        beat("after")

        self.assertEqual(self.names_in(path), {"before"})

    def names_in(self, path: Path) -> set[str]:
        """Return the names of the heartbeats in a backup."""
        if connection.vendor == "sqlite":
            with closing(sqlite3.connect(path)) as copy:
                return {name for (name,) in copy.execute("SELECT name FROM ops_heartbeat")}
        table = ["pg_restore", "--data-only", "--table=ops_heartbeat", "--file=-", str(path)]
        lines = subprocess.run(
            table, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        return {line.split("\t")[1] for line in lines if line.count("\t") == 3}

    def test_it_never_overwrites(self):
        paths = {back_up(), back_up()}

        self.assertEqual(len(paths), 2)
        self.assertEqual(set(self.backups()), paths)

    def test_it_is_for_its_owner_alone(self):
        path = back_up()

        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)

    def test_it_is_named_with_the_time(self):
        self.assertRegex(back_up().name, r"^nahida-\d{4}-\d\d-\d\d-\d{6}-\d{6}\.(sqlite3|dump)$")

    def test_it_says_that_the_place_cannot_be_written(self):
        (self.folder / "backups").write_text("in the way")

        with self.assertRaises(BackupError) as caught:
            back_up()

        self.assertIn("--no-backup", str(caught.exception))


if connection.vendor == "postgresql":

    class ProgramTests(BackupStage, TransactionTestCase):
        """PostgreSQL is copied by a program of its own, which may be missing or fail."""

        def setUp(self) -> None:
            super().setUp()
            path = os.environ["PATH"]
            self.addCleanup(os.environ.__setitem__, "PATH", path)
            os.environ["PATH"] = str(self.folder)

        def refuse(self) -> str:
            with self.assertRaises(BackupError) as caught:
                back_up()

            self.assertEqual(list((self.folder / "backups").iterdir()), [])
            return str(caught.exception)

        def test_it_says_what_is_missing(self):
            text = self.refuse()

            self.assertIn("pg_dump is not installed", text)
            self.assertIn("--no-backup", text)

        def test_it_leaves_no_file_when_it_fails(self):
            program = self.folder / "pg_dump"
            program.write_text("#!/bin/sh\necho no space left >&2\nexit 1\n")
            program.chmod(0o700)

            self.assertIn("no space left", self.refuse())
