"""An account that is logged out: a state with its reason and since when; what is to be sent waits, and nobody storms the end."""

import asyncio
from datetime import datetime, timedelta
from unittest import mock

from django.utils import timezone

from channels_app.milky import listener
from channels_app.models import Delivery, DeliveryState
from nahida.agent import delivery
from nahida.ops import health
from tests.fakes.milky import events
from tests.milky.site import ALICE, MilkySite


class LoginTests(MilkySite):
    def is_asked_again(self) -> bool:
        """The end was asked twice since the account went offline."""
        return [call.retcode for call in self.end.calls].count(-403) >= 2

    def go_offline(self) -> None:
        self.hear(
            lambda: self.world.friend_says(10001, "hi"),
            self.has_heard(1),
            lambda: self.world.go_offline("kicked by another device"),
            self.has_status("offline"),
            self.is_asked_again,
        )

    def test_it_shows_that_the_account_is_offline_why_and_since_when(self):
        before = timezone.now()

        self.go_offline()

        (shown,) = [facts for facts in health.channels() if facts.name == "qq"]
        self.assertEqual((shown.status, shown.error), ("offline", "kicked by another device"))
        since = datetime.fromisoformat(shown.detail["last_error_at"])
        self.assertTrue(before <= since <= timezone.now())

    def test_it_lets_wait_what_is_to_be_sent(self):
        self.model.enqueue("hello")
        self.go_offline()

        self.work()

        (waiting,) = self.deliveries(ALICE)
        self.assertEqual(waiting.state, DeliveryState.PENDING)
        self.assertIn("not logged in", waiting.error)
        self.assertGreater(waiting.next_attempt_at, timezone.now() + timedelta(seconds=20))

    def test_it_comes_back_by_itself(self):
        self.model.enqueue("hello")
        self.go_offline()
        self.work()
        self.world.log_in()

        self.hear(lambda: self.world.friend_says(10001, "are you there?"), self.has_heard(2))
        Delivery.objects.update(next_attempt_at=timezone.now())
        delivery.deliver(self.deliveries(ALICE)[0].pk)

        self.assertEqual((self.state().status, self.state().error), ("listening", ""))
        self.assertEqual(self.world.seen("friend", 10001), ["hello"])

    def test_it_hears_what_was_said_while_it_was_logged_out(self):
        self.hear(
            lambda: self.world.friend_says(10001, "hi"),
            self.has_heard(1),
            self.world.go_offline,
            self.has_status("offline"),
            self.is_asked_again,
            lambda: self.world.friend_says(10001, "are you there?"),
            self.world.log_in,
            self.has_heard(2),
        )

        self.assertEqual(self.said(ALICE), ["hi", "are you there?"])

    def test_it_gives_an_end_time_to_notice_that_the_account_is_offline(self):
        """It says so before it knows it itself: asked at once, it would still answer."""
        asked: list[int] = []
        real_sleep = asyncio.sleep

        async def sleep(seconds: float) -> None:
            if seconds == listener.LOGIN_EVERY_S:
                asked.append(len(self.end.asked("get_impl_info")))
            await real_sleep(seconds)

        self.hasten(listener, LOGIN_EVERY_S=0.0123)
        with mock.patch.object(asyncio, "sleep", sleep):
            self.hear(
                lambda: self.end.emit(events.bot_offline()),
                self.has_status("offline"),
                lambda: len(self.end.asked("get_impl_info")) == 2,
            )

        self.assertEqual(asked, [1])

    def test_it_waits_for_an_account_that_was_never_logged_in(self):
        self.world.is_logged_in = False

        self.hear_status("logged out")
        self.assertIn("log it in at the protocol end", self.state().error)
        self.world.log_in()
        self.hear_status("listening")

        self.assertEqual(self.state().error, "")
