"""A record is wholly applied or wholly not, whatever goes wrong at whichever write; a rerun finishes, and revert restores every row."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db import OperationalError
from django.test import TestCase, TransactionTestCase

from nahida.legacy.apply import apply_record
from nahida.legacy.revert import RevertError, revert
from sessions_app.models import MigrationLog, MigrationUndo
from tests.legacy.scenes import SCENES, before_write
from tests.sessions_app.moving import rows

ROOT = Path(__file__).resolve().parents[2]
TOO_MANY = 500  # writes that no record needs


def fail() -> None:
    raise OperationalError("disk full")


class ExceptionTests(TestCase):
    def test_it_leaves_nothing_of_a_rename_that_failed(self):
        self.fail_everywhere("renamed")

    def test_it_leaves_nothing_of_a_merge_that_failed(self):
        self.fail_everywhere("merged")

    def test_it_leaves_nothing_of_a_split_that_failed(self):
        self.fail_everywhere("split")

    def fail_everywhere(self, result: str) -> None:
        pk = SCENES[result]()
        before = rows()
        for step in range(1, TOO_MANY):
            with before_write(step, fail) as left:
                outcome = apply_record(pk, who="alice", allows=True)
            if left[0]:
                break
            self.assertEqual(outcome.result, "failed")
            self.assertIn("disk full", MigrationLog.objects.get(pk=pk).reason)
            self.assertEqual((rows(), MigrationUndo.objects.count()), (before, 0))
        self.assertEqual(outcome.result, result)
        self.assertGreater(step, 10)

        applied, undo = rows(), MigrationUndo.objects.count()
        for step in range(1, TOO_MANY):
            with before_write(step, fail) as left:
                try:
                    revert(pk, who="alice")
                except OperationalError:
                    self.assertEqual((rows(), MigrationUndo.objects.count()), (applied, undo))
            if left[0]:
                break
        self.assertEqual(rows(), before)


@pytest.mark.processes
class KilledTests(TransactionTestCase):
    def setUp(self) -> None:
        self.doomed = subprocess.Popen(
            [sys.executable, "-m", "tests.legacy.doomed"],
            cwd=ROOT,
            env=os.environ | {"DATABASE_URL": self.database_url()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.doomed.communicate)
        self.addCleanup(self.doomed.kill)

    def test_it_is_wholly_renamed_or_not_at_all(self):
        self.kill_everywhere("renamed")

    def test_it_is_wholly_merged_or_not_at_all(self):
        self.kill_everywhere("merged")

    def test_it_is_wholly_split_or_not_at_all(self):
        self.kill_everywhere("split")

    def kill_everywhere(self, result: str) -> None:
        pk = SCENES[result]()
        before = rows()

        for step in range(1, TOO_MANY):
            if self.do("apply", pk, step) == "done":
                break
            self.assertEqual(rows(), before, step)
            self.assertEqual(MigrationLog.objects.get(pk=pk).result, "")
        self.assertEqual(MigrationLog.objects.get(pk=pk).result, result)
        self.assertGreater(step, 10)
        self.assertEqual(apply_record(pk, who="alice", allows=True).result, "already applied")

        applied = rows()
        for step in range(1, TOO_MANY):
            if self.do("revert", pk, step) == "done":
                break
            self.assertEqual(rows(), applied, step)
        self.assertEqual(rows(), before)
        with self.assertRaisesRegex(RevertError, "reverted already"):
            revert(pk, who="alice")

    def do(self, act: str, pk: int, step: int) -> str:
        assert self.doomed.stdin is not None
        assert self.doomed.stdout is not None
        self.doomed.stdin.write(f"{act} {pk} {step}\n")
        self.doomed.stdin.flush()
        return self.doomed.stdout.readline().strip()

    def database_url(self) -> str:
        """Return where the tables of this test are."""
        database = settings.DATABASES["default"]
        name = database["NAME"]
        if "sqlite" in database["ENGINE"]:
            return f"sqlite:///{name}"
        user = f"{database['USER']}:{database['PASSWORD']}"
        return f"postgres://{user}@{database['HOST']}:{database['PORT']}/{name}"
