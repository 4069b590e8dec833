"""What the tests of the outbox add to the stage: deliveries posted by hand, leases that run out, clocks that are moved."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection, transaction

from channels_app import outbox
from channels_app.addresses import ChatAddress
from channels_app.channels import Refused, SendError
from channels_app.clock import DbNow
from channels_app.messages import Attachment
from channels_app.models import Delivery, DeliveryState
from nahida.agent import delivery
from sessions_app import lanes
from tests.base import ALICE, CommittedTestCase, NahidaTestCase, Stage

TOPIC = ChatAddress("fake", "group", "10001", "5")
OTHER_TOPIC = TOPIC.with_thread("6")
HOUR = timedelta(hours=1)

NOT_SENT = SendError("connection refused", not_sent=True)
TIMED_OUT = SendError("no answer within 30 s")
REFUSED = SendError("message is not accepted", permanent=True)
BLOCKED = SendError("the bot was blocked by the user", unreachable=True)
BAD_MARKUP = SendError("can't parse entities", refused=Refused.MARKUP)


class Killed(BaseException):
    """The worker's process ends here: nothing that catches errors sees it."""


def die(message: object = None) -> None:
    raise Killed


@contextmanager
def before_update(
    number: int, act: Callable[[], object], *, begins: str = 'UPDATE "channels_app_delivery"'
) -> Iterator[None]:
    """Let something happen just before the outbox writes to its row for the `number`th time.

    A delivery of two parts is written to as it is claimed (1), before and after its first part (2, 3), and so on (4, 5).
    """
    left = [number]

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(begins) and left[0]:
            left[0] -= 1
            if not left[0]:
                act()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        yield
    assert not left[0], f"nothing happened: {left[0]} statements too few"


class OutboxStage(Stage):
    def post(
        self,
        text: str = "hello",
        *,
        to: ChatAddress = ALICE,
        files: Sequence[Attachment] = (),
        reply_to: str = "",
    ) -> Delivery:
        with transaction.atomic():
            lane = lanes.lock(to)
            posted = outbox.post(lane.address, text, files=files, reply_to=reply_to)
        assert posted is not None
        return posted

    def post_parts(self, *letters: str, to: ChatAddress = ALICE, reply_to: str = "") -> Delivery:
        """Post a text so long that each letter fills a part of its own."""
        text = "\n\n".join(letter * 3900 for letter in letters)
        posted = self.post(text, to=to, reply_to=reply_to)
        assert len(posted.parts) == len(letters)
        return posted

    def letters(self, to: ChatAddress = ALICE) -> str:
        """Return what of `post_parts` the platform was handed, a letter a part."""
        return "".join(text[0] for text in self.sent(to))

    def plan(self, *steps: object, channel: str = "fake") -> None:
        self.platform(channel).plan.extend(steps)  # type: ignore[arg-type]

    def deliver(self, *deliveries: Delivery) -> None:
        for one in deliveries:
            delivery.deliver(one.pk)

    def state(self, one: Delivery) -> str:
        one.refresh_from_db()
        return one.state

    def states(self, *deliveries: Delivery) -> list[str]:
        return [self.state(one) for one in deliveries]

    def set(self, one: Delivery, **changes: object) -> None:
        Delivery.objects.filter(pk=one.pk).update(**changes)

    def expire_lease(self, one: Delivery) -> None:
        self.set(one, lease_until=DbNow() - HOUR)
        outbox.sweep()

    def make_due(self, *deliveries: Delivery) -> None:
        for one in deliveries:
            self.set(one, next_attempt_at=DbNow() - HOUR)

    def waits_s(self, one: Delivery) -> float:
        """Return for how many seconds a delivery is put off."""
        row = Delivery.objects.annotate(now=DbNow()).get(pk=one.pk)
        return (row.next_attempt_at - row.now).total_seconds()

    def finish_late(self, one: Delivery, *, then: object = None) -> None:
        """Send a delivery whose lease runs out while its first request is out, which then ends as `then` says."""

        def outlive(message: object) -> None:
            self.expire_lease(one)
            self.assertEqual(self.state(one), DeliveryState.UNKNOWN)  # type: ignore[attr-defined]
            if isinstance(then, Exception):
                raise then

        self.platform().plan.appendleft(outlive)
        self.deliver(one)


class OutboxTestCase(OutboxStage, NahidaTestCase):
    """A test inside one transaction."""


class CommittedOutboxTestCase(OutboxStage, CommittedTestCase):
    """A test of real transactions, for other threads and processes."""
