"""D2: what may have left is never repeated by itself."""

from channels_app import outbox
from channels_app.clock import DbNow
from channels_app.models import Delivery, DeliveryState
from nahida.agent.delivery import send_rest
from nahida.ops.ticker import tick
from tests.base import ALICE
from tests.fakes.channel import FakeChannel
from tests.outbox.stage import (
    HOUR,
    NOT_SENT,
    REFUSED,
    TIMED_OUT,
    Killed,
    OutboxTestCase,
    before_update,
    die,
)

PENDING, UNKNOWN, SENT = DeliveryState.PENDING, DeliveryState.UNKNOWN, DeliveryState.SENT


class LeaseTests(OutboxTestCase):
    def test_it_says_that_it_is_sending_before_the_request_leaves(self):
        one = self.post()
        seen: list[tuple[str, bool]] = []

        def look(message: object) -> None:
            row = Delivery.objects.get(pk=one.pk)
            leased = Delivery.objects.filter(pk=one.pk, lease_until__gt=DbNow()).exists()
            seen.append((row.state, leased))

        self.plan(look)
        self.deliver(one)

        self.assertEqual(seen, [(DeliveryState.SENDING, True)])
        self.assertEqual(self.state(one), SENT)
        self.assertEqual(one.message_ids, ["fake-1"])

    def test_it_renews_the_lease_before_each_part(self):
        """A part that took a minute leaves the next one a minute of its own."""
        one = self.post_parts("a", "b")
        left: list[bool] = []

        def take_long(message: object) -> None:
            self.set(one, lease_until=DbNow() - HOUR)

        def look(message: object) -> None:
            left.append(Delivery.objects.filter(pk=one.pk, lease_until__gt=DbNow()).exists())

        self.plan(take_long, look)
        self.deliver(one)

        self.assertEqual(left, [True])
        self.assertEqual(self.state(one), SENT)

    def test_it_gives_a_claimed_one_back_when_its_worker_died(self):
        """Nothing had left, so it waits again, free for the next worker."""
        one = self.post()
        outbox.wake_due(10)
        outbox.claim(one.pk)
        tick()
        self.assertEqual(self.state(one), DeliveryState.CLAIMED)

        self.expire_lease(one)

        self.assertEqual(self.state(one), PENDING)
        self.assertIsNone(one.token)
        self.assertIsNone(one.woken_at)
        self.deliver(one)
        self.assertEqual(self.sent(ALICE), ["hello"])

    def test_it_does_not_know_what_became_of_one_that_was_out(self):
        """It keeps the token: the worker may be late, not dead."""
        one, behind = self.post("first"), self.post("second")
        self.plan(die)
        with self.assertRaises(Killed):
            self.deliver(one)
        self.deliver(behind)
        self.assertEqual(self.states(one, behind), [DeliveryState.SENDING, PENDING])

        self.expire_lease(one)

        self.assertEqual(self.state(one), UNKNOWN)
        self.assertIsNotNone(one.token)
        self.work()
        tick()
        self.assertEqual(self.state(one), UNKNOWN)
        self.assertEqual(self.sent(ALICE), ["second"])

    def test_it_never_sends_an_unknown_one_by_itself(self):
        one = self.post()
        self.plan(TIMED_OUT)
        self.deliver(one)
        self.make_due(one)

        for _ in range(3):
            tick()
            self.deliver(one)

        self.assertEqual(self.state(one), UNKNOWN)
        self.assertEqual(self.sent(ALICE), [])

    def test_it_sends_no_part_behind_an_unknown_one(self):
        one, behind = self.post_parts("a", "b", "c"), self.post("z")
        self.plan(lambda message: None, TIMED_OUT)

        self.deliver(one, behind)

        self.assertEqual(self.letters(), "az")
        self.assertEqual((self.state(one), one.next_part), (UNKNOWN, 1))

    def test_it_stops_when_the_lease_ran_out_between_two_parts(self):
        """A worker that lost its row before the second part does not send it."""
        one = self.post_parts("a", "b")

        with before_update(4, lambda: self.expire_lease(one)):
            self.deliver(one)

        self.assertEqual((self.state(one), one.next_part), (UNKNOWN, 1))
        self.assertEqual(self.letters(), "a")

    def test_it_survives_a_death_at_every_step(self):
        """What died before anything had left is sent by the next worker, anything later is listed; nothing leaves twice."""
        fates = {1: ("ab", SENT), 2: ("ab", SENT), 3: ("a", UNKNOWN), 4: ("a", UNKNOWN)}
        fates[5] = ("ab", UNKNOWN)
        for step, (arrived, state) in fates.items():
            with self.subTest(step):
                FakeChannel.reset_all()
                one = self.post_parts("a", "b")

                with before_update(step, die), self.assertRaises(Killed):
                    self.deliver(one)
                self.expire_lease(one)
                self.work()

                self.assertEqual((self.letters(), self.state(one)), (arrived, state))


