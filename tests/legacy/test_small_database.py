"""The old bot's own database, written by its own code, gets the proposals that were worked out for it by hand."""

import io
import json
import unittest
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.test import TestCase

from nahida.legacy.inspect import inspect
from sessions_app.models import MigrationLog

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "legacy"
DATABASE, EXPECTED = FOLDER / "small.sqlite", FOLDER / "small.expected.json"


@unittest.skipUnless(
    DATABASE.exists() and EXPECTED.exists(), f"{DATABASE} is not beside the checkout"
)
class SmallDatabaseTest(TestCase):
    expected: dict[str, Any]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.expected = json.loads(EXPECTED.read_text())
        call_command("import_legacy", str(DATABASE), stdout=io.StringIO(), stderr=io.StringIO())
        inspect(who="alice")

    def records(self) -> dict[str, MigrationLog]:
        return {record.old_key: record for record in MigrationLog.objects.all()}

    def test_it_proposes_what_is_right_for_each_session(self):
        records = self.records()
        for key, right in self.expected["sessions"].items():
            record = records.pop(key)

            assert record.recommendation in right["accept"], key
            assert record.confidence in right["confidence"], key
            assert (record.new_key or None) == right.get("new_session_id"), key
        assert list(records) == ["milky:30002"]

    def test_it_counts_the_turns_that_name_each_chat(self):
        records = self.records()
        for key, right in self.expected["sessions"].items():
            found = {
                part["chat_address"]: part["turn_count"]
                for part in records[key].evidence
                if part["source"] == "turns"
            }

            assert found == right["evidence"], key

    def test_it_tells_what_becomes_of_each_job(self):
        jobs = {
            job["job_id"]: job for one in self.records().values() for job in one.affected["jobs"]
        }
        for job_id, right in self.expected["cron_jobs"].items():
            found = jobs.pop(job_id)

            assert found["outcome"] == right["outcome"], job_id
            if right["outcome"] == "retarget":
                assert found["chat_address"] == right["session_key"], job_id
        assert jobs == {}

    def test_it_sends_each_override_with_its_session(self):
        records = self.records().values()
        renamed = {one.new_key for one in records if one.affected["active_sessions"]}

        assert renamed == {one["session_id"] for one in self.expected["active_sessions"].values()}

    def test_it_counts_each_sides_part_in_the_tasks(self):
        total = sum(one.affected["background_tasks"] for one in self.records().values())

        assert total == 2 * len(self.expected["background_tasks"])
