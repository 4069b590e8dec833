"""The client against the fake server: results, errors, files, and not a word about its token."""

import asyncio
import traceback

from channels_app.channels import FetchError, ListenError, SendError
from channels_app.telegram.client import TelegramClient, Upload
from tests.fakes.telegram import Answer, ApiError, flood, forbidden, success
from tests.telegram.stage import LIN, AsyncTelegramCase, TelegramCase

BOLD = {"type": "bold", "offset": 0, "length": 2}


class ClientCase(TelegramCase):
    def setUp(self):
        super().setUp()
        self.client = TelegramClient(
            "telegram", token=self.bot.token, base_url=self.server.base_url
        )


class CallTest(ClientCase):
    def send(self, text: str = "hi", **params):
        return self.client.call("sendMessage", chat_id=LIN["id"], text=text, **params)

    def refusal(self, **params) -> SendError:
        with self.assertRaises(SendError) as caught:
            self.send(**params)
        return caught.exception

    def test_it_returns_the_result(self):
        sent = self.send("ok 🌱", entities=[BOLD], reply_parameters=None)

        self.assertEqual((sent["message_id"], self.lin.texts), (1, ["ok 🌱"]))
        self.assertNotIn("reply_parameters", self.bot.calls[0].params)

    def test_it_takes_a_file_along(self):
        content = bytes(range(256))
        upload = Upload("document", content, "笔记 1.txt", "text/plain")

        sent = self.client.call(
            "sendDocument",
            upload=upload,
            chat_id=LIN["id"],
            caption="ok",
            caption_entities=[BOLD],
            disable_notification=True,
        )

        self.assertEqual((sent["caption"], sent["caption_entities"]), ("ok", [BOLD]))
        self.assertEqual(sent["document"]["file_name"], "笔记 1.txt")
        self.assertEqual(self.bot.files[sent["document"]["file_id"]].content, content)

    def test_it_says_what_became_of_a_refused_message(self):
        self.bot.fail("sendMessage", flood(7))
        self.bot.fail("sendMessage", forbidden("bot was blocked by the user"))

        self.assertEqual(self.refusal().retry_after, 7)
        self.assertTrue(self.refusal().unreachable)

    def test_it_does_not_know_what_became_of_an_unanswered_message(self):
        self.bot.hang_up("sendMessage", after=True)
        self.bot.fail("sendMessage", Answer(200, b'{"ok": true, "res', ends="half"), after=True)
        self.bot.fail("sendMessage", Answer(502, b"<html>", "text/html"), after=True)

        errors = [self.refusal() for _ in range(3)]

        self.assertEqual([(e.permanent, e.not_sent) for e in errors], [(False, False)] * 3)
        self.assertEqual(len(self.lin.texts), 3)

    def test_it_knows_that_nothing_left_when_nobody_listens(self):
        self.server.go_down()

        error = self.refusal()
        self.server.come_up()

        self.assertTrue(error.not_sent)

    def test_it_keeps_the_token_out_of_what_goes_wrong(self):
        named = ApiError(502, f"no host for /bot{self.bot.token}/sendMessage")
        self.bot.hang_up("sendMessage")
        self.bot.fail("sendMessage", named)

        for error in (self.refusal(), self.refusal()):
            self.assertNotIn(self.bot.token, "".join(traceback.format_exception(error)))

    def test_it_keeps_the_token_out_of_the_words_of_httpx(self):
        client = TelegramClient("telegram", token="s3cret", base_url="s3cret://host")

        with self.assertRaises(SendError) as caught:
            client.call("getMe")

        self.assertNotIn("s3cret", "".join(traceback.format_exception(caught.exception)))
        self.assertIn("<token>", str(caught.exception))


class FetchTest(ClientCase):
    def fetch_error(self, file_id: str, *, limit: int = 1000) -> FetchError:
        with self.assertRaises(FetchError) as caught:
            self.client.fetch(file_id, limit=limit)
        return caught.exception

    def test_it_downloads_a_file(self):
        file = self.bot.add_file(b"content", path="documents/a b?#%.txt")

        self.assertEqual(self.client.fetch(file.id, limit=7), b"content")

    def test_it_asks_for_nothing_that_is_too_large(self):
        error = self.fetch_error(self.bot.add_file(b"content").id, limit=6)

        self.assertTrue(error.permanent)
        self.assertEqual(self.bot.calls_of("download"), [])

    def test_it_takes_no_for_an_answer_that_leads_nowhere(self):
        self.bot.fail("getFile", success({"file_id": "f", "file_unique_id": "u"}))

        self.assertTrue(self.fetch_error("f").permanent)

    def test_it_stops_where_a_file_is_larger_than_it_is_said_to_be(self):
        self.assertTrue(
            self.fetch_error(self.bot.add_file(b"content", size=1).id, limit=6).permanent
        )

    def test_it_tells_what_can_be_had_later_from_what_cannot(self):
        file = self.bot.add_file(b"content")
        huge = self.bot.add_file(b"", size=20 * 1024 * 1024 + 1)
        self.bot.fail("download", ApiError(502, "Bad Gateway"))
        self.bot.fail("getFile", flood(1), times=1)

        errors = [self.fetch_error(id_) for id_ in (file.id, file.id, huge.id, "nope")]

        self.assertEqual([error.permanent for error in errors], [False, False, True, True])
        self.assertIn("20 MB", str(errors[2]))

    def test_it_keeps_the_token_out_of_a_failed_download(self):
        file = self.bot.add_file(b"content")
        self.bot.hang_up("download")

        error = self.fetch_error(file.id)

        self.assertNotIn(self.bot.token, "".join(traceback.format_exception(error)))


class ListeningTest(AsyncTelegramCase):
    def setUp(self):
        super().setUp()
        self.client = TelegramClient(
            "telegram", token=self.bot.token, base_url=self.server.base_url
        )

    async def test_it_polls_for_longer_than_it_waits_for_other_answers(self):
        async with self.client.listening(answer_s=60) as ask:
            poll = asyncio.create_task(ask("getUpdates", timeout=50))
            await asyncio.to_thread(self.bot.wait_until, lambda: self.bot.waiting == 1)
            self.lin.says("hi")

            [update] = await poll

        self.assertEqual(update["message"]["text"], "hi")

    async def test_it_says_why_it_cannot_listen(self):
        async with self.client.listening() as ask:
            await ask("setWebhook", url="https://nahida.example/hook")

            with self.assertRaises(ListenError) as caught:
                await ask("getUpdates")

        self.assertEqual(caught.exception.status, "conflict")

    async def test_it_keeps_the_token_out_of_the_words_of_httpx(self):
        client = TelegramClient("telegram", token="s3cret", base_url="s3cret://host")

        async with client.listening() as ask:
            with self.assertRaises(ListenError) as caught:
                await ask("getMe")

        self.assertNotIn("s3cret", "".join(traceback.format_exception(caught.exception)))

    async def test_it_keeps_the_token_out_of_a_broken_line(self):
        self.bot.hang_up("getMe")

        async with self.client.listening() as ask:
            with self.assertRaises(ListenError) as caught:
                await ask("getMe")

        self.assertEqual(caught.exception.status, "unreachable")
        self.assertNotIn(self.bot.token, "".join(traceback.format_exception(caught.exception)))
