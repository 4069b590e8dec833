"""A group becomes a supergroup: whichever sign comes first, everything follows, once."""

from typing import Any

from channels_app.addresses import ChatAddress
from memory_app.models import MemoryItem, MemoryTurn
from scheduler_app.models import CronJob, JobMode
from sessions_app.models import Access, Chat, ChatAlias, MigrationLog
from tests.telegram.site import TelegramSite
from tests.telegram.stage import LIN

OLD_ID, NEW_ID = -7001, -1000000007001
OLD, NEW = (ChatAddress("telegram", "group", str(number)) for number in (OLD_ID, NEW_ID))


class MoveTests(TelegramSite):
    def setUp(self) -> None:
        super().setUp()
        self.group = self.bot.group(OLD_ID, title="Old")
        self.model.enqueue("first answer")
        self.group.says("@nahida_bot hello", by=LIN)
        self.group.says("/new the second talk", by=LIN)
        self.hear()
        self.work()
        chat = Chat.objects.get(chat_key=str(OLD))
        self.chat_pk = chat.pk
        for number in range(3):
            MemoryItem.objects.create(
                scope_type="chat", scope_id=str(OLD), kind="fact", content=f"fact {number}"
            )
        self.job = CronJob.objects.create(
            chat=chat, prompt="ping", mode=JobMode.INTERVAL, interval_seconds=3600
        )

    def upgrade(self, *signs: str) -> Any:
        return self.group.upgrades(NEW_ID, signs=signs)

    def assert_everything_followed(self) -> None:
        chat = Chat.objects.get(chat_key=str(NEW))
        self.job.refresh_from_db()
        self.assertEqual(self.job.chat, chat)
        self.assertEqual(chat.access, Access.ALLOWED)
        items = MemoryItem.objects.filter(scope_id=str(NEW))
        self.assertEqual(items.count(), 3)
        lane = self.lane(NEW)
        self.assertEqual(lane.active_session.title, "the second talk")
        self.assertTrue(lane.active_session.key.startswith(str(NEW)))
        self.assertEqual(ChatAlias.objects.get().address, str(OLD))
        self.assertEqual(MigrationLog.objects.count(), 1)
        self.assertFalse(Chat.objects.filter(chat_key=str(OLD), merged_into=None).exists())

    def test_it_follows_the_sign_of_the_old_group(self):
        self.upgrade("to")
        self.hear()

        self.assert_everything_followed()

    def test_it_follows_the_sign_of_the_new_group(self):
        self.upgrade("from")
        self.hear()

        self.assert_everything_followed()

    def test_it_follows_once_when_both_signs_come(self):
        self.upgrade("from", "to")
        self.hear()

        self.assert_everything_followed()

    def test_it_follows_a_send_that_fails_and_repeats_it_once(self):
        self.model.enqueue("an answer on its way")
        self.group.says("@nahida_bot one more", by=LIN)
        self.hear()

        new = self.upgrade()
        self.work()

        self.assertEqual(new.texts, ["an answer on its way"])
        self.assert_everything_followed()

    def test_it_answers_in_the_new_group_what_was_asked_in_the_old_one(self):
        new: Any = None

        def upgrade(request: object) -> str:
            nonlocal new
            new = self.upgrade("to")
            self.hear()
            return "still here"

        self.model.enqueue(upgrade)
        self.group.says("@nahida_bot wait for it", by=LIN)
        self.hear()
        self.work()

        (answer,) = new.answers
        self.assertEqual(answer["text"], "still here")
        self.assertNotIn("reply_to_message", answer)
        self.assert_everything_followed()

    def test_it_joins_what_was_said_in_the_new_group_before_the_sign(self):
        """The sign is missed, people talk on; a send to the old address tells at last."""
        self.model.enqueue("who are you?", "late news")
        new = self.upgrade()
        new.says("@nahida_bot hello from here", by=LIN)
        self.hear()
        self.work()

        self.group_says_late()
        self.work()

        self.assertEqual(new.texts, ["who are you?", "late news"])
        chats = Chat.objects.filter(merged_into=None, channel="telegram")
        self.assertEqual([chat.chat_key for chat in chats], [str(NEW)])
        self.assertFalse(MemoryTurn.objects.exclude(lane__chat=chats[0]).exists())

    def group_says_late(self) -> None:
        """An update of the old group that was queued before the upgrade."""
        message = {
            "message_id": 99,
            "from": LIN,
            "chat": {"id": OLD_ID, "type": "group", "title": "Old"},
            "date": 1790000000,
            "text": "/ask@nahida_bot late?",
            "entities": [{"type": "bot_command", "offset": 0, "length": 15}],
        }
        self.bot.push("message", message)
        self.hear()
