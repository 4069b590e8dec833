"""manage.py migrate_session_keys apply, revert and repair-cron, as a person types them."""

import json
import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.test import TransactionTestCase, override_settings

from memory_app.models import MemoryTurn
from nahida.legacy.decide import decide
from nahida.legacy.inspect import inspect
from nahida.legacy.plan import write_plan
from scheduler_app.models import CronJob
from sessions_app.models import Chat, MigrationLog, MigrationUndo, Session
from tests.legacy.imported import BASE, GROUP, PRIVATE, old_job, old_session, old_turn, record
from tests.legacy.test_session_keys_command import run
from tests.sessions_app.moving import before_statement, rows


class CommandCase(TransactionTestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        settings = override_settings(DATA_DIR=self.folder)
        settings.enable()
        self.addCleanup(settings.disable)
        self.plan = self.folder / "plan.json"

    def old(self, *numbers: int) -> None:
        for number in numbers:
            old_session(f"milky:{number}", f"milky:group:{number}")
        inspect(who="alice")
        write_plan(self.plan)

    def approve(self, *numbers: int) -> None:
        """Decide in the plan file."""
        plan = json.loads(self.plan.read_text())
        for entry in plan["entries"]:
            if entry["old_session_id"] in {f"milky:{number}" for number in numbers}:
                entry["approval"] = "approved"
        self.plan.write_text(json.dumps(plan))

    def entry(self, key: str) -> dict[str, Any]:
        entries = json.loads(self.plan.read_text())["entries"]
        return next(entry for entry in entries if entry["old_session_id"] == key)

    def backups(self) -> list[Path]:
        return list(self.folder.glob("backups/*"))


class ApplyCommandTest(CommandCase):
    def test_it_applies_the_plan_after_a_backup(self):
        """Only what is not pending; the results are in the log and back in the plan."""
        self.old(1, 2)
        self.approve(1)

        told = run("apply", "--plan", str(self.plan), "--as", "bob")

        assert f"renamed        milky:1 -> {record('milky:1').new_key}" in told
        assert str(self.backups()[0]) in told
        assert (self.entry("milky:1")["status"], self.entry("milky:2")["status"]) == (
            "renamed",
            "open",
        )
        assert record("milky:1").history[-1]["who"] == "bob"
        assert Session.objects.filter(key="milky:2").exists()

    def test_it_applies_what_was_decided_without_a_plan(self):
        self.old(1)
        decide(record("milky:1"), "approved", who="alice")

        assert "1 renamed" in run("apply")

    def test_it_changes_nothing_when_run_again(self):
        self.old(1)
        self.approve(1)
        run("apply", "--plan", str(self.plan))
        before, undo = rows(), MigrationUndo.objects.count()

        told = run("apply", "--plan", str(self.plan))

        assert "1 already applied" in told
        assert (rows(), MigrationUndo.objects.count()) == (before, undo)
        assert len(self.backups()) == 1

    def test_it_makes_one_backup_unless_told_otherwise(self):
        self.old(1, 2)
        self.approve(1, 2)

        run("apply", "--plan", str(self.plan), "--no-backup")

        assert self.backups() == []

    def test_it_stops_without_a_backup(self):
        self.old(1)
        self.approve(1)
        (self.folder / "backups").write_text("in the way")

        with self.assertRaisesRegex(CommandError, "--no-backup"):
            run("apply", "--plan", str(self.plan))

        assert record("milky:1").result == ""

    def test_it_rehearses(self):
        """It says what would come of it: the old row is there, no new one, and nothing is logged."""
        self.old(1)
        self.approve(1)
        before, log = rows(), list(MigrationLog.objects.values())

        told = run("apply", "--plan", str(self.plan), "--dry-run")

        assert "1 renamed" in told
        assert "dry run" in told
        assert (rows(), list(MigrationLog.objects.values())) == (before, log)
        assert self.backups() == []

    def test_it_goes_on_after_a_failure_and_ends_with_an_error(self):
        self.old(1, 2, 3)
        self.approve(1, 2, 3)
        self.fail_second()

        with self.assertRaisesRegex(CommandError, "1 records are still open"):
            run("apply", "--plan", str(self.plan))

        statuses = [self.entry(f"milky:{number}")["status"] for number in (1, 2, 3)]
        assert statuses == ["renamed", "stale", "renamed"]

    def test_it_stops_at_the_first_failure_if_told(self):
        self.old(1, 2, 3)
        self.approve(1, 2, 3)
        self.fail_second()

        with self.assertRaises(CommandError):
            run("apply", "--plan", str(self.plan), "--stop-on-error")

        statuses = [self.entry(f"milky:{number}")["status"] for number in (1, 2, 3)]
        assert statuses == ["renamed", "stale", "open"]

    def fail_second(self) -> None:
        """A message arrives in the old session after the plan was written."""
        old_turn(Session.objects.get(key="milky:2"), "milky:group:2")

    def test_it_misses_no_row_that_a_record_removed(self):
        """Two old sessions become one."""
        old_session("milky:unknown:1", "milky:group:1")
        self.old(1)
        for proposal in MigrationLog.objects.all():
            decide(proposal, "approved", who="alice")

        assert "1 merged" in run("apply", "--no-backup")

    def test_it_tells_of_rows_that_went_missing(self):
        self.old(1, 2)
        self.approve(1)
        lost = MemoryTurn.objects.latest("pk")

        with (
            before_statement('UPDATE "sessions_app_session"', act=lost.delete),
            self.assertRaisesRegex(CommandError, "memory_app.MemoryTurn has 3 rows, not 4"),
        ):
            run("apply", "--plan", str(self.plan))

        assert self.entry("milky:1")["status"] == "renamed"

    def test_it_lets_no_chat_in_if_told(self):
        self.old(1)
        self.approve(1)

        run("apply", "--plan", str(self.plan), "--keep-access")

        assert Chat.objects.get(chat_key="milky:group:1").access == "pending"

    def test_it_refuses_a_plan_that_is_wrong(self):
        self.plan.write_text("{")

        with self.assertRaisesRegex(CommandError, "is no JSON"):
            run("apply", "--plan", str(self.plan))

    def test_it_says_that_nothing_is_decided(self):
        self.old(1)

        assert "nothing is decided" in run("apply")
        assert self.backups() == []

    def test_it_reverts(self):
        self.old(1)
        before = rows()
        self.approve(1)
        run("apply", "--plan", str(self.plan))

        told = run("revert", str(record("milky:1").pk), "--as", "bob")

        assert "reverted milky:1" in told
        assert rows() == before

    def test_it_says_why_it_does_not_revert(self):
        self.old(1)

        with self.assertRaisesRegex(CommandError, "nothing to revert"):
            run("revert", str(record("milky:1").pk))


class RepairCommandTest(CommandCase):
    def job(self, *, active: bool = True) -> CronJob:
        """An isolated job whose own key is typed, as a later build of the old bot left it."""
        job = old_job(GROUP, active=active)
        CronJob.objects.filter(pk=job.pk).update(session_mode="isolated", time_zone="UTC")
        self.history = old_session(f"{BASE}:cron:j1", "")
        return job

    def repair(self, *words: str) -> str:
        return run("repair-cron", *words)

    def key(self) -> str:
        return Session.objects.get(pk=self.history.pk).key

    def test_it_fills_the_chat_from_the_key(self):
        job = self.job()

        self.repair("--history", "none")

        job.refresh_from_db()
        assert (str(job.chat), job.next_fire_at is not None) == (GROUP, True)
        assert self.key() == f"{BASE}:cron:j1"

    def test_it_moves_the_history_of_an_active_job(self):
        """To the typed session of the job; the old row is gone."""
        job = self.job()

        told = self.repair("--history", "active")

        job.refresh_from_db()
        assert self.key() == f"{GROUP}:cron:j1"
        assert str(job.chat) == GROUP
        assert f"{BASE}:cron:j1 -> {GROUP}:cron:j1" in told
        assert len(self.backups()) == 1

    def test_it_leaves_the_history_of_an_inactive_job(self):
        job = self.job(active=False)

        self.repair("--history", "active")

        job.refresh_from_db()
        assert (str(job.chat), job.active, job.next_fire_at) == (GROUP, False, None)
        assert self.key() == f"{BASE}:cron:j1"
        self.repair("--history", "all")
        assert self.key() == f"{GROUP}:cron:j1"

    def test_it_never_moves_the_chat_itself(self):
        self.job()
        bare = old_session(BASE)

        self.repair("--history", "all")

        bare.refresh_from_db()
        assert bare.key == BASE

    def test_it_leaves_a_history_that_names_another_chat(self):
        self.job()
        old_turn(self.history, "milky:private:10001")

        told = self.repair("--history", "all")

        assert self.key() == f"{BASE}:cron:j1"
        assert "look at its record" in told

    def test_it_leaves_a_history_that_two_chats_share(self):
        """Jobs of two chats of one number kept their history under one name."""
        for key in (GROUP, PRIVATE):
            job = old_job(key)
            CronJob.objects.filter(pk=job.pk).update(session_mode="named", session_name="daily")
        shared = old_session(f"{BASE}:cron:daily", "")

        told = self.repair("--history", "all")

        shared.refresh_from_db()
        assert shared.key == f"{BASE}:cron:daily"
        assert f"its jobs name {GROUP}:cron:daily and {PRIVATE}:cron:daily" in told

    def test_it_leaves_a_history_that_was_decided(self):
        self.job()
        inspect(who="alice")
        decide(record(self.history.key), "rejected", who="alice")

        assert "it was decided already" in self.repair()
        assert self.key() == f"{BASE}:cron:j1"

    def test_it_changes_nothing_when_run_again(self):
        self.job()
        self.repair()
        before = rows()

        assert "nothing to repair" in self.repair()
        assert rows() == before

    def test_it_can_be_taken_back(self):
        self.job()
        before = rows()
        self.repair()

        for pk in (
            MigrationLog.objects.exclude(result="").order_by("-pk").values_list("pk", flat=True)
        ):
            run("revert", str(pk))

        assert rows() == before
