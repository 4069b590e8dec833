"""R2: who may try, for how long, and what happens at the deadline."""

import threading
from datetime import timedelta

import time_machine
from django.utils import timezone

from channels_app.clock import DbNow
from channels_app.models import Delivery
from memory_app import turns as memory_turns
from nahida.agent import turns
from sessions_app import lanes
from sessions_app.models import Lane
from tests.base import ALICE
from tests.lanes.stage import HOUR, CommittedLaneTestCase, LaneTestCase


class ClaimTests(LaneTestCase):
    def test_it_lets_one_worker_in(self):
        self.say(ALICE, "hi")
        lane = self.lane(ALICE)

        tokens = [lanes.claim(lane.pk), lanes.claim(lane.pk)]

        self.assertIsNotNone(tokens[0])
        self.assertIsNone(tokens[1])

    def test_it_leaves_a_lane_alone_that_is_not_due(self):
        self.say(ALICE, "hi")
        self.put_off(ALICE)
        later = lanes.claim(self.lane(ALICE).pk)
        Lane.objects.update(wake_at=None)
        asleep = lanes.claim(self.lane(ALICE).pk)

        self.assertEqual((later, asleep), (None, None))

    def test_it_takes_over_when_the_lease_has_run_out(self):
        self.say(ALICE, "hi")
        first = self.claim()
        self.expire_lease()

        second = self.claim()

        self.assertNotEqual(first, second)
        self.assertEqual(self.lane(ALICE).token, second)

    def test_it_leases_for_half_a_minute(self):
        self.say(ALICE, "hi")
        self.claim()

        soon, late = DbNow() + timedelta(seconds=25), DbNow() + timedelta(seconds=31)
        self.assertTrue(Lane.objects.filter(lease_until__gt=soon, lease_until__lt=late).exists())

    def test_it_renews_only_its_own_lease(self):
        self.say(ALICE, "hi")
        lane, first = self.lane(ALICE), self.claim()
        self.expire_lease()
        second = self.claim()
        self.expire_lease()

        self.assertFalse(lanes.renew(lane.pk, first))
        self.assertTrue(Lane.objects.filter(lease_until__lt=DbNow()).exists())
        self.assertTrue(lanes.renew(lane.pk, second))
        self.assertTrue(Lane.objects.filter(lease_until__gt=DbNow()).exists())

    def test_it_goes_by_the_clock_of_the_database(self):
        """A worker whose own clock is a day ahead takes nobody's lease and no lane before its time."""
        self.say(ALICE, "hi")
        self.claim()
        with time_machine.travel(timezone.now() + timedelta(days=1)):
            stolen = lanes.claim(self.lane(ALICE).pk)
            woken = lanes.wake_due(10)

        self.assertIsNone(stolen)
        self.assertEqual(woken, [])

    def test_it_ends_what_outlives_the_deadline(self):
        """The turn fails with a word to the chat, the lane is free, and the late answer is dropped."""

        def think(messages):
            lane = self.lane(ALICE)
            assert lane.token is not None
            memory_turns.expire(lane.pk, lane.token, text="too long")
            return "here I am, at last"

        self.model.enqueue(think)
        self.say(ALICE, "hi")
        self.run_lane()

        self.assertEqual(
            self.lines(ALICE), [("user", "hi", "failed"), ("assistant", "too long", "done")]
        )
        self.assertEqual(Delivery.objects.get().parts[0]["text"], "too long")
        self.assertIsNone(self.lane(ALICE).token)
        self.assertEqual(self.turn("hi").answered_by, self.turn("too long"))

    def test_it_lets_nobody_else_end_a_turn(self):
        """A deadline that comes after the lane was lost ends nothing."""
        self.say(ALICE, "hi")
        token = self.claim()
        memory_turns.take(self.lane(ALICE).pk, token)
        self.expire_lease()
        self.claim()

        memory_turns.expire(self.lane(ALICE).pk, token, text="too long")

        self.assertEqual(self.states("hi"), ["running"])
        self.assertEqual(self.answers(ALICE), [])


class Rounds(threading.Event):
    """The work is done when it was asked about for the last time: no clock."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.left = rounds

    def wait(self, timeout: float | None = None) -> bool:
        self.left -= 1
        return self.left < 0


class KeeperTests(CommittedLaneTestCase):
    """The keeper has a connection of its own, which it closes."""

    def keep(self, token, *, rounds: int = 1, deadline_s: float = 240) -> Rounds:
        done = Rounds(rounds)
        turns._keep(self.lane(ALICE).pk, token, done, every_s=10, deadline_s=deadline_s)
        return done

    def test_it_keeps_the_lease_then_the_deadline(self):
        self.say(ALICE, "hi")
        token = self.claim()
        memory_turns.take(self.lane(ALICE).pk, token)

        with self.subTest("renewed while the work goes on"):
            self.expire_lease()
            self.keep(token)
            self.assertTrue(Lane.objects.filter(lease_until__gt=DbNow()).exists())

        with self.subTest("given up when somebody else has the lane"):
            self.expire_lease()
            thief = self.claim()
            done = self.keep(token, rounds=100)
            self.assertEqual(done.left, 99)

        with self.subTest("ended at the deadline"):
            self.keep(thief, rounds=100, deadline_s=0)
            self.assertEqual(self.states("hi"), ["failed"])
            self.assertEqual(self.answers(ALICE), [turns.TOOK_TOO_LONG])
            self.assertIsNone(self.lane(ALICE).token)

    def test_it_stays_within_the_queue_s_time_out(self):
        from django.conf import settings

        self.assertLess(turns.DEADLINE_S, settings.TASK_TIMEOUT)
        self.assertLess(turns.RENEW_EVERY_S * 2, lanes.LEASE.total_seconds())
        self.assertLess(lanes.LEASE, HOUR)
