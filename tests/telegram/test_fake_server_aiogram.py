"""The fake server in the eyes of aiogram."""

# aiogram types nearly every field of the wire as optional.
# mypy: disable-error-code="union-attr, index, arg-type"

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from aiogram import Bot, Dispatcher
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    TelegramBadRequest,
    TelegramConflictError,
    TelegramEntityTooLarge,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.types import (
    BotCommand,
    BufferedInputFile,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    ReactionTypeEmoji,
    ReplyParameters,
    Update,
)

from tests.fakes.telegram import ApiError, conflict, flood
from tests.telegram.stage import LIN, MO, AsyncTelegramCase


class Session(AiohttpSession):
    async def close(self) -> None:
        """Close at once: the original rests a quarter of a second for TLS."""
        if self._session is not None:
            await self._session.close()


class AiogramCase(AsyncTelegramCase):
    async def asyncSetUp(self):
        self.client = self.aiogram(self.bot.token)

    def aiogram(self, token: str) -> Bot:
        session = Session(api=TelegramAPIServer.from_base(self.server.base_url))
        self.addAsyncCleanup(session.close)
        return Bot(token, session=session)


class PollingTest(AiogramCase):
    @asynccontextmanager
    async def polling(self, heard: list[Message]):
        dispatcher = Dispatcher()
        dispatcher.message.register(heard_by(heard))
        running = asyncio.create_task(
            dispatcher.start_polling(self.client, handle_signals=False, polling_timeout=30)
        )
        yield
        await dispatcher.stop_polling()
        await running

    async def test_it_hands_out_each_update_once_and_drops_it(self):
        heard: list[Message] = []
        self.lin.says("before")

        async with self.polling(heard):
            await asyncio.to_thread(self.bot.wait_until, lambda: self.bot.waiting == 1)
            self.lin.says("during 🌱")
            await asyncio.to_thread(self.bot.wait_until, lambda: not self.bot.updates)

        self.assertEqual([message.text for message in heard], ["before", "during 🌱"])

    async def test_it_gives_what_is_not_confirmed_again(self):
        self.lin.says("again")

        first = await self.client.get_updates()
        second = await self.client.get_updates()
        third = await self.client.get_updates(offset=second[-1].update_id + 1)

        self.assertEqual([first, third], [second, []])

    async def test_it_ends_a_poll_when_another_one_comes(self):
        first = asyncio.create_task(self.client.get_updates(timeout=30))
        await asyncio.to_thread(self.bot.wait_until, lambda: self.bot.waiting == 1)

        await self.aiogram(self.bot.token).get_updates()

        with self.assertRaisesRegex(TelegramConflictError, "terminated by other getUpdates"):
            await first

    async def test_it_lets_nobody_poll_beside_a_webhook(self):
        poll = asyncio.create_task(self.client.get_updates(timeout=30))
        await asyncio.to_thread(self.bot.wait_until, lambda: self.bot.waiting == 1)

        await self.client.set_webhook("https://nahida.example/hook")

        with self.assertRaisesRegex(TelegramConflictError, "terminated by setWebhook"):
            await poll
        with self.assertRaisesRegex(TelegramConflictError, "while webhook is active"):
            await self.client.get_updates()

    async def test_it_ends_a_waiting_poll_when_it_goes_down(self):
        poll = asyncio.create_task(self.client.get_updates(timeout=30))
        await asyncio.to_thread(self.bot.wait_until, lambda: self.bot.waiting == 1)

        self.server.go_down()

        with self.assertRaises(TelegramNetworkError):
            await poll
        self.server.come_up()

    async def test_it_keeps_updates_while_it_is_down(self):
        self.server.go_down()
        self.lin.says("early")
        self.server.come_up()

        [update] = await self.client.get_updates(timeout=30)

        self.assertEqual(update.message.text, "early")


