"""The fake server in the eyes of python-telegram-bot."""

# The library types nearly every field of the wire as optional.
# mypy: disable-error-code="union-attr, type-arg"

import asyncio
from datetime import timedelta

from telegram import InputFile, LinkPreviewOptions, MessageEntity, ReplyParameters, Update
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
)
from telegram.ext import Application, MessageHandler, filters

from tests.fakes.telegram import ApiError, flood
from tests.telegram.stage import LIN, MO, AsyncTelegramCase


class PtbCase(AsyncTelegramCase):
    async def asyncSetUp(self):
        self.app = self.application(self.bot.token)
        await self.app.initialize()
        self.addAsyncCleanup(self.app.shutdown)
        self.client = self.app.bot

    def application(self, token: str) -> Application:
        builder = Application.builder().token(token)
        builder.base_url(f"{self.server.base_url}/bot")
        return builder.base_file_url(f"{self.server.base_url}/file/bot").build()


class PollingTest(PtbCase):
    async def test_it_hands_out_each_update_once_and_drops_it(self):
        heard: list[str | None] = []
        self.app.add_handler(MessageHandler(filters.TEXT, heard_by(heard)))
        await self.app.start()
        self.lin.says("before")

        await self.app.updater.start_polling(timeout=30)
        await asyncio.to_thread(self.bot.wait_until, lambda: self.bot.waiting == 1)
        self.lin.says("during 🌱")
        await asyncio.to_thread(self.bot.wait_until, lambda: not self.bot.updates)
        await self.app.updater.stop()
        await self.app.stop()

        self.assertEqual(heard, ["before", "during 🌱"])

    async def test_it_ends_a_poll_when_another_one_comes(self):
        first = asyncio.create_task(self.client.get_updates(timeout=30))
        await asyncio.to_thread(self.bot.wait_until, lambda: self.bot.waiting == 1)
        second = self.application(self.bot.token)
        await second.initialize()
        self.addAsyncCleanup(second.shutdown)

        await second.bot.get_updates()

        with self.assertRaisesRegex(Conflict, "terminated by other getUpdates"):
            await first

    async def test_it_makes_updates_that_the_library_reads(self):
        photo = self.bot.add_photo(b"jpeg of some length")
        forum = self.bot.supergroup(-1001234500001, is_forum=True)
        thread = forum.opens_topic("Help")
        forum.says("/ask@nahida_bot 天气?", by=MO, thread=thread)
        self.bot.channel(-1001234500003).says("新闻", author_signature="Ed")
        self.lin.sends_album({"photo": photo, "caption": "one"}, {"photo": photo})
        self.bot.group(-77001).upgrades(-1001234500004)

        updates = [Update.de_json(update, self.client) for update in self.bot.updates]

        self.assertEqual([update.api_kwargs for update in updates], [{}] * len(updates))
        self.assertEqual(
            [update.effective_message.api_kwargs for update in updates], [{}] * len(updates)
        )


class SendingTest(PtbCase):
    async def test_it_shows_what_was_sent(self):
        question = self.lin.says("?")["message"]["message_id"]

        sent = await self.client.send_message(
            LIN["id"],
            "🌱 ok",
            entities=[MessageEntity("bold", 3, 2)],
            link_preview_options=LinkPreviewOptions(is_disabled=True),
            reply_parameters=ReplyParameters(question, allow_sending_without_reply=True),
        )

        self.assertEqual(sent.parse_entities(), {sent.entities[0]: "ok"})
        self.assertEqual(sent.reply_to_message.message_id, question)
        self.assertEqual(self.lin.texts, ["🌱 ok"])

    async def test_it_takes_files_and_gives_them_back(self):
        content = bytes(range(256))

        sent = await self.client.send_document(LIN["id"], InputFile(content, "notes.txt"))
        file = await self.client.get_file(sent.document.file_id)

        self.assertEqual(sent.document.file_name, "notes.txt")
        self.assertEqual(bytes(await file.download_as_bytearray()), content)

    async def test_it_sets_and_shows_a_webhook(self):
        await self.client.set_webhook("https://nahida.example/hook", secret_token="s-3_c")
        info = await self.client.get_webhook_info()
        await self.client.delete_webhook()

        self.assertEqual(info.url, "https://nahida.example/hook")
        self.assertEqual((await self.client.get_webhook_info()).url, "")

    async def test_it_knows_members(self):
        group = self.bot.group(-77001)
        group.join(MO, "administrator")

        member = await self.client.get_chat_member(group.id, MO["id"])

        self.assertEqual((member.status, member.user.first_name), ("administrator", "Mo"))


class ErrorsTest(PtbCase):
    async def test_it_refuses_in_words_that_the_library_knows(self):
        group = self.bot.group(-77001)
        group.upgrades(-1001234500004, signs=())
        self.lin.sets_bot("kicked")

        for chat_id, kind, reason in (
            (999, BadRequest, "Chat not found"),
            (LIN["id"], Forbidden, "bot was blocked by the user"),
            (group.id, ChatMigrated, "-1001234500004"),
        ):
            with self.assertRaisesRegex(kind, reason):
                await self.client.send_message(chat_id, "hi")

    async def test_it_holds_back_a_flood(self):
        self.bot.fail("sendMessage", flood(7))

        with self.assertRaises(RetryAfter) as caught:
            await self.client.send_message(LIN["id"], "hi")

        self.assertEqual(caught.exception._retry_after, timedelta(seconds=7))

    async def test_it_falls_ill(self):
        self.bot.fail("sendMessage", ApiError(502, "Bad Gateway"))
        self.bot.hang_up("sendMessage")

        for _ in range(2):
            with self.assertRaises(NetworkError):
                await self.client.send_message(LIN["id"], "hi")

    async def test_it_knows_tokens(self):
        with self.assertRaises(InvalidToken):
            await self.application("42000009:nobody").initialize()


def heard_by(heard: list[str | None]):
    async def hear(update: Update, context: object) -> None:
        heard.append(update.effective_message.text)

    return hear
