"""An inspection writes a record for each imported session, and nothing else."""

from django.apps import apps
from django.db import connection
from django.test import TestCase
from django.test.utils import CaptureQueriesContext

from nahida.legacy.decide import decide
from nahida.legacy.inspect import fingerprint_now, inspect
from nahida.legacy.records import status
from sessions_app.models import MigrationLog, Session
from tests.legacy.imported import (
    BASE,
    GROUP,
    PRIVATE,
    old_job,
    old_session,
    old_task,
    old_turn,
    override,
    record,
)


def rows() -> dict[str, list[dict[str, object]]]:
    """Return every row of every table but the records'."""
    return {
        model._meta.label: list(model._base_manager.order_by("pk").values())
        for model in apps.get_models(include_auto_created=True)
        if model is not MigrationLog
    }


def family() -> None:
    """One number, used in private and in a group, with all that hangs on it."""
    base = old_session(BASE, PRIVATE, GROUP)
    child = old_session(f"{BASE}:subagent:t1")
    old_task(base, child)
    old_session(f"{BASE}:abcd1234", GROUP)
    old_session("onlyone")
    old_session("milky:group:20001")
    override(BASE, base)
    old_job()
    old_job("milky:30002")


class InspectTest(TestCase):
    def test_it_writes_what_is_proposed(self):
        session = old_session(f"{BASE}:abcd1234", GROUP)

        inspect(who="alice")

        found = record(session.key)
        assert (found.recommendation, found.new_key) == ("rename", f"{GROUP}:abcd1234")
        assert (found.subject_pk, found.approval, found.result) == (session.pk, "pending", "")
        assert found.evidence == [{"source": "turns", "chat_address": GROUP, "turn_count": 1}]
        assert found.affected["memory_turns"] == 2

    def test_it_gives_the_targets_of_a_split_their_turns(self):
        session = old_session(BASE, PRIVATE, PRIVATE, GROUP)
        pks = list(session.turns.order_by("pk").values_list("pk", flat=True))

        inspect(who="alice")

        assert {one["chat_address"]: one["turn_ids"] for one in record().targets} == {
            PRIVATE: [pks[0], pks[1], pks[2]],
            GROUP: [pks[4], pks[5]],
        }

    def test_it_writes_one_record_a_session_and_one_for_lonely_jobs(self):
        family()

        found = inspect(who="alice")

        assert found["new"] == MigrationLog.objects.count() == 6
        assert {one.old_key: one.recommendation for one in MigrationLog.objects.all()} == {
            BASE: "split",
            f"{BASE}:subagent:t1": "keep_legacy",
            f"{BASE}:abcd1234": "rename",
            "onlyone": "manual_review",
            "milky:group:20001": "skip_typed",
            "milky:30002": "disable_cron",
        }

    def test_it_changes_nothing_else(self):
        family()
        before = rows()

        inspect(who="alice")

        assert rows() == before

    def test_it_writes_nothing_the_second_time(self):
        family()
        inspect(who="alice")
        before = list(MigrationLog.objects.order_by("pk").values())

        found = inspect(who="alice")

        assert list(MigrationLog.objects.order_by("pk").values()) == before
        assert found == {"unchanged": 6}

    def test_it_lists_requesters_before_their_children(self):
        old_session(f"{BASE}:subagent:t1")
        old_session(BASE, GROUP)

        inspect(who="alice")

        assert record(BASE).pk < record(f"{BASE}:subagent:t1").pk

    def test_it_rewrites_an_undecided_record(self):
        session = old_session(BASE)
        inspect(who="alice")
        pk = record().pk
        old_turn(session, GROUP)

        found = inspect(who="alice")

        assert found == {"changed": 1}
        assert (record().pk, record().recommendation, record().history) == (pk, "rename", [])

    def test_it_leaves_a_decision_whose_evidence_stands(self):
        old_session(BASE, GROUP)
        inspect(who="alice")
        decide(record(), "approved", who="alice")

        assert inspect(who="bob") == {"decided": 1}
        assert record().approval == "approved"

    def test_it_takes_a_decision_back_whose_evidence_has_changed(self):
        """What was approved stays in the history, and has to be approved again."""
        session = old_session(BASE, GROUP)
        inspect(who="alice")
        decide(record(), "approved", who="alice")
        old_turn(session, PRIVATE)

        found = inspect(who="bob")

        assert found == {"stale": 1}
        assert (record().approval, record().recommendation) == ("pending", "split")
        assert status(record()) == "stale"
        assert [(entry["what"], entry["who"]) for entry in record().history] == [
            ("approved", "alice"),
            ("stale", "bob"),
        ]

    def test_it_closes_the_record_of_a_session_that_is_gone(self):
        session = old_session(BASE)
        inspect(who="alice")
        session.delete()

        inspect(who="alice")

        assert (record().result, record().history[-1]["who"]) == ("gone", "alice")

    def test_it_opens_no_record_for_what_is_settled(self):
        session = old_session(BASE, GROUP)
        inspect(who="alice")
        MigrationLog.objects.update(result="renamed", new_key=GROUP)
        type(session).objects.update(key=GROUP)

        assert inspect(who="alice") == {}
        assert MigrationLog.objects.count() == 1

    def test_it_opens_none_for_the_sessions_that_took_the_turns(self):
        """A session of the new bot counts as imported once an old one has been merged into it."""
        old_session("milky:1", "milky:group:1")
        old_session(BASE, GROUP, PRIVATE)
        inspect(who="alice")
        MigrationLog.objects.filter(old_key="milky:1").update(result="merged")
        MigrationLog.objects.filter(old_key=BASE).update(result="split")
        Session.objects.get(key="milky:1").turns.all().delete()
        Session.objects.get(key="milky:1").delete()
        for key in ("milky:group:1", GROUP, PRIVATE):
            old_session(key)

        assert inspect(who="alice") == {}

    def test_it_proposes_again_where_only_jobs_were_settled(self):
        old_job()
        inspect(who="alice")
        MigrationLog.objects.update(result="cron_disabled")
        session = old_session(BASE, GROUP)

        inspect(who="alice")

        assert (record().subject_pk, record().new_key) == (session.pk, GROUP)

    def test_it_tells_a_record_alone_as_it_tells_all(self):
        """The few queries for one record find what the many for all found."""
        family()
        inspect(who="alice")

        for one in MigrationLog.objects.exclude(recommendation="skip_typed"):
            assert fingerprint_now(one) == one.fingerprint, one.old_key

    def test_it_tells_a_record_as_before_when_its_relatives_have_moved(self):
        base = old_session(BASE, PRIVATE)
        old_session(f"{BASE}:abcd1234", GROUP)
        old_session(f"{BASE}:subagent:t1")
        old_job()
        inspect(who="alice")
        sibling = record(f"{BASE}:abcd1234")
        child = record(f"{BASE}:subagent:t1")

        MigrationLog.objects.filter(pk=sibling.pk).update(result="renamed")
        type(base).objects.filter(key=sibling.old_key).update(key=sibling.new_key)
        assert fingerprint_now(record(BASE)) == record(BASE).fingerprint

        MigrationLog.objects.filter(pk=record(BASE).pk).update(result="renamed")
        type(base).objects.filter(pk=base.pk).update(key=PRIVATE)
        assert fingerprint_now(child) == child.fingerprint

    def test_it_sees_that_a_record_no_longer_holds(self):
        session = old_session(BASE, GROUP)
        inspect(who="alice")
        old_turn(session, GROUP)

        assert fingerprint_now(record()) != record().fingerprint

    def test_it_asks_no_more_of_more_sessions(self):
        old_session("milky:1", GROUP)
        with CaptureQueriesContext(connection) as few:
            inspect(who="alice")
        MigrationLog.objects.all().delete()
        for number in range(20):
            old_session(f"milky:{number + 2}", GROUP)

        with CaptureQueriesContext(connection) as many:
            inspect(who="alice")

        assert len(many) == len(few)
