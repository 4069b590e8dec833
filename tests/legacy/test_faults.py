"""A record is wholly applied or wholly not, whatever goes wrong at whichever write; a rerun finishes, and revert restores every row."""

from pathlib import Path

import pytest
from django.db import OperationalError
from django.test import TestCase

from nahida.legacy.apply import apply_record
from nahida.legacy.revert import RevertError, revert
from sessions_app.models import MigrationLog, MigrationUndo
from tests.legacy.dying import DoomedCase
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
class KilledTests(DoomedCase):
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
