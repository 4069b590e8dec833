"""A chat that muted us is heard, and written to again when its silence ends."""

from datetime import timedelta

from django.utils import timezone

from channels_app.messages import ReachChanged
from channels_app.models import DeliveryState
from nahida.agent.receive import receive
from sessions_app.models import Chat
from tests.base import ALICE, GROUP
from tests.outbox.stage import TOPIC, OutboxTestCase

HOUR = timedelta(hours=1)
FAILED, SENT = DeliveryState.FAILED, DeliveryState.SENT


class MutedTests(OutboxTestCase):
    def news(self, reason: str = "", **details: object) -> None:
        receive("fake", ReachChanged(GROUP, reason, **details))  # type: ignore[arg-type]

    def test_it_fails_what_waits_with_the_reason(self):
        waiting, topic, private = self.post(to=GROUP), self.post(to=TOPIC), self.post(to=ALICE)

        self.news("the bot is muted", is_muted=True)

        self.assertEqual(self.states(waiting, topic), [FAILED] * 2)
        self.assertIn("the bot is muted", waiting.error)
        self.deliver(private)
        self.assertEqual(self.state(private), SENT)

    def test_it_stays_muted_though_people_write(self):
        self.post(to=GROUP)
        self.news("the bot is muted", is_muted=True)
        self.model.enqueue("you cannot hear me")

        self.say(GROUP, "hello?")
        self.work()

        self.assertEqual(self.sent(GROUP), [])
        self.assertEqual(self.answers(GROUP), ["you cannot hear me"])

    def test_it_writes_again_when_the_time_is_over(self):
        self.post(to=GROUP)
        self.news("the bot is muted", is_muted=True, until=timezone.now() + HOUR)
        Chat.objects.update(muted_until=timezone.now() - HOUR)

        later = self.post(to=GROUP)
        self.deliver(later)

        self.assertEqual(self.state(later), SENT)

    def test_it_writes_again_when_told(self):
        for muted in (True, False):
            with self.subTest(muted=muted):
                self.post(to=GROUP)
                self.news("out", is_muted=muted)

                self.news()
                later = self.post(to=GROUP)
                self.deliver(later)

                self.assertEqual(self.state(later), SENT)

    def test_it_fails_at_once_what_waits_for_a_chat_it_was_thrown_out_of(self):
        waiting = self.post(to=GROUP)

        self.news("the bot was removed from the group")

        self.assertEqual(self.state(waiting), FAILED)
        self.assertIsNotNone(self.chat(GROUP).unreachable_since)

    def test_it_takes_news_of_a_chat_that_nobody_knows(self):
        self.news("the bot was removed from the group")

        self.assertFalse(Chat.objects.exists())