class LateOutcomeTests(OutboxTestCase):
    def test_it_ends_as_sent(self):
        one = self.post()

        self.finish_late(one)

        self.assertEqual(self.state(one), SENT)
        self.assertEqual(one.message_ids, ["fake-1"])

    def test_it_ends_as_failed(self):
        one = self.post()

        self.finish_late(one, then=REFUSED)

        self.assertEqual(self.state(one), DeliveryState.FAILED)

    def test_it_counts_the_part_and_sends_no_other(self):
        one = self.post_parts("a", "b")

        self.finish_late(one)

        self.assertEqual((self.state(one), one.next_part), (UNKNOWN, 1))
        self.assertEqual(self.letters(), "a")

    def test_it_never_waits_again(self):
        """The next delivery has gone meanwhile: one that came back would stand behind it."""
        one = self.post()

        self.finish_late(one, then=NOT_SENT)
        self.work()

        self.assertEqual(self.state(one), UNKNOWN)
        self.assertEqual(self.sent(ALICE), [])

    def test_it_says_nothing_about_a_row_that_another_worker_has(self):
        one = self.post()

        def lose(message: object) -> None:
            self.set(one, state=PENDING, token=None, lease_until=None)
            outbox.claim(one.pk)

        self.plan(lose)
        self.deliver(one)

        self.assertEqual(self.state(one), DeliveryState.CLAIMED)


class SendRestTests(OutboxTestCase):
    def test_it_sends_the_rest_at_the_tail(self):
        """The owner asks for it: the unknown part and those behind it, behind what waits now."""
        one = self.post_parts("a", "b", "c", reply_to="7")
        self.plan(lambda message: None, TIMED_OUT)
        self.deliver(one)
        waiting = self.post("z")

        rest = send_rest(one)
        self.deliver(rest)
        self.assertEqual(self.letters(), "a")
        self.deliver(waiting, rest)

        self.assertEqual(self.letters(), "azbc")
        self.assertEqual(self.states(one, rest), [UNKNOWN, SENT])
        self.assertEqual([message.reply_to for message in self.messages(ALICE)], ["7", "", "", ""])

    def test_it_sees_parts_that_arrived_late(self):
        """The owner's page is a minute old: what has arrived since is not sent again."""
        one = self.post_parts("a", "b")
        self.set(one, state=UNKNOWN)
        stale = Delivery.objects.get(pk=one.pk)
        self.set(one, next_part=1)

        self.deliver(send_rest(stale))

        self.assertEqual(self.letters(), "b")

    def test_it_sends_the_rest_once(self):
        """Pressed twice, the button sends nothing twice."""
        one = self.post()
        self.set(one, state=UNKNOWN)
        rest = send_rest(one)

        with self.assertRaisesMessage(ValueError, f"as delivery {rest.pk}"):
            send_rest(one)

    def test_it_refuses_while_the_delivery_may_still_go_out(self):
        one = self.post()

        for state in (PENDING, DeliveryState.CLAIMED, DeliveryState.SENDING, SENT):
            with self.subTest(state), self.assertRaisesMessage(ValueError, state):
                self.set(one, state=state)
                send_rest(one)
