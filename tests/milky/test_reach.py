"""Groups that silence us, throw us out or end: answers stop with the reason, and go on by themselves."""

from datetime import timedelta

from django.utils import timezone

from channels_app.models import DeliveryState
from tests.fakes.milky import segments
from tests.fakes.milky.end import MilkyEnd
from tests.fakes.milky.events import SELF
from tests.milky.site import GROUP, MilkySite

FAILED, SENT = DeliveryState.FAILED, DeliveryState.SENT


class ReachTests(MilkySite):
    def setUp(self) -> None:
        super().setUp()
        self.hear(lambda: self.world.group_says(10001, 20002, "morning"), self.has_heard(1))

    def last_answer(self, *, asked: int = 2) -> tuple[str, str]:
        """Ask something in the group and return what became of the answer, and why."""
        self.model.enqueue("an answer")
        self.hear(
            lambda: self.world.group_says(10001, 20002, segments.mention(SELF), " hi"),
            self.has_heard(asked),
        )
        self.work()
        answer = self.deliveries(GROUP)[-1]
        return answer.state, answer.error

    def reason(self) -> str:
        return self.chat(GROUP).unreachable_reason

    def is_silent(self) -> bool:
        return bool(self.reason())

    def can_write(self) -> bool:
        return not self.reason()

    def test_it_stops_while_it_is_muted_and_goes_on_when_that_ends(self):
        self.hear(lambda: self.world.mute(10001, duration=600), self.is_silent)
        until = self.chat(GROUP).muted_until

        state, why = self.last_answer()
        self.assertEqual(state, FAILED)
        self.assertIn("the account is muted in the group", why)
        self.assertEqual(self.end.asked("send_group_message"), [])
        assert until is not None
        self.assertLess(abs(until - timezone.now() - timedelta(seconds=600)), timedelta(minutes=1))
        self.hear(lambda: self.world.mute(10001, duration=0), self.can_write)

        self.assertEqual(self.last_answer(asked=3), (SENT, ""))
        self.assertEqual(self.world.seen("group", 10001), ["an answer"])

    def test_it_learns_on_connecting_that_it_was_muted_meanwhile(self):
        self.world.mute(10001, duration=600)

        self.hear(self.is_silent)

        self.assertIsNotNone(self.chat(GROUP).muted_until)

    def test_it_learns_on_connecting_that_it_may_speak_again(self):
        self.hear(lambda: self.world.mute(10001), self.is_silent)
        self.world.mute(10001, duration=0)

        self.hear(self.can_write)

        self.assertEqual(self.last_answer(), (SENT, ""))

    def test_it_stops_while_all_members_are_silenced(self):
        self.model.enqueue("an answer")
        self.hear(
            lambda: self.world.silence(10001),
            self.is_silent,
            lambda: self.world.group_says(10001, 20002, segments.mention(SELF), " hi"),
            self.has_heard(2),
        )

        self.work()
        (answer,) = self.deliveries(GROUP)
        self.assertEqual(answer.state, FAILED)
        self.assertIn("only admins may speak", answer.error)
        self.hear(lambda: self.world.silence(10001, is_mute=False), self.can_write)

        self.assertEqual(self.last_answer(asked=3), (SENT, ""))

    def test_it_tries_again_after_connecting_as_nobody_tells_whether_all_are_still_silenced(self):
        self.hear(lambda: self.world.silence(10001), self.is_silent)

        self.hear(self.can_write)

        state, why = self.last_answer()
        self.assertEqual(state, FAILED)
        self.assertIn("120", why)

    def test_it_goes_on_as_an_admin_of_a_silenced_group(self):
        self.world.join(10001, SELF, role="admin")

        self.hear(
            lambda: self.world.silence(10001),
            lambda: self.world.group_says(10001, 20001, "quiet please"),
            self.has_heard(2),
        )

        self.assertEqual(self.last_answer(asked=3), (SENT, ""))

    def test_it_stays_muted_when_only_the_others_may_speak_again(self):
        self.hear(lambda: self.world.mute(10001), self.is_silent)

        self.hear(
            lambda: self.world.silence(10001, is_mute=False),
            lambda: self.world.group_says(10001, 20001, "go on"),
            self.has_heard(2),
        )

        self.assertEqual(self.reason(), "the account is muted in the group")

    def test_it_stops_when_it_is_removed_and_goes_on_when_it_is_back(self):
        removed = "20001 removed the account from the group"
        # Who is asked about the group while the stream opens may know before the event comes.
        self.hear(lambda: self.world.kick(10001, by=20001), lambda: self.reason() == removed)

        self.hear(lambda: self.world.invite(10001), self.can_write)

        self.assertEqual(self.last_answer(), (SENT, ""))

    def test_it_learns_on_connecting_that_it_was_removed(self):
        self.world.kick(10001)

        self.hear(self.is_silent)

        self.assertEqual(self.reason(), "the account is no longer in the group")

    def test_it_fails_visibly_where_no_event_said_that_it_is_muted(self):
        self.model.enqueue("an answer")
        self.hear(
            lambda: self.world.group_says(10001, 20002, segments.mention(SELF), " hi"),
            self.has_heard(2),
        )
        self.world.join(10001, SELF, shut_up_end_time=self.world.now() + 600)
        self.work()

        (answer,) = self.deliveries(GROUP)
        self.assertEqual(answer.state, FAILED)
        self.assertIn("120", answer.error)
        self.assertEqual(len(self.end.asked("send_group_message")), 1)


class DisbandedTests(MilkySite):
    def setUp(self) -> None:
        super().setUp()
        self.newest = self.enterContext(MilkyEnd(version="1.3"))
        self.end, self.world = self.newest, self.newest.world
        self.configure(qq=self.config())

    def test_it_stops_when_the_group_ends(self):
        self.hear(
            lambda: self.world.group_says(10001, 20002, "morning"),
            self.has_heard(1),
            lambda: self.world.disband(10001),
            lambda: bool(self.chat(GROUP).unreachable_reason),
        )

        self.assertEqual(self.chat(GROUP).unreachable_reason, "the group was disbanded")
