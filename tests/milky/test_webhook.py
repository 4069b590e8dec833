"""The webhook: nothing forged gets in, what is genuine is stored once, and the account is watched beside it."""

from typing import Any

from memory_app.models import MemoryTurn
from tests.fakes.milky import events, segments
from tests.fakes.milky.events import SELF, Event
from tests.milky.site import ALICE, GROUP, SECRET, MilkySite

PATH = "/api/hooks/milky/qq"


class WebhookTests(MilkySite):
    mode = "webhook"

    def post(self, event: Event) -> int:
        """Report an event as the protocol end does."""
        body, headers = self.end.webhook(event)
        authorization = {"Authorization": headers["Authorization"]}
        return self.post_raw(body, authorization)

    def post_raw(self, body: Any, headers: dict[str, str]) -> int:
        answer = self.client.post(PATH, body, content_type="application/json", headers=headers)
        return int(answer.status_code)

    def test_it_answers_what_comes_by_it(self):
        self.model.enqueue("hello")
        self.model.enqueue("hello, all")

        self.post(self.world.friend_says(10001, "hi"))
        self.post(self.world.group_says(10001, 20002, segments.mention(SELF), " hi"))
        self.work()

        self.assertEqual(self.world.seen("friend", 10001), ["hello"])
        self.assertEqual(self.world.seen("group", 10001), ["hello, all"])

    def test_it_stores_nothing_that_is_forged(self):
        event = events.friend_message(10001, "hi")

        for authorization in (
            None,
            "",
            "Bearer",
            "Bearer ",
            f"bearer {SECRET}x",
            f"Bearer {SECRET.upper()}",
            SECRET,
            f"Basic {SECRET}",
            "Bearer 密",
        ):
            with self.subTest(authorization):
                headers = {} if authorization is None else {"Authorization": authorization}
                self.assertEqual(self.post_raw(event, headers), 401)
        self.assertFalse(MemoryTurn.objects.exists())

    def test_it_stores_a_repeated_event_once(self):
        event = self.world.friend_says(10001, "hi")

        self.assertEqual([self.post(event) for _ in range(3)], [200] * 3)

        self.assertEqual(self.said(ALICE), ["hi"])

    def test_it_takes_no_event_of_another_account(self):
        event = {**events.friend_message(10001, "hi"), "self_id": 1234567891}

        self.assertEqual(self.post(event), 200)

        self.assertFalse(MemoryTurn.objects.exists())

    def test_it_takes_events_though_it_cannot_ask_whose_they_are(self):
        self.end.go_down()

        self.post(events.friend_message(10001, "hi"))

        self.assertEqual(self.said(ALICE), ["hi"])

    def test_it_watches_the_account(self):
        self.hear_status("webhook")
        self.assertEqual(self.state().detail["account"], str(SELF))
        self.world.is_logged_in = False

        self.hear_status("logged out")
        self.world.log_in()
        self.hear_status("webhook")

        self.assertEqual(self.state().error, "")
        self.assertEqual(self.end.opened, [])

    def test_it_shows_that_the_account_went_offline(self):
        self.post(events.bot_offline("kicked"))

        self.assertEqual((self.state().status, self.state().error), ("offline", "kicked"))

    def test_it_reads_what_was_posted_while_the_site_was_down(self):
        self.post(self.world.group_says(10001, 20002, "before"))
        self.world.group_says(10001, 20002, "missed")

        self.hear(self.has_heard(2))

        self.assertEqual(self.said(GROUP), ["before", "missed"])


class StreamedAccountTests(MilkySite):
    def test_it_takes_no_webhook_of_an_account_that_is_listened_to(self):
        body, headers = self.end.webhook(events.friend_message(10001, "hi"))

        answer = self.client.post(PATH, body, content_type="application/json", headers=headers)

        self.assertEqual(answer.status_code, 401)
        self.assertFalse(MemoryTurn.objects.exists())
