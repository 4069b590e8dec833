"""Whatever a channel hears is acted on: each kind of event where it belongs."""

from channels_app.addresses import ChatAddress
from channels_app.messages import ChannelNews, ChatMoved, Skipped
from channels_app.models import ChannelState
from memory_app.models import MemoryTurn
from nahida.agent.receive import receive
from tests.base import GROUP, NahidaTestCase, message

NEW = ChatAddress("fake", "group", "-10010001")


class ReceiveTests(NahidaTestCase):
    def test_it_stores_a_message(self):
        receive("fake", message(GROUP, "hello"))

        self.assertEqual(MemoryTurn.objects.get().content, "hello")

    def test_it_follows_a_chat_that_moved(self):
        receive("fake", message(GROUP, "before"))

        receive("fake", ChatMoved(GROUP, NEW))
        receive("fake", message(NEW, "after"))

        turns = MemoryTurn.objects.order_by("pk")
        self.assertEqual([str(turn.lane) for turn in turns], [str(NEW)] * 2)

    def test_it_hears_of_the_new_chat_before_the_move(self):
        """The signs of an upgrade come in any order: what was begun at the new address joins the old."""
        receive("fake", message(GROUP, "before"))
        receive("fake", message(NEW, "after"))

        receive("fake", ChatMoved(GROUP, NEW))
        receive("fake", ChatMoved(GROUP, NEW))

        sessions = set(MemoryTurn.objects.values_list("session__key", flat=True))
        self.assertEqual(sessions, {str(NEW)})

    def test_it_keeps_what_a_channel_says_of_itself(self):
        receive("fake", ChannelNews("polling", detail={"name": "Nahida", "pending": 3}))
        receive("fake", ChannelNews("conflict", "another program polls", {"pending": 0}))

        state = ChannelState.objects.get(channel="fake")
        self.assertEqual((state.status, state.error), ("conflict", "another program polls"))
        self.assertEqual((state.detail["name"], state.detail["pending"]), ("Nahida", 0))

    def test_it_remembers_the_last_error_of_a_channel_that_is_well_again(self):
        receive("fake", ChannelNews("offline", "kicked by another device"))
        receive("fake", ChannelNews("listening"))

        state = ChannelState.objects.get(channel="fake")
        self.assertEqual((state.status, state.error), ("listening", ""))
        self.assertEqual(state.detail["last_error"], "kicked by another device")

    def test_it_stores_nothing_of_what_concerns_nobody(self):
        with self.assertLogs("nahida.agent.receive", "INFO") as logs:
            receive("fake", Skipped("a poll"))

        self.assertIn("a poll", logs.output[0])
        self.assertFalse(MemoryTurn.objects.exists())
