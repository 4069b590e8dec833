"""R11: an error that the worker survives puts the batch back for a while; the third ends it with a word."""

from datetime import timedelta

from channels_app.clock import DbNow
from memory_app.models import ModelCall
from memory_app.turns import GAVE_UP
from nahida.agent import turns
from nahida.agent.vocabulary import ModelError
from sessions_app import lanes
from sessions_app.models import Lane
from tests.base import ALICE
from tests.fakes.model import ScriptedModel
from tests.lanes.stage import LaneTestCase


def down(retry_after: float | None = None) -> ModelError:
    return ModelError("down", kind="unavailable", retry_after=retry_after)


class ModelDownTests(LaneTestCase):
    def waits(self, *, at_least: float, at_most: float) -> bool:
        """Is the lane put off by a time between the two, in seconds?"""
        early, late = DbNow() + timedelta(seconds=at_least), DbNow() + timedelta(seconds=at_most)
        return Lane.objects.filter(wake_at__gt=early, wake_at__lt=late).exists()

    def test_it_puts_the_batch_back_for_a_while(self):
        self.model.enqueue(down())
        self.say(ALICE, "hi")
        self.run_lane()

        turn, lane = self.turn("hi"), self.lane(ALICE)
        self.assertEqual((turn.state, turn.batch, turn.attempt), ("pending", turn.pk, 1))
        self.assertEqual((lane.token, lane.woken_at), (None, None))
        self.assertEqual(self.woken, [])
        self.assertTrue(self.waits(at_least=3, at_most=6))
        self.assertEqual(self.sent(ALICE), [])
        self.assertEqual(lanes.wake_due(10), [])

    def test_it_waits_longer_the_second_time(self):
        self.model.enqueue(down(), down())
        self.say(ALICE, "hi")
        self.run_lane()
        self.make_due()
        self.run_lane()

        self.assertTrue(self.waits(at_least=25, at_most=31))

    def test_it_ends_with_a_word_the_third_time(self):
        self.model.enqueue(down(), down(), down())
        self.say(ALICE, "hi")
        for _ in range(3):
            self.make_due()
            self.run_lane()
        self.work()

        self.assertEqual(self.states("hi"), ["failed"])
        self.assertEqual(self.sent(ALICE), [turns.MODEL_IS_DOWN])
        self.assertEqual(self.turn("hi").answered_by, self.turn(turns.MODEL_IS_DOWN))
        self.assertIsNone(self.lane(ALICE).wake_at)
        self.assertEqual(ModelCall.objects.count(), 3)

    def test_it_answers_when_the_model_is_back(self):
        self.model.enqueue(down(), "here I am")
        self.say(ALICE, "hi")
        self.run_lane()
        self.make_due()
        self.work()

        self.assertEqual(
            self.lines(ALICE), [("user", "hi", "done"), ("assistant", "here I am", "done")]
        )

    def test_it_waits_as_long_as_the_provider_says(self):
        self.model.enqueue(down(retry_after=100))
        self.say(ALICE, "hi")
        self.run_lane()

        self.assertTrue(self.waits(at_least=98, at_most=101))

    def test_it_waits_no_longer_than_a_person_would(self):
        self.model.enqueue(down(retry_after=86_400))
        self.say(ALICE, "hi")
        self.run_lane()

        self.assertTrue(self.waits(at_least=200, at_most=301))

    def test_it_is_not_hurried_by_later_messages(self):
        """They wait behind the batch, keep its time, and are answered after it."""
        self.model.enqueue(down(), "to one", "to two")
        self.say(ALICE, "one")
        self.run_lane()
        planned = self.lane(ALICE).wake_at
        self.say(ALICE, "two")
        kept = self.lane(ALICE).wake_at
        self.run_lane()
        early = self.answers(ALICE)
        self.make_due()
        self.work()

        self.assertEqual(kept, planned)
        self.assertEqual(early, [])
        self.assertEqual(self.answers(ALICE), ["to one", "to two"])

    def test_it_does_not_wait_for_what_will_not_change(self):
        for kind, notice in (
            ("refused", turns.REFUSED),
            ("misconfigured", turns.NO_MODEL),
            ("budget", turns.BUDGET_SPENT),
        ):
            with self.subTest(kind=kind):
                self.model.enqueue(ModelError("no", kind=kind))  # type: ignore[arg-type]
                self.say(ALICE, kind)
                self.work()

                self.assertEqual(self.states(kind), ["failed"])
                self.assertEqual(self.sent(ALICE)[-1], notice)

    def test_it_puts_back_what_broke_of_itself(self):
        """A fault of ours is no reason to lose a message: it is tried again, and then told."""
        self.model.enqueue(ZeroDivisionError(), ZeroDivisionError(), ZeroDivisionError())
        self.say(ALICE, "hi")
        for _ in range(3):
            self.make_due()
            with self.assertLogs("nahida.agent.turns", "ERROR"):
                self.run_lane()
        self.work()

        self.assertEqual(self.sent(ALICE), [GAVE_UP])

    def test_it_puts_nothing_back_after_the_lane_was_lost(self):
        """The error comes to a holder who was overtaken: the other's answer stands."""
        quick = ScriptedModel("quick")

        def overtake(messages):
            self.expire_lease()
            self.run_lane(model=quick)
            return down()

        self.model.enqueue(overtake)
        self.say(ALICE, "hi")
        self.run_lane()

        self.assertEqual(
            self.lines(ALICE), [("user", "hi", "done"), ("assistant", "quick", "done")]
        )
        self.assertIsNone(self.lane(ALICE).wake_at)
