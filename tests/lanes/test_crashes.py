"""A worker may die at any step: the message is answered exactly once all the same."""

import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.db import connection

from channels_app.models import Delivery
from memory_app.models import MemoryTurn, ModelCall, Role
from sessions_app import lanes
from tests.base import ALICE, BOB
from tests.fakes.model import ScriptedModel, call
from tests.lanes.stage import CommittedLaneTestCase, Killed, LaneTestCase, dying_at


class EveryStepTests(LaneTestCase):
    """The worker dies before each of its statements in turn, one death a message."""

    def test_it_answers_once_wherever_it_dies(self):
        """Dead before or after the model call, in the commit, before the release or the next wake-up: one answer."""
        for step in range(self.steps()):
            with self.subTest(step=step):
                text = f"message {step}"
                self.say(ALICE, text)
                with self.assertRaises(Killed), dying_at(step):
                    self.run_lane(model=ScriptedModel(f"answer to {text}"))
                self.expire_lease()
                if MemoryTurn.objects.unfinished().exists():
                    self.make_due()
                    self.run_lane(model=ScriptedModel(f"answer to {text}"))
                else:
                    self.run_lane(model=ScriptedModel())

                lane = self.lane(ALICE)
                self.assertEqual(
                    self.lines(ALICE)[-2:],
                    [("user", text, "done"), ("assistant", f"answer to {text}", "done")],
                )
                self.assertEqual((lane.token, lane.wake_at), (None, None))
        answers = MemoryTurn.objects.filter(role=Role.ASSISTANT).count()
        self.assertEqual(answers, MemoryTurn.objects.filter(role=Role.USER).count())
        self.assertEqual(answers, Delivery.objects.count())

    def steps(self) -> int:
        self.say(ALICE, "rehearsal")
        with dying_at(10_000) as said:
            self.run_lane(model=ScriptedModel("answer to rehearsal"))
        return len(said)

    def test_it_accepts_once_wherever_it_dies(self):
        """The platform reports a message again that nobody said was accepted."""
        self.say(ALICE, "rehearsal", event_key="rehearsal")
        with dying_at(10_000) as said:
            self.say(ALICE, "rehearsal too", event_key="rehearsal too")
        for step in range(len(said)):
            with self.subTest(step=step):
                with self.assertRaises(Killed), dying_at(step):
                    self.say(ALICE, f"message {step}", event_key=f"event {step}")
                self.say(ALICE, f"message {step}", event_key=f"event {step}")

                self.assertEqual(self.states(f"message {step}"), ["pending"])

    def test_it_pays_for_every_request(self):
        """No retake hides what a request cost whose answer was lost."""
        self.say(ALICE, "hi")
        self.die()
        self.die()
        self.model.enqueue("hello")
        self.work()

        self.assertEqual(ModelCall.objects.filter(turn=self.turn("hi")).count(), 3)

    def test_it_loses_no_staged_message(self):
        """Dead after the tool has staged and before the commit: bob hears it once, from the second attempt."""
        self.model.enqueue(call("say", text="psst"), Killed())
        self.say(ALICE, "tell bob")
        with self.assertRaises(Killed):
            self.run_lane()
        self.expire_lease()
        self.model.enqueue(call("say", text="psst"), "told him")
        self.work()

        self.assertEqual(self.sent(BOB), ["psst"])


@pytest.mark.processes
@pytest.mark.xdist_group("lanes")
class ProcessTests(CommittedLaneTestCase):
    """A real worker process is killed with -9."""

    def test_it_answers_after_a_kill(self):
        """Killed over the model call, then inside the commit: the third worker answers, once."""
        self.say(ALICE, "hi")
        for where in ("model", "commit"):
            with self.subTest(where=where):
                self.kill_worker(where)
                self.expire_lease()
                self.assertEqual(self.states("hi"), ["running"])
                self.assertEqual(self.answers(ALICE), [])
        self.make_due()
        self.model.enqueue("hello")

        self.work()

        self.assertEqual(self.sent(ALICE), ["hello"])
        self.assertEqual(self.turn("hi").attempt, 3)
        self.assertEqual(ModelCall.objects.count(), 2)
        self.assertEqual(lanes.wake_due(10), [])

    def kill_worker(self, where: str) -> None:
        """Start a worker on the lane of alice and kill it when it says that it is there."""
        environment = {
            **os.environ,
            "LANE": str(self.lane(ALICE).pk),
            "WHERE": where,
            "DATABASE": str(connection.settings_dict["NAME"]),
        }
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.lanes.worker"],
            cwd=settings.BASE_DIR,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with worker:
            assert worker.stdout is not None
            reached = worker.stdout.readline().strip()
            worker.kill()
        self.assertEqual(reached, where)
