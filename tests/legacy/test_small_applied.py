"""The old bot's own database with everything applied that was recommended, against what was worked out for it by hand."""

import io
import json
import unittest
from typing import Any

from django.core.management import call_command
from django.test import TestCase
from django.utils import timezone

from memory_app.models import MemoryItem
from nahida.legacy.apply import Outcome, to_apply
from nahida.legacy.decide import decide
from nahida.legacy.inspect import inspect
from nahida.legacy.models import Imported
from nahida.legacy.revert import revert
from nahida.legacy.running import apply_all
from scheduler_app.models import BackgroundTask, CronJob
from sessions_app.models import Lane, MigrationLog, Session
from tests.legacy.test_small_database import DATABASE, EXPECTED
from tests.sessions_app.moving import rows


@unittest.skipUnless(
    DATABASE.exists() and EXPECTED.exists(), f"{DATABASE} is not beside the checkout"
)
class SmallAppliedTest(TestCase):
    expected: dict[str, Any]
    imported: dict[str, Any]
    outcomes: list[Outcome]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.expected = json.loads(EXPECTED.read_text())
        call_command("import_legacy", str(DATABASE), stdout=io.StringIO(), stderr=io.StringIO())
        inspect(who="alice")
        cls.imported = rows()
        for record in MigrationLog.objects.filter(result=""):
            decide(record, "approved", who="alice")
        cls.outcomes = list(apply_all(to_apply(), who="alice", allows=True))

    def session(self, old_id: str) -> Session:
        """Return what has become of an old session."""
        session = Imported.objects.get(kind="session", old_id=old_id).session
        assert session is not None
        return session

    def test_it_applies_them_all(self):
        assert {outcome.result for outcome in self.outcomes} == {
            "renamed",
            "already applied",
            "kept_legacy",
            "cron_disabled",
        }
        assert not MigrationLog.objects.filter(result="").exists()

    def test_it_gives_each_session_its_key(self):
        for old_id, right in self.expected["sessions"].items():
            key = right.get("final_must_be") or right.get("new_session_id") or old_id

            assert self.session(old_id).key == key

    def test_it_ties_or_switches_off_each_job(self):
        found: Any = CronJob.objects.select_related("chat")
        jobs = {job.imported["job_id"]: job for job in found}
        for job_id, right in self.expected["cron_jobs"].items():
            job = jobs.pop(job_id)

            assert job.active == right.get("is_active", job.active), job_id
            if right["outcome"] == "retarget":
                assert str(job.chat) == right["session_key"], job_id
                assert job.chat.target_type == right["chat_type"], job_id
            else:
                assert job.imported_key == right["session_key"], job_id
                assert "the chat type is unknown" in job.last_error, job_id
            if job.active and job.mode != "once":
                assert job.next_fire_at > timezone.now(), job_id
        assert jobs == {}

    def test_it_sends_each_override_to_its_chat(self):
        found = {str(lane.address): lane.active_session.key for lane in Lane.objects.all()}

        assert found == {
            one["chat_key"]: one["session_id"] for one in self.expected["active_sessions"].values()
        }

    def test_it_keeps_the_task_ledger_right(self):
        tasks: Any = BackgroundTask.objects.select_related("requester", "child")
        for task in tasks:
            right = self.expected["background_tasks"][task.imported["task_id"]]

            assert task.requester.key == right["requester_session_id"]
            assert task.child.key == right["child_session_id"]

    def test_it_leaves_global_items_to_their_own_migration(self):
        """Only what hung on a session moves; items follow by a decision of their own."""
        for old_id, right in self.expected["memory_items"].items():
            row = Imported.objects.get(kind="item", old_id=old_id)
            item = MemoryItem.objects.get(pk=row.object_pk or 0)

            before = ("global", "__global__") if right["action"] == "migrate" else None
            right_scope = before or (right["scope_type"], right["scope_id"])
            assert (item.scope_type, item.scope_id) == right_scope, old_id

    def test_it_takes_everything_back(self):
        finished = MigrationLog.objects.exclude(result="").order_by("-finished_at", "-pk")

        for pk in list(finished.values_list("pk", flat=True)):
            if MigrationLog.objects.get(pk=pk).result != "reverted":
                revert(pk, who="alice")

        assert rows() == self.imported