class ShapesTest(AiogramCase):
    async def test_it_makes_updates_that_aiogram_knows_wholly(self):
        photo = self.bot.add_photo(b"jpeg of some length")
        group = self.bot.group(-77001, title="Old")
        forum = self.bot.supergroup(-1001234500001, title="Forum", is_forum=True)
        news = self.bot.channel(-1001234500003, title="News")
        thread = forum.opens_topic("Help")
        said = self.lin.says("你好 🌱 nahida")["message"]["message_id"]
        self.lin.says("this", reply_to=said)
        self.lin.edits(said, "你好 nahida")
        self.lin.says(photo=photo, caption="see https://example.org")
        self.lin.sends_album({"photo": photo, "caption": "one"}, {"photo": photo})
        self.lin.presses(said, "ok:1")
        self.lin.sets_bot("kicked")
        forum.says("/ask@nahida_bot 天气?", by=MO, thread=thread)
        forum.closes_topic(thread)
        forum.sets_bot("administrator")
        news.says("新闻", author_signature="Ed")
        group.sets_bot("restricted")
        group.upgrades(-1001234500004)

        updates = [Update.model_validate(update) for update in self.bot.updates]

        self.assertEqual(list(unknown_to_aiogram(updates)), [])
        self.assertEqual(len({update.update_id for update in updates}), len(updates))

    async def test_it_finds_mentions_and_commands_as_the_real_one(self):
        update = Update.model_validate(self.lin.says("/ask@nahida_bot 🌱 @nahida_bot2 hi"))

        found = [(e.type, e.extract_from(update.message.text)) for e in update.message.entities]

        self.assertEqual(found, [("bot_command", "/ask@nahida_bot"), ("mention", "@nahida_bot2")])

    async def test_it_marks_topics_apart_from_threads_of_replies(self):
        forum = self.bot.supergroup(-1001234500001, is_forum=True)
        plain = self.bot.supergroup(-1001234500002)
        thread = forum.opens_topic("Help")
        root = plain.says("root")["message"]["message_id"]

        topical = Message.model_validate(forum.says("hi", thread=thread)["message"])
        replying = Message.model_validate(plain.says("hi", reply_to=root)["message"])
        general = Message.model_validate(forum.says("hi")["message"])

        self.assertEqual((topical.message_thread_id, topical.is_topic_message), (thread, True))
        self.assertEqual(topical.reply_to_message.forum_topic_created.name, "Help")
        self.assertEqual((replying.message_thread_id, replying.is_topic_message), (root, None))
        self.assertEqual((general.message_thread_id, general.is_topic_message), (None, None))


class SendingTest(AiogramCase):
    async def test_it_shows_what_was_sent(self):
        question = self.lin.says("?")["message"]["message_id"]
        bold = MessageEntity(type="bold", offset=3, length=2)

        sent = await self.client.send_message(
            LIN["id"],
            "🌱 ok ",
            entities=[bold],
            link_preview_options=LinkPreviewOptions(is_disabled=True),
            reply_parameters=ReplyParameters(message_id=question, allow_sending_without_reply=True),
        )

        self.assertEqual(sent.text, "🌱 ok")
        self.assertEqual([e.extract_from(sent.text) for e in sent.entities], ["ok"])
        self.assertEqual(sent.reply_to_message.message_id, question)
        self.assertEqual(self.lin.texts, ["🌱 ok"])

    async def test_it_counts_message_ids_in_each_chat(self):
        mo = self.bot.private(MO)
        self.lin.says("1")

        ids = [(await self.client.send_message(chat.id, "x")).message_id for chat in (self.lin, mo)]

        self.assertEqual(ids, [2, 1])

    async def test_it_parses_markup_with_the_parser_of_the_real_one(self):
        sent = await self.client.send_message(LIN["id"], "<b>hi</b>", parse_mode="HTML")

        self.assertEqual((sent.text, sent.entities[0].type), ("hi", "bold"))
        with self.assertRaisesRegex(TelegramBadRequest, "can't parse entities: Can't find end tag"):
            await self.client.send_message(LIN["id"], "<b>hi", parse_mode="HTML")

    async def test_it_sends_into_topics(self):
        forum = self.bot.supergroup(-1001234500001, is_forum=True)
        thread = forum.opens_topic("Help")

        sent = await self.client.send_message(forum.id, "in", message_thread_id=thread)

        self.assertEqual((sent.message_thread_id, sent.is_topic_message), (thread, True))

    async def test_it_takes_files_and_gives_them_back(self):
        content = bytes(range(256)) * 4
        file = BufferedInputFile(content, "notes.txt")

        document = (await self.client.send_document(LIN["id"], file, caption="notes")).document
        photo = (await self.client.send_photo(LIN["id"], file)).photo[-1]
        voice = (await self.client.send_voice(LIN["id"], file)).voice
        again = await self.client.send_document(LIN["id"], document.file_id)

        self.assertEqual((document.file_name, document.file_size), ("notes.txt", len(content)))
        self.assertEqual(self.lin.texts, ["notes", "", "", ""])
        for sent in (document, photo, voice, again.document):
            self.assertEqual((await self.client.download(sent)).read(), content)

    async def test_it_keeps_actions_reactions_and_commands(self):
        said = self.lin.says("hi")["message"]["message_id"]
        help_ = BotCommand(command="help", description="What I can do")

        await self.client.send_chat_action(LIN["id"], "typing")
        await self.client.set_message_reaction(LIN["id"], said, [ReactionTypeEmoji(emoji="👀")])
        await self.client.set_my_commands([help_])

        self.assertEqual(self.lin.actions, [{"action": "typing", "message_thread_id": None}])
        self.assertEqual(self.lin.reactions[said], [{"type": "emoji", "emoji": "👀"}])
        [kept] = await self.client.get_my_commands()
        self.assertEqual((kept.command, kept.description), ("help", "What I can do"))

    async def test_it_answers_a_pressed_button_once(self):
        said = (await self.client.send_message(LIN["id"], "?")).message_id
        query = self.lin.presses(said, "ok:1")["callback_query"]["id"]

        self.assertTrue(await self.client.answer_callback_query(query, text="ok"))
        with self.assertRaisesRegex(TelegramBadRequest, "query is too old"):
            await self.client.answer_callback_query(query)

    async def test_it_knows_the_bot_and_the_members(self):
        group = self.bot.group(-77001)
        group.join(MO, "administrator")
        group.join(LIN)

        me = await self.client.get_me()
        ranks = [
            (await self.client.get_chat_member(group.id, who["id"])).status for who in (MO, LIN)
        ]

        self.assertEqual((me.id, me.username, me.is_bot), (42000001, "nahida_bot", True))
        self.assertEqual((me.can_read_all_group_messages, me.has_topics_enabled), (True, None))
        self.assertEqual(ranks, ["administrator", "member"])


