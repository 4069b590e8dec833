"""What happens between looking and locking: a move looks again, and nothing is left behind."""

from channels_app.addresses import ChatAddress
from channels_app.models import Delivery
from memory_app.models import MemoryTurn
from sessions_app.models import Chat, ChatAlias, Lane, MigrationLog, Session
from sessions_app.routing import find_chat
from tests.sessions_app.moving import NEW, OLD, MovingTestCase, before_statement

THIRD = ChatAddress("fake", "group", "3")
LOCKING_LANES = ('FROM "sessions_app_lane"', "ORDER BY")
LOCKING_CHATS = ('FROM "sessions_app_chat"', '"merged_into_id" IS NULL')
LOOKING_FOR_A_LANE = ('FROM "sessions_app_lane"', '"thread" = ')


class MeanwhileTests(MovingTestCase):
    def test_it_renames_a_topic_that_appears_while_it_locks(self):
        """Its delivery would otherwise wait at an address that nobody has."""
        self.append(OLD, "hi")
        topic = OLD.with_thread("9")

        with before_statement(*LOCKING_CHATS, act=lambda: self.post(topic)):
            self.move()

        self.assertEqual(Delivery.objects.get().address, str(NEW.with_thread("9")))
        self.assertEqual(self.lane(NEW.with_thread("9")).chat, self.chat(NEW))

    def test_it_merges_a_topic_that_appears_while_it_locks(self):
        self.append(OLD, "hi")
        self.append(NEW, "hi")
        topic = OLD.with_thread("9")

        with before_statement(*LOCKING_CHATS, act=lambda: self.post(topic)):
            self.move()

        self.assertEqual(Delivery.objects.get().address, str(NEW.with_thread("9")))
        self.assertFalse(Lane.objects.exclude(chat=self.chat(NEW)).exists())

    def test_it_moves_once_when_somebody_else_was_quicker(self):
        self.append(OLD, "hi")

        with before_statement(*LOCKING_LANES, act=self.move):
            self.move()

        self.assertEqual(MigrationLog.objects.count(), 1)
        self.assertEqual(ChatAlias.objects.get().address, str(OLD))
        self.assertEqual(find_chat(OLD), self.chat(NEW))

    def test_it_merges_once_when_somebody_else_was_quicker(self):
        self.append(OLD, "hi")
        self.append(NEW, "hi")

        with before_statement(*LOCKING_LANES, act=self.move):
            self.move()

        self.assertEqual(MigrationLog.objects.count(), 1)
        self.assertEqual(Lane.objects.count(), 1)

    def test_it_merges_with_no_chat_that_has_just_left(self):
        """The address is free by then, so it is a rename."""
        self.append(OLD, "hi")
        self.append(NEW, "hi")
        leaving = self.chat(NEW)

        with before_statement(*LOCKING_LANES, act=lambda: self.move(THIRD, chat=leaving)):
            left = self.move()

        self.assertNotEqual(left, leaving)
        self.assertEqual((find_chat(NEW), find_chat(THIRD)), (left, leaving))
        self.assertEqual(Chat.objects.filter(merged_into=None).count(), 2)

    def test_it_joins_a_chat_that_was_just_made(self):
        self.append(OLD, "hi")

        with before_statement(*LOCKING_LANES, act=lambda: self.append(NEW, "first here")):
            left = self.move()

        self.assertEqual(left.chat_key, str(NEW))
        texts = MemoryTurn.objects.filter(lane=self.lane(NEW)).values_list("content", flat=True)
        self.assertEqual(sorted(texts), ["first here", "hi"])

    def test_it_makes_a_lane_for_the_chat_as_it_is_by_then(self):
        """Not a session under the key of an address that the chat has left."""
        self.append(OLD, "hi")
        topic = OLD.with_thread("9")

        with before_statement(*LOOKING_FOR_A_LANE, act=self.move):
            self.append(topic, "first in its topic")

        self.assertTrue(Session.objects.filter(key=str(NEW.with_thread("9"))).exists())
        self.assertFalse(Session.objects.filter(key=str(topic)).exists())

    def test_it_makes_no_lane_for_a_chat_that_was_merged_away(self):
        self.append(OLD, "hi")
        self.append(NEW, "hi")

        with before_statement(*LOOKING_FOR_A_LANE, act=self.move):
            self.append(OLD.with_thread("9"), "first in its topic")

        self.assertEqual(self.lane(NEW.with_thread("9")).chat, self.chat(NEW))
        self.assertFalse(Lane.objects.filter(chat=self.chat(OLD)).exists())
