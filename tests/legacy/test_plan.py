"""The plan file shows the records, and takes decisions back to them."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.test import TestCase

from nahida.legacy.decide import decide
from nahida.legacy.inspect import inspect
from nahida.legacy.models import Source
from nahida.legacy.plan import PlanError, write_plan
from nahida.legacy.takeover import read_plan
from sessions_app.models import MigrationLog
from tests.legacy.imported import BASE, GROUP, PRIVATE, old_job, old_session, old_turn, record

OTHER = "milky:20002"


class PlanTest(TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "plan.json"

    def found(self, *origins: str) -> None:
        self.old = old_session(BASE, *origins)
        old_session(OTHER, "milky:group:20002")
        inspect(who="alice")
        write_plan(self.path)

    def plan(self) -> Any:
        return json.loads(self.path.read_text())

    def entry(self, key: str = BASE) -> Any:
        (found,) = (one for one in self.plan()["entries"] if one["old_session_id"] == key)
        return found

    def edit(self, change: Callable[[dict[str, Any]], object], key: str = BASE) -> None:
        """Change one entry of the file."""
        plan = self.plan()
        change(next(one for one in plan["entries"] if one["old_session_id"] == key))
        self.path.write_text(json.dumps(plan))

    def set(self, key: str = BASE, **fields: Any) -> None:
        self.edit(lambda one: one.update(fields), key)

    def refuse(self) -> str:
        before = list(MigrationLog.objects.order_by("pk").values())

        with self.assertRaises(PlanError) as caught:
            read_plan(self.path, who="bob")

        assert list(MigrationLog.objects.order_by("pk").values()) == before
        return str(caught.exception)

    def test_it_shows_a_record(self):
        self.found(GROUP)

        assert self.entry() == {
            "old_session_id": BASE,
            "status": "open",
            "recommendation": "rename",
            "new_session_id": GROUP,
            "confidence": "high",
            "evidence": [{"source": "turns", "chat_address": GROUP, "turn_count": 1}],
            "affected": {
                "sessions": 1,
                "memory_turns": 2,
                "active_sessions": 0,
                "cron_jobs": 0,
                "background_tasks": 0,
                "memory_items": 0,
            },
            "approval": "pending",
            "notes": [f"only {GROUP} is named"],
            "record": record().pk,
            "fingerprint": record().fingerprint,
        }

    def test_it_shows_the_turns_of_a_split_and_those_that_stay(self):
        self.found(PRIVATE, GROUP)
        pks = list(self.old.turns.order_by("pk").values_list("pk", flat=True))

        assert self.entry()["split_targets"] == [
            {"chat_address": GROUP, "new_session_id": GROUP, "turn_ids": pks[2:]},
            {"chat_address": PRIVATE, "new_session_id": PRIVATE, "turn_ids": pks[:1]},
        ]
        assert self.entry()["remain_turn_ids"] == pks[1:2]

    def test_it_says_what_it_is(self):
        Source.objects.create(name="nahida", path="/srv/old/nahida.db")
        self.found(GROUP)

        plan = self.plan()

        assert (plan["kind"], plan["version"]) == ("session_keys", 1)
        assert plan["database"] == "/srv/old/nahida.db"
        assert plan["summary"]["records"] == 2
        assert plan["summary"]["recommendation"] == {"rename": 2}

    def test_it_writes_a_plan_of_nothing(self):
        write_plan(self.path)

        assert self.plan()["entries"] == []
        assert read_plan(self.path, who="bob") == []

    def test_it_leaves_nothing_beside_the_file(self):
        self.found(GROUP)
        write_plan(self.path)

        assert [path.name for path in self.path.parent.iterdir()] == ["plan.json"]

    def test_it_says_that_it_cannot_write(self):
        with self.assertRaises(PlanError) as caught:
            write_plan(self.path / "no folder" / "plan.json")

        assert "cannot be written" in str(caught.exception)

    def test_it_takes_a_decision_over(self):
        self.found(GROUP)
        self.set(approval="approved")

        assert read_plan(self.path, who="bob") == [record().pk, record(OTHER).pk]
        assert (record().approval, record(OTHER).approval) == ("approved", "pending")
        assert record().history[0]["who"] == "bob"

    def test_it_takes_the_same_file_twice_as_once(self):
        self.found(GROUP)
        self.set(approval="force_rename", new_session_id="milky:group:7")
        read_plan(self.path, who="bob")
        before = list(MigrationLog.objects.order_by("pk").values())

        read_plan(self.path, who="bob")

        assert list(MigrationLog.objects.order_by("pk").values()) == before
        assert record().new_key == "milky:group:7"

    def test_it_takes_another_decision_of_the_same_file(self):
        self.found(GROUP)
        for approval in ("force_rename", "rejected", "pending"):
            self.set(approval=approval)
            read_plan(self.path, who="bob")

            assert record().approval == approval

    def test_it_takes_a_forced_split_over(self):
        self.found()
        turn = old_turn(self.old)
        inspect(who="alice")
        write_plan(self.path)
        target = {"chat_address": GROUP, "new_session_id": GROUP, "turn_ids": [turn]}
        self.set(approval="force_split", split_targets=[target])

        read_plan(self.path, who="bob")

        assert record().targets == [target]

    def test_it_keeps_the_files_order(self):
        self.found(GROUP)
        plan = self.plan()
        plan["entries"].reverse()
        self.path.write_text(json.dumps(plan))

        assert read_plan(self.path, who="bob") == [record(OTHER).pk, record().pk]

    def test_it_takes_a_part_of_the_entries(self):
        self.found(GROUP)
        plan = self.plan()
        del plan["entries"][0]
        self.path.write_text(json.dumps(plan))

        assert len(read_plan(self.path, who="bob")) == 1

    def test_it_only_lists_what_is_settled(self):
        self.found(GROUP)
        self.set(approval="rejected")
        MigrationLog.objects.filter(old_key=BASE).update(result="renamed", approval="approved")

        assert record().pk in read_plan(self.path, who="bob")
        assert record().approval == "approved"

    def test_it_does_not_undo_what_was_decided_since(self):
        self.found(GROUP)
        decide(record(), "approved", who="alice")

        read_plan(self.path, who="bob")

        assert record().approval == "approved"

    def test_it_refuses_to_overrule_what_was_decided_since(self):
        self.found(GROUP)
        decide(record(), "rejected", who="alice")
        self.set(approval="approved")

        assert "approval is approved, but alice decided rejected" in self.refuse()

    def test_it_refuses_a_file_that_is_no_plan(self):
        for text, said in {
            "": "no JSON",
            "{": "no JSON",
            "[]": "no object",
            "{}": "kind is missing",
        }.items():
            self.path.write_text(text)

            assert said in self.refuse()

    def test_it_refuses_a_file_that_is_not_there(self):
        assert "cannot be read: No such file" in self.refuse()

    def test_it_refuses_another_kind_or_version(self):
        self.found(GROUP)
        for field, value, said in [
            ("kind", "memory_scopes", 'kind is "memory_scopes"'),
            ("version", 2, "version is 2"),
            ("version", True, "version is true"),
            ("created_at", "yesterday", "created_at"),
            ("entries", {}, "entries"),
        ]:
            self.path.write_text(json.dumps({**self.plan(), field: value}))

            assert said in self.refuse()
            write_plan(self.path)

    def test_it_names_the_entry_and_the_field_that_is_wrong(self):
        self.found(GROUP)
        wrong: list[tuple[str, Any, str]] = [
            ("evidence", [], "evidence was edited"),
            ("affected", {}, "affected was edited"),
            ("recommendation", "split", "recommendation was edited"),
            ("confidence", "low", "confidence was edited"),
            ("new_session_id", "milky:group:9", "new_session_id was edited"),
            ("split_targets", [], "split_targets was edited"),
            ("fingerprint", "0" * 64, "fingerprint is stale"),
            ("old_session_id", "milky:9", "old_session_id is not that of record"),
            ("record", 10**6, "record 1000000 does not exist"),
            ("record", "1", "record is no number"),
            ("record", record(OTHER).pk, "old_session_id is not that of"),
            ("approval", "yes", "approval is none of pending"),
            ("approval", [], "approval is none of pending"),
            ("aproval", "approved", "aproval is no field"),
            ("new_session_id", 5, "new_session_id is no text"),
        ]
        for field, value, said in wrong:
            self.set(**{field: value})

            text = self.refuse()

            assert said in text, text
            assert "entry 1 (" in text
            write_plan(self.path)

    def test_it_refuses_an_entry_without_a_field(self):
        self.found(GROUP)
        self.edit(lambda one: one.pop("evidence"))

        assert "entry 1 (milky:10001): evidence is missing" in self.refuse()

    def test_it_refuses_an_entry_that_stands_twice(self):
        self.found(GROUP)
        plan = self.plan()
        plan["entries"].append(plan["entries"][0])
        self.path.write_text(json.dumps(plan))

        assert "entry 3 (milky:10001): record is that of entry 1 too" in self.refuse()

    def test_it_changes_nothing_if_a_later_entry_is_wrong(self):
        self.found(GROUP)
        self.set(approval="approved")
        self.set(OTHER, approval="force_rename", new_session_id="milky:20002")

        text = self.refuse()

        assert f"entry 2 ({OTHER}): new_session_id" in text
        assert "write milky:private:20002 or milky:group:20002" in text

    def test_it_refuses_a_file_whose_evidence_is_out_of_date(self):
        self.found(GROUP)
        old_turn(self.old, PRIVATE)
        inspect(who="alice")
        self.set(approval="approved")

        assert "entry 1 (milky:10001): fingerprint is stale" in self.refuse()

    def test_it_refuses_to_approve_what_a_person_must_answer(self):
        self.found("milky:group:9")
        self.set(approval="approved")

        assert "entry 1 (milky:10001): approval milky:10001 needs" in self.refuse()

    def test_it_shows_what_came_of_a_record(self):
        self.found(GROUP)
        old_job("milky:30002")
        inspect(who="alice")
        MigrationLog.objects.filter(old_key=BASE).update(result="renamed")
        failed = record(OTHER)
        failed.history, failed.reason = [{"what": "failed", "who": "bob"}], "disk full"
        failed.save()

        write_plan(self.path)

        assert [one["status"] for one in self.plan()["entries"]] == ["renamed", "failed", "open"]
        assert self.entry(OTHER)["notes"][-1] == "disk full"
