"""D1: deliveries of one address go out one after the other, in order."""

import random
import threading
from datetime import timedelta

from django.db import connection

from channels_app import outbox
from channels_app.clock import DbNow
from channels_app.models import Delivery, DeliveryState
from nahida.agent import delivery
from nahida.ops.ticker import tick
from tests.base import ALICE, BOB, GROUP
from tests.outbox.stage import TOPIC, CommittedOutboxTestCase, OutboxTestCase

UNFINISHED = (DeliveryState.PENDING, DeliveryState.CLAIMED, DeliveryState.SENDING)
FINAL = (DeliveryState.SENT, DeliveryState.FAILED, DeliveryState.UNKNOWN)


class OrderTests(OutboxTestCase):
    def test_it_holds_back_what_stands_behind_an_unfinished_one(self):
        for state in UNFINISHED:
            with self.subTest(state):
                first, second = self.post(), self.post()
                self.set(first, state=state)

                self.deliver(second)

                self.assertEqual(self.state(second), DeliveryState.PENDING)
                self.assertEqual(self.sent(ALICE), [])
                Delivery.objects.update(state=DeliveryState.SENT)

    def test_it_lets_the_next_one_go_behind_a_finished_one(self):
        for state in FINAL:
            with self.subTest(state):
                first, second = self.post("first"), self.post(f"behind {state}")
                self.set(first, state=state)

                self.deliver(second)

                self.assertEqual(self.sent(ALICE)[-1], f"behind {state}")

    def test_it_holds_back_no_other_address(self):
        """Another chat, a chat of the same number and a topic of it each have a queue of their own."""
        stuck = self.post(to=GROUP)
        self.set(stuck, state=DeliveryState.SENDING)

        self.deliver(self.post(to=ALICE), self.post(to=BOB), self.post(to=TOPIC))

        self.assertEqual([len(self.sent(to)) for to in (ALICE, BOB, TOPIC, GROUP)], [1, 1, 1, 0])

    def test_it_sends_in_order_when_woken_out_of_order(self):
        posted = [self.post(str(number)) for number in range(4)]

        for one in [*reversed(posted), *reversed(posted), *posted]:
            self.deliver(one)

        self.assertEqual(self.sent(ALICE), ["0", "1", "2", "3"])

    def test_it_wakes_heads_only_and_each_once(self):
        """A wake-up is repeated after 30 seconds, in case it was lost."""
        first, other = self.post(), self.post(to=BOB)
        self.post()

        woken = outbox.wake_due(10)

        self.assertEqual(sorted(woken), [first.pk, other.pk])
        self.assertEqual(outbox.wake_due(10), [])
        self.set(first, woken_at=DbNow() - timedelta(seconds=31))
        self.assertEqual(outbox.wake_due(10), [first.pk])

    def test_it_fails_a_head_that_nobody_took_for_a_day(self):
        """The next one then has its turn, and a younger one keeps waiting."""
        old, young = self.post("old"), self.post("young")
        other = self.post("other", to=BOB)
        self.set(old, created_at=DbNow() - timedelta(hours=24, minutes=1))
        self.set(other, created_at=DbNow() - timedelta(hours=23, minutes=59))

        tick()
        self.deliver(young)

        self.assertEqual(self.state(old), DeliveryState.FAILED)
        self.assertIn("24 hours", old.error)
        self.assertEqual(self.state(other), DeliveryState.PENDING)
        self.assertEqual(self.sent(ALICE), ["young"])

    def test_it_never_fails_an_old_one_that_is_out(self):
        one = self.post()
        self.set(
            one,
            created_at=DbNow() - timedelta(hours=25),
            state=DeliveryState.SENDING,
            lease_until=DbNow() + timedelta(minutes=1),
        )

        tick()

        self.assertEqual(self.state(one), DeliveryState.SENDING)


class ManyWorkersTests(CommittedOutboxTestCase):
    def test_it_sends_in_order_and_once_with_four_workers(self):
        """Four workers are woken for random rows of two chats; neither chat sees one twice or out of order."""
        posted = [self.post(str(n), to=to) for n in range(12) for to in (ALICE, BOB)]
        out: list[str] = []
        for _ in posted:
            self.plan(lambda message: out.append(str(message.address)))
        failures: list[BaseException] = []

        def work(seed: int) -> None:
            chance = random.Random(seed)
            waiting = [one.pk for one in posted]
            try:
                while waiting := list(
                    Delivery.objects.filter(pk__in=waiting, state__in=UNFINISHED).values_list(
                        "pk", flat=True
                    )
                ):
                    delivery.deliver(chance.choice(waiting))
            except BaseException as error:
                failures.append(error)
            finally:
                connection.close()

        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)

        self.assertEqual(failures, [])
        for to in (ALICE, BOB):
            self.assertEqual(self.sent(to), [str(n) for n in range(12)])
        self.assertEqual(len(out), 24)
