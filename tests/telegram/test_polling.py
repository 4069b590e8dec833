"""Long polling: what is heard is stored before it is confirmed, once, by one process."""

from unittest import mock

from channels_app.models import InboundEvent
from memory_app.models import MemoryTurn
from nahida.agent import slash
from nahida.ops import listeners
from tests.fakes.telegram import conflict
from tests.fakes.telegram.bot import Webhook
from tests.telegram.site import LIN, TelegramSite
from tests.telegram.stage import LIN as LIN_HERSELF


class PollingTests(TelegramSite):
    def test_it_answers_what_a_person_says(self):
        self.model.enqueue("hello, Lin")

        self.lin.says("hi")
        self.hear()
        self.work()

        self.assertEqual(self.lin.texts, ["hello, Lin"])
        self.assertEqual(self.bot.updates, [])

    def test_it_stores_a_repeated_update_once(self):
        """The same update again after a restart, and the same message in another update."""
        self.model.enqueue("once")
        update = self.lin.says("hi")

        self.hear()
        self.bot.push("message", update["message"])
        self.forget_channels()
        self.hear()
        self.work()

        self.assertEqual(MemoryTurn.objects.filter(role="user").count(), 1)
        self.assertEqual(self.lin.texts, ["once"])

    def test_it_confirms_nothing_that_was_not_stored(self):
        """A database that breaks in between costs a moment, not the message."""
        self.lin.says("hi")

        with mock.patch.object(InboundEvent, "save", side_effect=MemoryError("no more")):
            self.hear(lambda: self.bot.calls_of("getUpdates"))
        self.assertEqual(len(self.bot.updates), 1)
        self.hear()

        self.assertEqual(MemoryTurn.objects.get().content, "hi")

    def test_it_tells_telegram_what_it_can_be_told(self):
        self.hear()

        (scope,) = self.bot.commands
        listed = {
            command["command"]: command["description"] for command in self.bot.commands[scope]
        }
        self.assertEqual(listed, dict(slash.HELP))

    def test_it_says_who_it_is_and_what_waits(self):
        self.hear()

        state = self.state()
        self.assertEqual((state.status, state.error), ("polling", ""))
        self.assertIn("@nahida_bot", state.detail["name"])
        self.assertEqual((state.detail["mode"], state.detail["pending"]), ("polling", 0))

    def test_it_says_that_privacy_mode_hides_messages(self):
        self.bot.me["can_read_all_group_messages"] = False

        self.hear()

        self.assertIn("privacy mode is on", self.state().detail["hints"][0])

    def test_it_says_so_when_another_program_polls(self):
        self.bot.fail("getUpdates", conflict("terminated by other getUpdates request"), times=9)

        self.hear_status("conflict")

        self.assertIn("stop", self.state().error)

    def test_it_leaves_the_webhook_of_another_program_and_says_so(self):
        self.bot.webhook = Webhook("https://elsewhere.example/hook", "")

        self.hear_status("conflict")

        self.assertEqual(self.bot.calls_of("deleteWebhook"), [])

    def test_it_says_so_when_its_token_is_no_longer_good(self):
        self.server.remove_bot(self.bot)

        self.hear_status("unauthorized")

        self.assertNotIn(self.bot.token, self.state().error)

    def test_it_hears_again_when_telegram_is_back(self):
        self.server.go_down()
        with mock.patch.object(listeners, "FIRST_PAUSE_S", 0.01):
            self.hear_status("unreachable")
            self.server.come_up()
            self.hear()

        self.assertEqual((self.state().status, self.state().error), ("polling", ""))

    def test_it_goes_on_after_an_update_that_nobody_can_read(self):
        self.bot.push("message", {"chat": "?"})
        self.lin.says("still there?")

        self.hear()

        self.assertEqual(MemoryTurn.objects.get().content, "still there?")


class TwoBotsTests(TelegramSite):
    def test_it_keeps_two_bots_apart(self):
        """The same person talks to both: two chats, two histories, and each answer leaves by its own bot."""
        other = self.server.add_bot("42000002:AAother", username="other_bot")
        lin_there = other.private(LIN_HERSELF)
        self.configure(telegram=self.config(self.bot), second=self.config(other))
        self.model.enqueue(lambda request: f"heard {request[-1].text[-5:]}")
        self.model.enqueue(lambda request: f"heard {request[-1].text[-5:]}")

        self.lin.says("alpha")
        lin_there.says("omega")
        self.hear(lambda: self.all_told() and other.waiting == 1 and not other.updates)
        self.work()

        self.assertEqual(self.lin.texts, ["heard alpha"])
        self.assertEqual(lin_there.texts, ["heard omega"])
        self.assertEqual(len(self.lines(LIN)), 2)