class ErrorsTest(AiogramCase):
    async def refused(
        self, kind: type[Exception], reason: str, *, chat_id: int = LIN["id"], **more
    ):
        with self.assertRaisesRegex(kind, reason) as caught:
            await self.client.send_message(chat_id, **({"text": "hi"} | more))
        return caught.exception

    async def test_it_refuses_bad_texts(self):
        for text, reason in (
            ("", "message text is empty"),
            (" \n ", "text must be non-empty"),
            ("🌱" * 2049, "message is too long"),
            ("字" * 11000, "text is too long"),
        ):
            await self.refused(TelegramBadRequest, reason, text=text)

        await self.client.send_message(LIN["id"], "🌱" * 2048)

    async def test_it_refuses_bad_entities(self):
        cases: list[tuple[dict[str, Any], str]] = [
            ({"type": "bold", "offset": 0, "length": 9}, "ends after the end of the text"),
            ({"type": "bold", "offset": 9, "length": 1}, "begins after the end of the text"),
            ({"type": "bold", "offset": 1, "length": 1}, "begins in a middle of a UTF-16 symbol"),
            ({"type": "bold", "offset": 0, "length": 1}, "ends in a middle of a UTF-16 symbol"),
            ({"type": "text_link", "offset": 0, "length": 2, "url": "ftp://x.org"}, "is invalid"),
            ({"type": "heading", "offset": 0, "length": 2}, "Unsupported type"),
        ]
        for fields, reason in cases:
            entities = [MessageEntity(**fields)]
            await self.refused(TelegramBadRequest, reason, text="🌱🌱", entities=entities)

    async def test_it_refuses_what_the_api_does_not_know(self):
        for fields, reason in (
            ({"reply_to_message_id": 1}, "unknown parameter reply_to_message_id"),
            ({"link_preview_options": LinkPreviewOptions(hidden=True)}, "unknown field hidden"),
        ):
            await self.refused(TelegramBadRequest, reason, **fields)

    async def test_it_refuses_places_that_are_not_there(self):
        forum = self.bot.supergroup(-1001234500001, is_forum=True)
        open_, closed = forum.opens_topic("open"), forum.opens_topic("closed")
        forum.closes_topic(closed)
        forum.deletes_topic(open_)

        for where, reason in (
            ({"chat_id": 999}, "chat not found"),
            ({"message_thread_id": 7}, "message thread not found"),
            ({"chat_id": forum.id, "message_thread_id": 1}, "message thread not found"),
            ({"chat_id": forum.id, "message_thread_id": open_}, "message thread not found"),
            ({"chat_id": forum.id, "message_thread_id": closed}, "TOPIC_CLOSED"),
            (
                {"reply_parameters": ReplyParameters(message_id=9)},
                "message to be replied not found",
            ),
        ):
            await self.refused(TelegramBadRequest, reason, **where)

    async def test_it_knows_no_threads_in_a_plain_supergroup(self):
        plain = self.bot.supergroup(-1001234500002)

        sent = await self.client.send_message(plain.id, "hi", message_thread_id=80)

        self.assertIsNone(sent.message_thread_id)

    async def test_it_shuts_the_bot_out(self):
        group, forum = self.bot.group(-77001), self.bot.supergroup(-1001234500001)
        forum.join(MO)
        self.lin.sets_bot("kicked")
        group.sets_bot("kicked")
        forum.sets_bot("left")

        for chat_id, reason in (
            (self.lin.id, "bot was blocked by the user"),
            (group.id, "bot was kicked from the group chat"),
            (forum.id, "bot is not a member of the supergroup chat"),
            (MO["id"], "bot can't initiate conversation with a user"),
        ):
            await self.refused(TelegramForbiddenError, reason, chat_id=chat_id)

    async def test_it_lets_the_bot_in_again(self):
        self.lin.sets_bot("kicked")
        self.lin.sets_bot("member")

        await self.client.send_message(LIN["id"], "back")

        self.assertEqual(self.lin.texts, ["back"])

    async def test_it_mutes_the_bot(self):
        group = self.bot.group(-77001)
        group.sets_bot("restricted")

        await self.refused(TelegramBadRequest, "not enough rights", chat_id=group.id)

    async def test_it_sends_the_bot_to_the_supergroup(self):
        group = self.bot.group(-77001)
        new = group.upgrades(-1001234500004, signs=())

        error = await self.refused(TelegramMigrateToChat, "upgraded", chat_id=group.id)

        self.assertEqual((error.migrate_to_chat_id, self.bot.updates), (new.id, []))

    async def test_it_holds_back_a_flood_in_one_chat_only(self):
        mo = self.bot.private(MO)
        self.bot.fail("sendMessage", flood(7), chat_id=LIN["id"])

        error = await self.refused(TelegramRetryAfter, "retry after 7")
        await self.client.send_message(mo.id, "hi")
        await self.client.send_message(LIN["id"], "hi")

        self.assertEqual((error.retry_after, mo.texts, self.lin.texts), (7, ["hi"], ["hi"]))

    async def test_it_says_what_it_is_told_to_say(self):
        for error, kind in (
            (ApiError(500, "Internal Server Error"), TelegramServerError),
            (ApiError(413, "Request Entity Too Large"), TelegramEntityTooLarge),
            (conflict("no"), TelegramConflictError),
        ):
            self.bot.fail("sendMessage", error)
            await self.refused(kind, error.description)

    async def test_it_knows_tokens_and_methods(self):
        stranger = self.aiogram("42000009:nobody")
        self.server.remove_bot(self.bot)

        with self.assertRaises(TelegramUnauthorizedError):
            await stranger.get_me()
        with self.assertRaises(TelegramUnauthorizedError):
            await self.client.get_me()

    async def test_it_refuses_files_that_are_too_big_or_unknown(self):
        big = self.bot.add_file(b"", size=20 * 1024 * 1024 + 1)

        for file_id, reason in ((big.id, "file is too big"), ("nope", "wrong file_id")):
            with self.assertRaisesRegex(TelegramBadRequest, reason):
                await self.client.get_file(file_id)

    async def test_it_refuses_commands_that_no_menu_shows(self):
        for command, description, reason in (
            ("Help", "x", "BOT_COMMAND_INVALID"),
            ("h" * 33, "x", "BOT_COMMAND_INVALID"),
            ("help", "", "BOT_COMMAND_DESCRIPTION_INVALID"),
        ):
            with self.assertRaisesRegex(TelegramBadRequest, reason):
                await self.client.set_my_commands(
                    [BotCommand(command=command, description=description)]
                )


