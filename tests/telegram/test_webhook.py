"""The webhook: nothing forged gets in, what is genuine is stored once, and Telegram is told where to send it."""

from collections.abc import Mapping
from typing import Any
from unittest import mock

from channels_app.models import ChannelState
from channels_app.telegram import channel
from memory_app.models import MemoryTurn
from tests.fakes.telegram import deliver
from tests.fakes.telegram.bot import Webhook
from tests.telegram.site import SECRET, TelegramSite

HEADER = "X-Telegram-Bot-Api-Secret-Token"
PATH = "/api/hooks/telegram/telegram"


class WebhookTests(TelegramSite):
    mode = "webhook"

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        path = "/" + url.split("/", 3)[3]
        answer = self.client.post(path, body, content_type="application/json", headers=headers)
        return answer.status_code, answer.content

    def hear_from_hook(self) -> None:
        self.hear_status("webhook")

    def test_it_sets_the_webhook_and_answers_what_comes_by_it(self):
        self.model.enqueue("hello, Lin")
        self.hear_from_hook()
        self.lin.says("hi")

        delivered = deliver(self.bot, post=self.post)
        self.work()

        self.assertTrue(delivered.is_taken)
        assert self.bot.webhook is not None
        self.assertTrue(self.bot.webhook.url.endswith(PATH))
        self.assertEqual(self.lin.texts, ["hello, Lin"])

    def test_it_answers_with_an_empty_body(self):
        """A body could be taken for a call of the Bot API."""
        update = self.lin.says("hi")
        self.model.enqueue("hello")

        answer = self.forge({HEADER: SECRET}, update)
        self.work()

        self.assertEqual((answer.status_code, answer.content), (200, b""))

    def forge(self, headers: dict[str, str], update: Any) -> Any:
        return self.client.post(PATH, update, content_type="application/json", headers=headers)

    def test_it_stores_nothing_that_is_forged(self):
        update = self.lin.says("hi")

        for headers in (
            {},
            {HEADER: ""},
            {HEADER: "wrong"},
            {HEADER: f"{SECRET} x"},
            {HEADER: SECRET.lower()},
        ):
            with self.subTest(headers):
                self.assertEqual(self.forge(headers, update).status_code, 401)
        self.assertFalse(MemoryTurn.objects.exists())

    def test_it_stores_a_retried_update_once(self):
        update = self.lin.says("hi")

        for _ in range(3):
            self.assertEqual(self.forge({HEADER: SECRET}, update).status_code, 200)

        self.assertEqual(MemoryTurn.objects.count(), 1)

    def test_it_shows_what_keeps_telegram_from_delivering(self):
        self.lin.says("hi")

        with mock.patch.object(channel, "LOOK_EVERY_S", 0.01):
            self.hear(self.fail_to_deliver)

        self.assertEqual(self.state().detail["pending"], 1)
        self.assertIn("502", self.state().error)

    def fail_to_deliver(self) -> bool:
        """The site is behind a proxy that is broken."""
        if self.bot.webhook and not self.bot.webhook.last_error:
            deliver(self.bot, post=lambda url, body, headers: (502, b""))
        return ChannelState.objects.exclude(error="").exists()

    def test_it_says_so_when_another_program_took_the_webhook_over(self):
        with mock.patch.object(channel, "LOOK_EVERY_S", 0.01):
            self.hear_from_hook()
            elsewhere = Webhook("https://elsewhere.example/hook", "")
            self.hear(lambda: self.take_over(elsewhere))

        self.assertEqual(self.state().status, "conflict")

    def take_over(self, elsewhere: Webhook) -> bool:
        if self.has_status("webhook"):
            self.bot.webhook = elsewhere
        return self.has_status("conflict")


class PolledBotTests(TelegramSite):
    def test_it_takes_no_webhook_of_a_bot_that_is_polled(self):
        update = self.lin.says("hi")

        answer = self.client.post(
            PATH, update, content_type="application/json", headers={HEADER: SECRET}
        )

        self.assertEqual(answer.status_code, 401)

    def test_it_drops_the_webhook_that_it_set_itself_before(self):
        """The owner changed the mode back to polling."""
        self.bot.webhook = Webhook(f"http://127.0.0.1:8000{PATH}", SECRET)
        self.lin.says("hi")

        self.hear()

        self.assertIsNone(self.bot.webhook)
        self.assertEqual(MemoryTurn.objects.get().content, "hi")
