"""R6: a wake-up that was lost, came twice or found nobody is made up for."""

from datetime import timedelta

from django.db import transaction

from channels_app.clock import DbNow
from nahida import queue
from nahida.ops import ticker
from sessions_app import lanes
from sessions_app.models import Lane
from tests.base import ALICE, BOB
from tests.lanes.stage import HOUR, Killed, LaneTestCase, meanwhile


class TickerTests(LaneTestCase):
    def test_it_makes_up_for_a_lost_wake_up(self):
        """The message is stored and the process dies before the queue is told."""
        self.say(ALICE, "hi")
        self.woken.clear()

        ticker.tick()

        self.assertEqual(self.woken, [(queue.RUN_LANE, self.lane(ALICE).pk)])

    def test_it_wakes_once_in_half_a_minute(self):
        self.say(ALICE, "hi")

        first = lanes.wake_due(10)
        at_once = lanes.wake_due(10)
        self.age_wake_up(by=timedelta(seconds=29))
        soon = lanes.wake_due(10)
        self.age_wake_up(by=timedelta(seconds=2))
        later = lanes.wake_due(10)

        lane = self.lane(ALICE).pk
        self.assertEqual([first, at_once, soon, later], [[lane], [], [], [lane]])

    def test_it_leaves_lanes_alone_that_somebody_works_on(self):
        self.say(ALICE, "hi")
        self.claim()

        working = lanes.wake_due(10)
        self.expire_lease()
        left = lanes.wake_due(10)

        self.assertEqual((working, left), ([], [self.lane(ALICE).pk]))

    def test_it_leaves_lanes_alone_that_sleep_or_wait(self):
        self.say(ALICE, "hi")
        self.say(BOB, "hi too")
        self.put_off(ALICE)
        Lane.objects.filter(pk=self.lane(BOB).pk).update(wake_at=None)

        self.assertEqual(lanes.wake_due(10), [])

    def test_it_shares_the_work_with_other_tickers(self):
        """Another ticker is quicker by the moment between looking and marking."""
        self.say(ALICE, "hi")

        def other() -> None:
            Lane.objects.update(woken_at=DbNow())

        with meanwhile('UPDATE "sessions_app_lane"', other):
            woken = lanes.wake_due(10)

        self.assertEqual(woken, [])

    def test_it_takes_no_more_than_it_is_told_the_longest_waiting_first(self):
        self.say(ALICE, "hi")
        self.say(BOB, "hi too")
        self.put_off(BOB, by=-2 * HOUR)

        self.assertEqual(lanes.wake_due(1), [self.lane(BOB).pk])

    def test_it_finds_nothing_to_do_when_woken_twice(self):
        """A wake-up that comes double, early or for nothing changes nothing."""
        self.model.enqueue("hello")
        self.say(ALICE, "hi")

        for _ in range(3):
            self.run_lane()

        self.assertEqual(self.answers(ALICE), ["hello"])

    def test_it_serves_a_message_whose_process_died_after_commit(self):
        """on_commit never ran: the ticker's wake-up is enough for an answer."""

        def die() -> None:
            raise Killed

        self.model.enqueue("hello")
        transaction_ends = self.captureOnCommitCallbacks(execute=True)
        with self.assertRaises(Killed), transaction_ends, transaction.atomic():
            transaction.on_commit(die)
            self.say(ALICE, "hi")
        told = list(self.woken)
        ticker.tick()
        for _, lane in self.woken:
            self.assertEqual(lane, self.lane(ALICE).pk)
            self.run_lane()

        self.assertEqual(told, [])
        self.assertEqual(self.answers(ALICE), ["hello"])
