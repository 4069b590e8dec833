"""Groups, topics and rights on Telegram: each answer goes where its question came from, and nobody borrows a role."""

from typing import Any

from channels_app.addresses import ChatAddress
from memory_app.models import MemoryTurn
from sessions_app.models import AnswerPolicy, Chat
from tests.fakes.telegram import ANONYMOUS_ADMIN
from tests.telegram.site import TelegramSite
from tests.telegram.stage import LIN, MO

FORUM_ID = -1001234500001
FORUM = ChatAddress("telegram", "group", str(FORUM_ID))


class GroupTests(TelegramSite):
    def setUp(self) -> None:
        super().setUp()
        self.group = self.bot.supergroup(-1001234500002, title="Plain")
        self.address = ChatAddress("telegram", "group", "-1001234500002")

    def test_it_answers_as_a_reply_when_it_is_meant(self):
        self.model.enqueue("here I am")

        self.group.says("just talking", by=MO)
        asked = self.group.says("@nahida_bot are you there?", by=LIN)
        self.hear()
        self.work()

        (answer,) = self.group.answers
        self.assertEqual(answer["text"], "here I am")
        replied = answer["reply_to_message"]["message_id"]
        self.assertEqual(replied, asked["message"]["message_id"])
        self.assertIn("just talking", self.model.requests[0].messages[-1].text)

    def test_it_goes_on_when_the_question_is_deleted(self):
        self.model.enqueue("an answer all the same")
        asked = self.group.says("@nahida_bot hm?", by=LIN)
        self.hear()

        self.group.deletes(asked["message"]["message_id"])
        self.work()

        self.assertEqual(self.group.texts, ["an answer all the same"])

    def test_it_shows_that_it_is_typing(self):
        self.model.enqueue(lambda request: self.typing())

        self.group.says("@nahida_bot think", by=LIN)
        self.hear()
        self.work()

        self.assertEqual(self.group.texts, ["typing"])

    def typing(self) -> str:
        self.bot.wait_until(lambda: bool(self.group.actions))
        return str(self.group.actions[0]["action"])

    def test_it_lets_an_admin_of_the_group_choose_the_model(self):
        self.group.join(MO, "administrator")
        self.say_command(MO)

        self.assertEqual(Chat.objects.get(chat_key=str(self.address)).model, "other")

    def test_it_refuses_that_to_a_member(self):
        self.group.join(MO, "member")
        self.say_command(MO)

        self.assertEqual(Chat.objects.get(chat_key=str(self.address)).model, "")

    def test_it_refuses_that_to_who_hides_behind_the_group(self):
        """An anonymous admin may be one; but nobody can say who he is, and his name is easily borrowed."""
        self.say_command(ANONYMOUS_ADMIN, sender_chat=self.group.wire)

        self.assertEqual(Chat.objects.get(chat_key=str(self.address)).model, "")

    def say_command(self, who: Any, **fields: Any) -> None:
        self.group.says("/model other", by=who, **fields)
        self.hear()
        self.work()

    def test_it_asks_telegram_once_who_is_an_admin(self):
        self.group.join(MO, "administrator")
        for _ in range(3):
            self.say_command(MO)

        self.assertEqual(len(self.bot.calls_of("getChatMember")), 1)

    def test_it_asks_nobody_about_lines_that_are_only_read(self):
        self.group.says("just talking", by=MO)
        self.hear()

        self.assertEqual(self.bot.calls_of("getChatMember"), [])

    def test_it_observes_where_it_is_told_to(self):
        self.group.says("@nahida_bot hello", by=LIN)
        self.model.enqueue("hello")
        self.hear()
        self.work()
        Chat.objects.update(answer_policy=AnswerPolicy.OBSERVE)

        self.group.says("@nahida_bot hello again", by=LIN)
        self.hear()
        self.work()

        self.assertEqual(self.group.texts, ["hello"])
        self.assertEqual(MemoryTurn.objects.filter(state="observed").count(), 1)

    def test_it_joins_the_pictures_of_an_album(self):
        self.model.enqueue("three pictures")
        photos = [{"photo": self.bot.add_photo(b"\xff\xd8\xff" + bytes([i]))} for i in range(3)]

        self.lin.sends_album({**photos[0], "caption": "what are these?"}, *photos[1:])
        self.hear()
        self.pass_the_pause()
        self.work()

        self.assertEqual(self.lin.texts, ["three pictures"])
        self.assertEqual(len(self.model.requests), 1)

    def test_it_joins_a_text_that_the_client_cut_in_two(self):
        self.model.enqueue("I read it all")

        self.lin.says("first half " * 370)
        self.lin.says("second half")
        self.hear()
        self.pass_the_pause()
        self.work()

        self.assertEqual(self.lin.texts, ["I read it all"])


class TopicTests(TelegramSite):
    def setUp(self) -> None:
        super().setUp()
        self.forum = self.bot.supergroup(FORUM_ID, title="Forum", is_forum=True)
        self.topic = self.forum.opens_topic("Help")
        self.other = self.forum.opens_topic("Else")
        self.bot.updates.clear()

    def test_it_answers_in_the_topic_it_was_asked_in(self):
        self.model.enqueue("in help", "in else")

        self.forum.says("@nahida_bot ping", by=LIN, thread=self.topic)
        self.forum.says("@nahida_bot pong", by=LIN, thread=self.other)
        self.hear()
        self.work()

        where = {answer["text"]: answer["message_thread_id"] for answer in self.forum.answers}
        self.assertEqual(where, {"in help": self.topic, "in else": self.other})

    def test_it_keeps_the_histories_of_two_topics_apart(self):
        self.model.enqueue("one", "two")

        self.forum.says("@nahida_bot secret", by=LIN, thread=self.topic)
        self.forum.says("@nahida_bot what did I say?", by=LIN, thread=self.other)
        self.hear()
        self.work()

        self.assertEqual(len(self.lines(FORUM.with_thread(str(self.topic)))), 2)
        self.assertNotIn("secret", str(self.model.requests[1].messages))

    def test_it_answers_in_general_without_a_thread(self):
        """What General's own updates say of a thread may not be sent back."""
        self.model.enqueue("in general")

        self.forum.says("@nahida_bot hello", by=LIN)
        self.hear()
        self.work()

        (sent,) = self.bot.calls_of("sendMessage")
        self.assertNotIn("message_thread_id", sent)
        self.assertEqual(len(self.lines(FORUM)), 2)

    def test_it_falls_back_on_general_when_the_topic_is_deleted(self):
        self.model.enqueue("where am I?")
        self.forum.says("@nahida_bot hello", by=LIN, thread=self.topic)
        self.hear()

        self.forum.deletes_topic(self.topic)
        self.work()

        (answer,) = self.forum.answers
        self.assertNotIn("message_thread_id", answer)
