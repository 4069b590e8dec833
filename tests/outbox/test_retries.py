"""D4: what is tried again, when, and what it holds up meanwhile."""

from channels_app.channels import SendError
from channels_app.models import Delivery, DeliveryState
from nahida.ops.ticker import tick
from tests.base import ALICE, BOB, GROUP
from tests.outbox.stage import (
    HOUR,
    NOT_SENT,
    OTHER_TOPIC,
    REFUSED,
    TIMED_OUT,
    TOPIC,
    OutboxTestCase,
)

PENDING, SENT = DeliveryState.PENDING, DeliveryState.SENT


def rate_limit(seconds: float) -> SendError:
    return SendError(f"Too Many Requests: retry after {seconds}", retry_after=seconds)


class RetryTests(OutboxTestCase):
    def test_it_tries_again_when_the_request_never_left(self):
        one = self.post()
        self.plan(NOT_SENT)

        self.deliver(one)
        self.assertEqual((self.state(one), one.error), (PENDING, "connection refused"))
        self.assertIsNone(one.token)
        self.deliver(one)
        self.assertEqual(self.sent(ALICE), [])
        self.make_due(one)
        self.deliver(one)

        self.assertEqual(self.sent(ALICE), ["hello"])

    def test_it_waits_longer_after_each_failure_but_never_for_ever(self):
        one = self.post()
        waits = []
        for _ in range(12):
            self.make_due(one)
            self.plan(NOT_SENT)
            self.deliver(one)
            waits.append(round(self.waits_s(one)))

        self.assertEqual(waits[:5], [2, 4, 8, 16, 32])
        self.assertEqual(waits[-1], 300)

    def test_it_survives_any_number_of_attempts(self):
        one = self.post()
        self.set(one, attempts=100_000)
        self.plan(NOT_SENT)

        self.deliver(one)

        self.assertEqual(self.state(one), PENDING)
        self.assertAlmostEqual(self.waits_s(one), 300, delta=5)

    def test_it_does_not_try_again_what_may_have_arrived(self):
        """A 5xx, a cut or timed-out answer, an error of our own: nobody knows."""
        for error in (TIMED_OUT, SendError("502 Bad Gateway"), KeyError("message_id")):
            with self.subTest(error):
                one = self.post()
                self.plan(error)

                self.deliver(one)

                self.assertEqual(self.state(one), DeliveryState.UNKNOWN)
                self.assertIn(str(error), one.error)

    def test_it_does_not_try_again_what_is_refused(self):
        one, behind = self.post("first"), self.post("second")
        self.plan(REFUSED)

        self.deliver(one, behind)

        self.assertEqual(self.states(one, behind), [DeliveryState.FAILED, SENT])
        self.assertEqual(one.error, "message is not accepted")

    def test_it_fails_what_goes_to_a_channel_nobody_configured(self):
        one = self.post()
        self.set(one, address="gone:private:10001")

        self.deliver(one)

        self.assertEqual(self.state(one), DeliveryState.FAILED)
        self.assertIn('no channel "gone"', one.error)


class RateLimitTests(OutboxTestCase):
    def test_it_waits_as_long_as_it_is_told(self):
        """Not in a worker that sleeps, but in the row."""
        one = self.post()
        self.plan(rate_limit(900))

        self.deliver(one)
        tick()
        self.deliver(one)

        self.assertEqual(self.state(one), PENDING)
        self.assertAlmostEqual(self.waits_s(one), 900, delta=5)
        self.assertEqual(self.sent(ALICE), [])

    def test_it_waits_at_most_until_it_would_give_up(self):
        one = self.post()
        self.plan(rate_limit(1e15))

        self.deliver(one)

        self.assertAlmostEqual(self.waits_s(one), 24 * 3600, delta=5)

    def test_it_leaves_the_whole_chat_alone(self):
        """The limit is the chat's: its other topics wait, other chats and accounts do not."""
        one, other_topic = self.post(to=TOPIC), self.post(to=OTHER_TOPIC)
        general, private = self.post(to=GROUP), self.post(to=ALICE)
        elsewhere = self.post(to=BOB)
        self.plan(rate_limit(41))

        self.deliver(one, other_topic, general, private, elsewhere)

        self.assertEqual(self.states(one, other_topic, general), [PENDING] * 3)
        self.assertEqual(self.states(private, elsewhere), [SENT, SENT])
        for waiting in (one, other_topic, general):
            self.assertAlmostEqual(self.waits_s(waiting), 41, delta=5)

    def test_it_never_shortens_a_longer_wait(self):
        one, other_topic = self.post(to=TOPIC), self.post(to=OTHER_TOPIC)
        self.plan(rate_limit(900), rate_limit(41))
        self.deliver(other_topic)
        self.make_due(one)

        self.deliver(one)

        self.assertAlmostEqual(self.waits_s(other_topic), 900, delta=5)

    def test_it_holds_back_what_is_posted_during_the_pause(self):
        one = self.post(to=TOPIC)
        self.plan(rate_limit(41))
        self.deliver(one)

        late, free = self.post(to=OTHER_TOPIC), self.post(to=ALICE)
        self.deliver(late, free)

        self.assertEqual(self.states(late, free), [PENDING, SENT])
        self.assertAlmostEqual(self.waits_s(late), 41, delta=5)

    def test_it_pauses_the_chat_for_one_that_was_late_itself(self):
        one, other_topic = self.post(to=TOPIC), self.post(to=OTHER_TOPIC)

        self.finish_late(one, then=rate_limit(41))

        self.assertEqual(self.state(one), DeliveryState.UNKNOWN)
        self.assertAlmostEqual(self.waits_s(other_topic), 41, delta=5)

    def test_it_sends_in_order_after_the_pause(self):
        posted = [self.post(str(number)) for number in range(3)]
        self.plan(rate_limit(41))
        self.deliver(*posted)
        Delivery.objects.update(next_attempt_at=posted[0].created_at - HOUR)

        self.work()

        self.assertEqual(self.sent(ALICE), ["0", "1", "2"])