class WebhookTest(AiogramCase):
    async def test_it_keeps_a_webhook_and_tells_of_it(self):
        self.lin.says("waits")

        await self.client.set_webhook(
            "https://nahida.example/hook", secret_token="s-3_c", allowed_updates=["message"]
        )
        info = await self.client.get_webhook_info()

        self.assertEqual((info.url, info.pending_update_count), (self.bot.webhook.url, 1))
        self.assertEqual((info.allowed_updates, info.max_connections), (["message"], 40))

    async def test_it_refuses_webhooks_that_cannot_be(self):
        for url, secret, reason in (
            ("http://nahida.example/hook", "", "An HTTPS URL must be provided"),
            ("https://nahida.example:8000/hook", "", "only on ports"),
            ("nahida", "", "invalid webhook URL"),
            ("https://nahida.example/hook", "s" * 257, "secret token is too long"),
            ("https://nahida.example/hook", "s c", "secret token contains unallowed"),
        ):
            with self.assertRaisesRegex(TelegramBadRequest, reason):
                await self.client.set_webhook(url, secret_token=secret)

    async def test_it_polls_again_without_the_webhook(self):
        self.lin.says("old")
        await self.client.set_webhook("https://nahida.example/hook")

        await self.client.delete_webhook(drop_pending_updates=True)

        self.assertEqual((await self.client.get_webhook_info()).url, "")
        self.assertEqual(await self.client.get_updates(), [])


def heard_by(heard: list[Message]):
    async def hear(message: Message) -> None:
        heard.append(message)

    return hear


def unknown_to_aiogram(value):
    if isinstance(value, list):
        for item in value:
            yield from unknown_to_aiogram(item)
    elif hasattr(value, "model_extra"):
        yield from value.model_extra
        for name in type(value).model_fields:
            yield from unknown_to_aiogram(getattr(value, name))
