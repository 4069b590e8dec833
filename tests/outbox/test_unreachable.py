"""D1, D4: a chat that cannot be reached fails what waits for it, until it writes again."""

from datetime import timedelta

from django.db.models import F

from channels_app.models import DeliveryState
from sessions_app.models import Chat
from tests.base import ALICE, BOB, GROUP
from tests.outbox.stage import BLOCKED, OTHER_TOPIC, TOPIC, OutboxTestCase, before_update

FAILED, SENT = DeliveryState.FAILED, DeliveryState.SENT


class UnreachableTests(OutboxTestCase):
    def test_it_fails_everything_that_waits_at_once(self):
        """Topics of the chat included; a chat of the same number is another chat."""
        one, behind, topic = self.post(to=GROUP), self.post(to=GROUP), self.post(to=TOPIC)
        private = self.post(to=ALICE)
        self.plan(BLOCKED)

        self.deliver(one)

        self.assertEqual(self.states(one, behind, topic), [FAILED] * 3)
        self.assertIn("blocked by the user", behind.error)
        self.assertIsNotNone(self.chat(GROUP).unreachable_since)
        self.deliver(private)
        self.assertEqual(self.state(private), SENT)
        self.assertIsNone(self.chat(ALICE).unreachable_since)

    def test_it_fails_what_is_posted_later_without_asking(self):
        self.plan(BLOCKED)
        self.deliver(self.post())

        later = self.post()
        self.deliver(later)

        self.assertEqual(self.state(later), FAILED)
        self.assertEqual(self.sent(ALICE), [])

    def test_it_says_since_when(self):
        """A second refusal does not move the date."""
        self.plan(BLOCKED)
        one = self.post()
        self.deliver(one)
        Chat.objects.update(unreachable_since=F("unreachable_since") - timedelta(days=3))
        before = self.chat(ALICE)

        self.deliver(self.post())

        self.assertEqual(self.chat(ALICE).unreachable_since, before.unreachable_since)
        self.assertEqual(before.unreachable_reason, "the bot was blocked by the user")

    def test_it_is_reachable_again_when_it_writes(self):
        self.plan(BLOCKED)
        self.deliver(self.post())
        self.model.enqueue("welcome back")

        self.say(ALICE, "hello again")
        self.work()

        self.assertEqual(self.sent(ALICE), ["welcome back"])
        self.assertIsNone(self.chat(ALICE).unreachable_since)
        self.assertEqual(self.chat(ALICE).unreachable_reason, "")

    def test_it_stays_unreachable_when_others_write(self):
        self.plan(BLOCKED)
        self.deliver(self.post())
        self.model.enqueue("hi bob")

        self.say(BOB, "hello")
        self.work()

        self.assertIsNotNone(self.chat(ALICE).unreachable_since)

    def test_it_gives_up_no_answer_to_one_that_wrote_meanwhile(self):
        """A worker that read "unreachable" a moment ago looks again before it ends anything."""
        self.plan(BLOCKED)
        self.deliver(self.post(to=OTHER_TOPIC))
        late = self.post(to=OTHER_TOPIC)
        self.model.enqueue("welcome back")

        with before_update(1, lambda: self.say(OTHER_TOPIC, "I am back"), begins="SAVEPOINT"):
            self.deliver(late)
        self.work()

        self.assertEqual(self.state(late), SENT)
        self.assertEqual(self.sent(OTHER_TOPIC), ["hello", "welcome back"])
