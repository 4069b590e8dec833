"""What a person may decide about a record, and what the record then says."""

from django.test import TestCase

from nahida.legacy.decide import DecisionError, Targets, decide
from nahida.legacy.inspect import inspect
from sessions_app.models import MigrationLog
from tests.legacy.imported import BASE, GROUP, PRIVATE, old_job, old_session, old_turn, record


def target(key: str, *turns: object) -> dict[str, object]:
    return {"chat_address": key, "new_session_id": key, "turn_ids": list(turns)}


class DecideTest(TestCase):
    def refuse(self, approval: str, *, field: str = "approval", **details: object) -> str:
        before = MigrationLog.objects.values().get(old_key=self.old.key)

        with self.assertRaises(DecisionError) as caught:
            decide(record(self.old.key), approval, who="alice", **details)  # type: ignore[arg-type]  # a test may be wrong

        assert caught.exception.field == field
        assert MigrationLog.objects.values().get(old_key=self.old.key) == before
        return str(caught.exception)

    def found(self, key: str = BASE, *origins: str, **details: object) -> None:
        self.old = old_session(key, *origins, **details)
        inspect(who="alice")

    def test_it_approves_what_is_recommended(self):
        self.found(BASE, GROUP)

        decide(record(), "approved", who="alice")

        assert record().approval == "approved"
        assert [(one["what"], one["who"]) for one in record().history] == [("approved", "alice")]

    def test_it_writes_the_same_decision_once(self):
        self.found(BASE, GROUP)
        decide(record(), "approved", who="alice")

        decide(record(), "approved", who="bob")

        assert len(record().history) == 1

    def test_it_approves_nothing_that_a_person_must_answer(self):
        self.found("onlyone")

        assert "force_keep_legacy" in self.refuse("approved")

    def test_it_approves_no_split_without_targets(self):
        self.found(BASE, GROUP, PRIVATE)
        MigrationLog.objects.update(targets=[])

        self.refuse("approved", field="split_targets")

    def test_it_decides_nothing_about_a_typed_key(self):
        self.found("milky:group:20001")

        for approval in ("approved", "rejected", "force_keep_legacy", "force_rename"):
            assert "typed" in self.refuse(approval)

    def test_it_decides_nothing_about_a_settled_record(self):
        self.found(BASE, GROUP)
        MigrationLog.objects.update(result="renamed")

        assert "renamed" in self.refuse("rejected")

    def test_it_knows_no_other_decision(self):
        self.found(BASE, GROUP)

        assert '"perhaps"' in self.refuse("perhaps")

    def test_it_takes_a_decision_back(self):
        self.found(BASE, GROUP)
        decide(record(), "rejected", who="alice")

        decide(record(), "pending", who="alice")

        assert record().approval == "pending"
        assert len(record().history) == 2

    def test_it_forces_a_rename_to_a_typed_key(self):
        self.found("onlyone")

        decide(record("onlyone"), "force_rename", who="alice", new_key="qq:group:7:abcd1234")

        assert record("onlyone").new_key == "qq:group:7:abcd1234"
        assert record("onlyone").history[0]["new_key"] == "qq:group:7:abcd1234"

    def test_it_says_how_a_forced_key_is_written(self):
        self.found("onlyone")
        for key, way_out in {
            "milky:10001": "write milky:private:10001 or milky:group:10001",
            "milky": "too few parts",
            "": "empty",
            "milky:group:1:": "extra ':'",
            "milky:group:50%20": "write milky:group:50 ",
            "web:private:1": "a channel of our own",
        }.items():
            text = self.refuse("force_rename", field="new_session_id", new_key=key)

            assert way_out in text, text

    def test_it_takes_children_and_jobs_along_a_forced_rename(self):
        child = old_session(f"{BASE}:subagent:t1")
        old_job()
        self.found(BASE)
        assert record().affected["jobs"][0]["outcome"] == "disable"

        decide(record(), "force_rename", who="alice", new_key=GROUP)

        assert record().affected["jobs"][0]["outcome"] == "retarget"
        assert record().affected["jobs"][0]["chat_address"] == GROUP
        assert record().affected["children"] == [
            {"id": child.pk, "old": child.key, "new": f"{GROUP}:subagent:t1"}
        ]

    def test_it_takes_no_job_along_that_another_session_contradicts(self):
        old_session(f"{BASE}:abcd1234", PRIVATE)
        old_job()
        self.found(BASE)

        decide(record(), "force_rename", who="alice", new_key=GROUP)

        assert record().affected["jobs"][0]["outcome"] == "disable"

    def test_it_forgets_a_forced_key_with_its_decision(self):
        self.found(BASE, GROUP)
        proposed = MigrationLog.objects.values("new_key", "affected", "targets").get()
        decide(record(), "force_rename", who="alice", new_key="milky:group:9")

        decide(record(), "approved", who="alice")

        assert MigrationLog.objects.values("new_key", "affected", "targets").get() == proposed

    def test_it_forces_a_split_as_it_is_proposed(self):
        self.found(BASE, GROUP, PRIVATE)
        proposed = record().targets

        decide(record(), "force_split", who="alice")

        assert (record().approval, record().targets) == ("force_split", proposed)

    def test_it_forces_a_split_of_the_turns_a_person_lists(self):
        self.found(BASE)
        mine, his = old_turn(self.old), old_turn(self.old)
        targets: Targets = [target(GROUP, his), target(PRIVATE, mine)]

        decide(record(), "force_split", who="alice", targets=targets)

        assert record().targets == targets
        assert record().history[0]["targets"] == {GROUP: 1, PRIVATE: 1}

    def test_it_refuses_targets_that_make_no_sense(self):
        self.found(BASE, GROUP)
        named = self.old.turns.order_by("pk").values_list("pk", flat=True)[0]
        free = old_turn(self.old)
        elsewhere = old_turn(old_session("milky:2"))
        wrong_chat = {**target(GROUP, free), "chat_address": PRIVATE}
        for targets, said in [
            ([], "no target has a turn"),
            ([target(GROUP)], "no target has a turn"),
            ([target(GROUP, free), target(PRIVATE, free)], "listed twice"),
            ([target(GROUP, elsewhere)], "not of milky:10001"),
            ([target(PRIVATE, named)], "cannot go to milky:private:10001"),
            ([target(BASE, free)], "has no chat type"),
            ([wrong_chat], "not in the chat"),
            ([target(GROUP, str(free))], "no list of ids"),
            ([{"turn_ids": [free]}], "a target is"),
            (["milky:group:1"], "a target is"),
        ]:
            text = self.refuse("force_split", field="split_targets", targets=targets)

            assert said in text, text

    def test_it_keeps_and_splits_no_session_that_is_not_there(self):
        old_job()
        self.found("milky:2")
        inspect(who="alice")

        for approval in ("force_keep_legacy", "force_split"):
            with self.assertRaises(DecisionError):
                decide(record(BASE), approval, who="alice")
