"""manage.py migrate_session_keys, as a person types it."""

import io
import json
import tempfile
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import TestCase

from memory_app.models import MemoryItem
from nahida.legacy.decide import decide
from nahida.legacy.inspect import inspect
from sessions_app.models import MigrationLog
from tests.legacy.imported import (
    BASE,
    GROUP,
    PRIVATE,
    old_job,
    old_session,
    old_task,
    old_turn,
    record,
)


def run(*words: str) -> str:
    out = io.StringIO()
    call_command("migrate_session_keys", *words, stdout=out)
    return out.getvalue()


class InspectTest(TestCase):
    def test_it_tells_what_it_proposes_and_why(self):
        base = old_session(BASE, GROUP)
        old_task(base, old_session(f"{BASE}:subagent:t1"))
        old_job()

        told = run("inspect")

        for said in (
            f"{BASE} -> {GROUP}",
            "rename, confidence high",
            f"turns: {GROUP}, 1 turn",
            "1 session, 2 turns, 1 job, 1 task",
            f"j1 goes on in {GROUP}",
            f"{BASE}:subagent:t1 goes along",
            "approve it",
            "2 records",
            "proposed    2 rename",
        ):
            assert said in told, said

    def test_it_tells_the_risk_to_jobs(self):
        old_session(BASE, GROUP, PRIVATE)
        old_job()

        told = run("inspect")

        assert f"1 turn to {GROUP}" in told
        assert "j1 is switched off: the chat type is unknown" in told

    def test_it_says_that_a_decision_no_longer_holds(self):
        session = old_session(BASE, GROUP)
        run("inspect")
        decide(record(), "approved", who="alice")
        old_turn(session, GROUP)

        assert "evidence has changed: 1" in run("inspect", "--as", "bob")
        assert record().history[-1]["who"] == "bob"

    def test_it_writes_the_plan(self):
        old_session(BASE, GROUP)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "plan.json"

            run("inspect", "--out", str(path))

            assert json.loads(path.read_text())["entries"][0]["new_session_id"] == GROUP

    def test_it_says_that_the_plan_cannot_be_written(self):
        with self.assertRaisesMessage(CommandError, "cannot be written"):
            run("inspect", "--out", "/nowhere/plan.json")

    def test_it_acts_for_the_one_who_runs_it(self):
        session = old_session(BASE)
        run("inspect")
        session.delete()

        run("inspect")

        assert record().history[-1]["who"].startswith("cli:")


class StatusTest(TestCase):
    def test_it_tells_what_is_legacy_and_why(self):
        old_session(BASE, GROUP)
        old_session("milky:2")
        inspect(who="alice")
        decide(record(), "approved", who="alice")
        old_session("milky:3", "milky:group:3")
        old_session("milky:group:4", "milky:group:4")
        old_job()
        old_job(active=False)

        told = run("status")

        for said in (
            "sessions: 3 are still legacy",
            "1  approved, not applied yet",
            "1  keep_legacy is proposed, not decided yet",
            "1  not inspected yet",
            "turns: 4 are still legacy",
            "jobs: 2 are still legacy",
            "1  waits until the type of its chat is known",
            "1  was off before",
        ):
            assert said in told, said

    def test_it_tells_why_a_settled_session_is_still_legacy(self):
        old_session(BASE)
        inspect(who="alice")
        MigrationLog.objects.update(result="kept_legacy")

        assert "1  kept as an old session" in run("status")

    def test_it_tells_which_memory_still_hangs_on_an_old_session(self):
        session = old_session(BASE)
        items: list[dict[str, Any]] = [
            {"scope_type": "global", "scope_id": "__global__", "held": True},
            {"scope_type": "global", "scope_id": "__global__", "source_session": session},
            {"scope_type": "session", "scope_id": BASE},
            {"scope_type": "chat", "scope_id": BASE},
            {"scope_type": "chat", "scope_id": GROUP},
            {"scope_type": "session", "scope_id": BASE, "status": "archived"},
        ]
        for number, item in enumerate(items):
            MemoryItem.objects.create(kind="fact", content=str(number), imported={}, **item)

        told = run("status")

        assert "items: 4 are still legacy" in told
        assert "2  its scope is that of an old session" in told
        assert "1  held: global" in told
        assert "1  for all chats, and said in a session that is still legacy" in told

    def test_it_says_that_nothing_is_left(self):
        assert "nothing is legacy any more" in run("status")
