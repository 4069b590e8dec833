"""From a file of the old bot to proposals: what its rows say, through the import and the inspection together."""

import io
import tempfile
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.test import TestCase

from nahida.legacy.inspect import inspect
from nahida.legacy.models import Source
from sessions_app.models import MigrationLog
from tests.legacy.builder import OldDatabase, envelope
from tests.legacy.imported import BASE, GROUP, PRIVATE, record

CHILD = f"{BASE}:subagent:task_1"


class FileTest(TestCase):
    def old(self, *, version: int = 9) -> OldDatabase:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = OldDatabase(Path(folder.name) / "nahida.db", version=version)
        return self.file

    def inspect(self) -> None:
        self.file.connection.close()
        call_command("import_legacy", str(self.file.path), stdout=io.StringIO())
        inspect(who="alice")

    def proposed(self, key: str = BASE) -> tuple[str, str, str]:
        found = record(key)
        return found.recommendation, found.new_key, found.confidence

    def fates(self, key: str = BASE) -> list[tuple[str, str]]:
        return [(job["outcome"], job["chat_address"]) for job in record(key).affected["jobs"]]

    def test_it_renames_by_one_envelope(self):
        old = self.old()
        old.turn(old.session(BASE), chat=GROUP)
        self.inspect()

        assert self.proposed() == ("rename", GROUP, "high")
        assert record().affected["memory_turns"] == 1
        assert record().evidence == [{"source": "turns", "chat_address": GROUP, "turn_count": 1}]

    def test_it_keeps_what_nothing_is_known_of(self):
        self.old().session(BASE)
        self.inspect()

        assert self.proposed() == ("keep_legacy", "", "low")

    def test_it_leaves_an_id_without_a_colon_to_a_person(self):
        old = self.old()
        old.turn(old.session("onlyone"), chat=GROUP)
        self.inspect()

        assert self.proposed("onlyone") == ("manual_review", "", "low")

    def test_it_disables_the_job_of_a_bare_session(self):
        old = self.old()
        old.job(old.session(BASE))
        self.inspect()

        assert self.proposed() == ("disable_cron", "", "low")
        assert record().affected["cron_jobs"] == 1

    def test_it_keeps_a_subagent_below_a_chat_with_a_job(self):
        old = self.old()
        old.session(CHILD)
        old.job(old.session(BASE))
        old.task(BASE, CHILD, task_id="task_1")
        self.inspect()

        assert self.proposed(CHILD) == ("keep_legacy", "", "low")
        assert record(CHILD).affected["cron_jobs"] == 0

    def test_it_renames_a_jobs_session_by_the_type_of_the_job(self):
        old = self.old(version=11)
        old.session(f"{BASE}:cron:abc123")
        old.job(BASE, job_id="abc123", chat_type="group")
        self.inspect()

        assert self.proposed(f"{BASE}:cron:abc123")[:2] == ("rename", f"{GROUP}:cron:abc123")
        assert self.fates(f"{BASE}:cron:abc123") == [("retarget", GROUP)]

    def test_it_splits_two_chats_turn_by_turn(self):
        old = self.old()
        old.session(BASE)
        mine, his = old.turn(BASE, chat=PRIVATE), old.turn(BASE, chat=GROUP)
        self.inspect()

        assert self.proposed() == ("split", "", "conflict")
        turn = Source.objects.get().turn_id
        assert {one["chat_address"]: one["turn_ids"] for one in record().targets} == {
            PRIVATE: [turn(mine)],
            GROUP: [turn(his)],
        }

    def test_it_leaves_a_child_that_holds_both_halves_with_its_requester(self):
        old = self.old()
        old.session(BASE), old.session(CHILD)
        for chat in (PRIVATE, GROUP):
            old.turn(BASE, chat=chat)
            old.turn(CHILD, chat=chat, source="subagent_fork:user_input")
        old.turn(CHILD, source="subagent_task")
        self.inspect()

        assert self.proposed()[0] == "split"
        assert record().evidence[0]["turn_count"] == 1
        assert self.proposed(CHILD)[0] == "keep_legacy"

    def test_it_leaves_evidence_of_another_chat_to_a_person(self):
        old = self.old()
        old.turn(old.session("milky:1"), chat="milky:group:2")
        old.turn(old.session("milky:3"), chat="qq:group:3")
        old.turn(old.session("telegram:-5"), chat="telegram:private:-5")
        self.inspect()

        for key in ("milky:1", "milky:3", "telegram:-5"):
            assert self.proposed(key) == ("manual_review", "", "conflict")

    def test_it_leaves_keys_that_only_look_typed_to_a_person(self):
        old = self.old()
        old.turn(old.session("webhook:group:1a2b3c4d"), chat="webhook:private:group")
        old.turn(old.session("milky:private:abcd1234"), chat=GROUP)
        old.override("hook:private", old.session("hook:private:1a2b3c4d"))
        old.session("milky:group:20001")
        self.inspect()

        for key in ("webhook:group:1a2b3c4d", "milky:private:abcd1234", "hook:private:1a2b3c4d"):
            assert self.proposed(key) == ("manual_review", "", "conflict")
        assert self.proposed("milky:group:20001")[0] == "skip_typed"

    def test_it_leaves_an_id_with_colons_to_a_person(self):
        old = self.old()
        old.turn(old.session("matrix:!room:example.org"), chat="matrix:group:!room:example.org")
        self.inspect()

        assert self.proposed("matrix:!room:example.org")[0] == "manual_review"

    def test_it_takes_nothing_from_an_answer_or_an_unknown_type(self):
        old = self.old()
        old.answer(old.session("milky:1"))
        for number, word in enumerate(["friend", "temp", "unknown", "Group", "supergroup", ""], 2):
            context = envelope(GROUP, chat_type=word, chat_id=str(number))
            key = old.session(f"milky:{number}")
            old.turn(key, metadata={"message_context": context})
        self.inspect()

        assert {one.recommendation for one in MigrationLog.objects.all()} == {"keep_legacy"}
        assert MigrationLog.objects.count() == 7

    def test_it_counts_the_good_turns_beside_the_bad_one(self):
        old = self.old()
        old.session(BASE, metadata="{broken")
        for metadata in ("{", "null", "[]", '"text"', "7", {"message_context": "group"}):
            old.turn(BASE, metadata=metadata)
        blank = envelope(GROUP, chat_id=10001, channel=" milky ")
        old.turn(BASE, metadata={"message_context": blank})
        self.inspect()

        assert self.proposed() == ("rename", GROUP, "medium")
        assert record().evidence[0]["turn_count"] == 1

    def test_it_weighs_the_metadata_of_a_session(self):
        parts = {"channel": "milky", "target_type": "group", "target_id": "1"}
        old = self.old()
        old.session("milky:1", metadata={"chat_address": parts})
        old.session("milky:2", metadata={"chat_address": "milky:group:2"})
        old.turn(old.session("milky:3", metadata={"chat_address": "milky:group:3"}))
        old.turn("milky:3", chat="milky:private:3")
        self.inspect()

        assert self.proposed("milky:1")[:2] == ("rename", "milky:group:1")
        assert self.proposed("milky:2")[:2] == ("rename", "milky:group:2")
        assert self.proposed("milky:3") == ("manual_review", "", "conflict")

    def test_it_tells_the_fate_of_every_job(self):
        old = self.old(version=11)
        old.turn(old.session("milky:1"), chat="milky:private:1")
        old.turn(old.session("milky:1:abcd1234"), chat="milky:group:1")
        old.turn(old.session("milky:2"), chat="milky:group:2")
        for key in ("milky:1", "milky:2", "milky:3", "milky:group:4"):
            old.job(key, job_id=key)
        self.inspect()

        assert self.fates("milky:1") == [("disable", "")]
        assert self.fates("milky:2") == [("retarget", "milky:group:2")]
        assert self.fates("milky:3") == [("disable", "")]
        assert not MigrationLog.objects.filter(old_key="milky:group:4").exists()

    def test_it_honours_what_was_done_before(self):
        old = self.old(version=11)
        old.turn(old.session("milky:group:1"), chat="milky:group:1")
        old.log("milky:1", "milky:group:1")
        old.turn(old.session("milky:2"), chat="milky:group:2")
        old.log("milky:2", None, status="kept_legacy")
        old.session("milky:1:subagent:task_1")
        self.inspect()

        assert not MigrationLog.objects.filter(
            old_key__in=["milky:group:1", "milky:2"], result=""
        ).exists()
        assert self.proposed("milky:1:subagent:task_1")[1] == "milky:group:1:subagent:task_1"

    def test_it_reads_a_file_from_before_envelopes(self):
        old = self.old(version=5)
        old.override(BASE, old.session(f"{BASE}:abcd1234"))
        old.turn(f"{BASE}:abcd1234")
        old.job(BASE)
        self.inspect()

        assert self.proposed(f"{BASE}:abcd1234") == ("keep_legacy", "", "low")
        assert record(f"{BASE}:abcd1234").affected["active_sessions"] == 1
        assert self.proposed() == ("disable_cron", "", "low")

    def test_it_counts_orphans_and_goes_on(self):
        old = self.old()
        old.connection.execute("PRAGMA foreign_keys=OFF")
        old.turn("milky:7", chat="milky:group:7")
        old.override("milky:8", "milky:8:abcd1234")
        old.task("milky:9", "milky:9:subagent:task_9", task_id="task_9")
        self.inspect()

        assert self.proposed("milky:7")[1] == "milky:group:7"
        for key in ("milky:8:abcd1234", "milky:9", "milky:9:subagent:task_9"):
            assert self.proposed(key)[0] == "keep_legacy"

    def test_it_changes_nothing_when_it_looks_again(self):
        old = self.old()
        old.talk(old.session(BASE), PRIVATE, times=2)
        old.talk(BASE, GROUP)
        old.job(BASE)
        self.inspect()
        before: list[Any] = list(MigrationLog.objects.order_by("pk").values())

        self.inspect()

        assert list(MigrationLog.objects.order_by("pk").values()) == before

    def test_it_imports_first_when_told(self):
        old = self.old()
        old.turn(old.session(BASE), chat=GROUP)
        old.connection.close()
        out = io.StringIO()

        call_command("migrate_session_keys", "inspect", "--db", str(old.path), stdout=out)

        assert self.proposed()[1] == GROUP
        assert f"{BASE} -> {GROUP}" in out.getvalue()
