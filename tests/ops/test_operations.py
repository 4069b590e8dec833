"""Long work goes on slice by slice, whoever does it, and its row says how far it is."""

import uuid
from collections.abc import Iterator
from datetime import timedelta

from django.test import TransactionTestCase
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.signing import SignedPackage

from channels_app.clock import DbNow
from nahida.ops import operations
from nahida.ops.models import Operation
from nahida.ops.operations import Work
from nahida.ops.programs import forget_wake_ups
from nahida.ops.ticker import tick

MINUTE = timedelta(minutes=1)


class OperationTests(TransactionTestCase):
    def setUp(self) -> None:
        self.steps: list[int] = []
        self.broker = get_broker()
        self.broker.purge_queue()

    def next_task(self) -> str:
        [(_, package)] = self.broker.dequeue()
        task: dict[str, str] = SignedPackage.loads(package)
        return task["func"]

    def start(self, total: int = 3) -> Operation:
        return operations.start("count", total=total, subject={"to": total}, by="alice")

    def count(self, operation: Operation) -> Iterator[str]:
        for step in range(operation.done, operation.subject["to"]):
            self.steps.append(step)
            yield "odd" if step % 2 else "even"

    def run_slice(
        self, operation: Operation, *, work: Work | None = None, slice_s: float = 60
    ) -> None:
        operations.run(operation.pk, works={"count": work or self.count}, slice_s=slice_s)
        operation.refresh_from_db()

    def test_it_wakes_a_worker_when_it_begins(self):
        self.start()

        self.assertEqual(self.next_task(), "nahida.tasks.run_operation")

    def test_it_does_all_steps_and_counts_what_came_of_them(self):
        operation = self.start()

        self.run_slice(operation)

        self.assertEqual((operation.state, operation.done), ("done", 3))
        self.assertEqual(operation.result["counts"], {"even": 2, "odd": 1})
        self.assertEqual((operation.token, operation.wake_at), (None, None))
        self.assertIsNotNone(operation.finished_at)

    def test_it_goes_on_where_the_slice_ended(self):
        operation = self.start()

        for number in (1, 2, 3):
            self.run_slice(operation, slice_s=0)
            self.assertEqual((operation.state, operation.done), ("running", number))
        self.run_slice(operation)

        self.assertEqual((operation.state, self.steps), ("done", [0, 1, 2]))
        self.assertEqual(self.broker.queue_size(), 4)

    def test_it_is_done_by_one_worker_at_a_time(self):
        operation = self.start()

        def interrupted(operation: Operation) -> Iterator[str]:
            self.run_slice(operation)  # a second worker, woken meanwhile
            yield from self.count(operation)

        self.run_slice(operation, work=interrupted)

        self.assertEqual((operation.state, self.steps), ("done", [0, 1, 2]))

    def test_it_is_taken_over_when_its_worker_was_lost(self):
        operation = self.start()
        self.run_slice(operation, slice_s=0)
        Operation.objects.update(token=uuid.uuid4(), lease_until=DbNow() + MINUTE)
        self.run_slice(operation)
        self.assertEqual(operation.done, 1)

        Operation.objects.update(lease_until=DbNow() - MINUTE)
        self.run_slice(operation)

        self.assertEqual((operation.state, self.steps), ("done", [0, 1, 2]))

    def test_it_stops_when_another_worker_has_it(self):
        operation = self.start()

        def overtaken(operation: Operation) -> Iterator[str]:
            for outcome in self.count(operation):
                Operation.objects.update(token=uuid.uuid4())
                yield outcome

        self.run_slice(operation, work=overtaken)

        self.assertEqual((operation.state, operation.done, self.steps), ("running", 0, [0]))

    def test_it_says_why_it_failed(self):
        operation = self.start()

        def broken(operation: Operation) -> Iterator[str]:
            yield "even"
            raise ValueError("no more room")

        with self.assertLogs("nahida.ops.operations", "ERROR"):
            self.run_slice(operation, work=broken)

        self.assertEqual((operation.state, operation.done), ("failed", 1))
        self.assertEqual(operation.error, "ValueError: no more room")
        self.assertIsNone(operation.wake_at)

    def test_it_keeps_what_is_to_be_remembered(self):
        operation = self.start()
        operations.remember(operation, backup="a")
        operations.remember(operation, rows=3)

        self.run_slice(operation)

        self.assertEqual((operation.result["backup"], operation.result["rows"]), ("a", 3))

    def test_it_is_woken_again_when_the_wake_up_was_lost(self):
        operation = self.start()
        self.broker.purge_queue()

        tick()
        tick()

        self.assertEqual(self.broker.queue_size(), 1)
        Operation.objects.update(woken_at=timezone.now() - MINUTE)
        tick()
        self.assertEqual(self.broker.queue_size(), 2)
        self.run_slice(operation)
        tick()
        self.assertEqual(self.broker.queue_size(), 2)

    def test_it_is_woken_at_once_when_the_workers_start_anew(self):
        self.start()
        tick()
        self.broker.purge_queue()

        forget_wake_ups()
        tick()

        self.assertEqual(self.broker.queue_size(), 1)
