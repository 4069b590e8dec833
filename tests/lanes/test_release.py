"""R5: a lane sleeps only when nothing is left, and never through a message."""

import threading

from django.db import connection, transaction

from memory_app import turns as memory_turns
from memory_app.models import MemoryTurn, TurnKind
from memory_app.turns import NewTurn, append_turn
from nahida import queue
from sessions_app import lanes
from tests.base import ALICE
from tests.lanes.stage import CommittedLaneTestCase, Killed, LaneTestCase, dying_at


class ReleaseTests(LaneTestCase):
    def test_it_sleeps_when_all_is_answered(self):
        self.model.enqueue("hello")
        self.say(ALICE, "hi")

        self.run_lane()

        lane = self.lane(ALICE)
        self.assertEqual((lane.token, lane.wake_at, lane.woken_at), (None, None, None))
        self.assertNotIn((queue.RUN_LANE, lane.pk), self.woken)

    def test_it_wakes_again_for_what_waited_from_the_beginning(self):
        """The count of the inbox has not moved, but another batch is pending."""
        self.model.enqueue("hello")
        self.say(ALICE, "hi")
        self.say(ALICE, "/new")
        due_since = self.lane(ALICE).wake_at
        lanes.wake_due(10)

        self.run_lane()

        lane = self.lane(ALICE)
        self.assertEqual(self.states("hi", "/new"), ["done", "pending"])
        self.assertEqual((lane.token, lane.wake_at, lane.woken_at), (None, due_since, None))
        self.assertEqual(self.woken, [(queue.RUN_LANE, lane.pk)])

    def test_it_does_one_batch_a_task(self):
        self.model.enqueue("hello")
        for text in ("hi", "/new", "and now?"):
            self.say(ALICE, text)

        self.run_lane()

        self.assertEqual(self.states("hi", "/new", "and now?"), ["done", "pending", "pending"])

    def test_it_goes_on_with_a_message_that_came_meanwhile(self):
        def think(messages):
            self.say(ALICE, "two")
            return "to one"

        self.model.enqueue(think, "to two")
        self.say(ALICE, "one")
        self.work()

        self.assertEqual(self.answers(ALICE), ["to one", "to two"])
        self.assertEqual(self.woken.count((queue.RUN_LANE, self.lane(ALICE).pk)), 1)

    def test_it_does_not_sleep_when_the_inbox_has_moved(self):
        """Nothing unfinished is in sight, yet something was appended since the count was read."""
        self.say(ALICE, "hi")
        token, lane = self.claim(), self.lane(ALICE)
        nothing = MemoryTurn.objects.none()

        stale = lanes.release(lane.pk, token, inbox=lane.inbox - 1, unfinished=nothing)
        fresh = lanes.release(lane.pk, token, inbox=lane.inbox, unfinished=nothing)

        self.assertEqual((stale, fresh), (False, True))

    def test_it_lets_nobody_else_s_lane_go(self):
        self.say(ALICE, "hi")
        token, lane = self.claim(), self.lane(ALICE)
        self.expire_lease()
        other = self.claim()
        MemoryTurn.objects.update(state="done")

        memory_turns.release(lane.pk, token, inbox=lane.inbox)

        self.assertEqual(self.lane(ALICE).token, other)
        self.assertEqual(self.woken, [])

    def test_it_is_deaf_after_a_crash_until_the_lease_ends(self):
        """The worker dies between commit and release: the answer stands, and the lane comes back by its lease."""
        self.model.enqueue("to one", "to two")
        self.say(ALICE, "one")
        with self.assertRaises(Killed), dying_at(self.steps_to_release()):
            self.run_lane()
        self.say(ALICE, "two")

        while_leased = lanes.wake_due(10)
        self.run_lane()
        deaf = self.answers(ALICE)
        self.expire_lease()
        woken = lanes.wake_due(10)
        self.work()

        self.assertEqual(while_leased, [])
        self.assertEqual(deaf, ["to one"])
        self.assertEqual(woken, [self.lane(ALICE).pk])
        self.assertEqual(self.answers(ALICE), ["to one", "to two"])
        self.assertIsNone(self.lane(ALICE).wake_at)

    def steps_to_release(self) -> int:
        """Count a run's statements up to the release, which begins with what is the run's last one."""
        with transaction.atomic():
            rehearsal = type(self.model)("rehearsal")
            with dying_at(10_000) as said:
                self.run_lane(model=rehearsal)
            transaction.set_rollback(True)
        assert said[-1].startswith('UPDATE "sessions_app_lane"'), said[-1]
        return len(said) - 1


class RacingTests(CommittedLaneTestCase):
    def test_it_hears_a_message_that_commits_during_the_release(self):
        """The release waits for a lock and its subquery has seen an older snapshot: the inbox tells."""
        self.say(ALICE, "one")
        token, lane = self.claim(), self.lane(ALICE)
        take = memory_turns.take(lane.pk, token)
        assert take is not None
        MemoryTurn.objects.running().update(state="done")
        slept = []

        def release() -> None:
            try:
                slept.append(memory_turns.release(lane.pk, token, inbox=take.inbox))
            finally:
                connection.close()

        worker = threading.Thread(target=release)
        with transaction.atomic():
            append_turn(ALICE, NewTurn(kind=TurnKind.MESSAGE, content="two"))
            worker.start()
            self.wait_until_blocked()
        worker.join(20)

        self.assertEqual(slept, [False])
        self.assertIsNotNone(self.lane(ALICE).wake_at)
        self.assertEqual(lanes.wake_due(10), [lane.pk])
