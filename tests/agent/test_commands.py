"""Slash commands and the table of rights (DESIGN 5, B071)."""

import pytest

from memory_app.models import MemoryTurn, TurnKind
from nahida.agent import slash
from nahida.agent.intake import Outcome
from nahida.agent.policy import NEEDED, Rights
from sessions_app.models import Chat, Session
from tests.base import ALICE, BOB, GROUP, NahidaTestCase


class CommandTests(NahidaTestCase):
    def test_it_shows_where_we_are(self):
        status = self.say(ALICE, "/status").notice

        self.assertIn(f"chat: {ALICE}", status)
        self.assertIn(f"session: {ALICE} (typed)", status)
        self.assertIn(f"memory read: {ALICE}, global", status)
        self.assertIn("model: main", status)

    def test_it_shows_who_somebody_is(self):
        whoami = self.say(GROUP, "/whoami", who="333", name="Mo").notice

        self.assertIn("account: fake:user:333", whoami)
        self.assertIn("rights here: member", whoami)

    def test_it_answers_at_once_and_leaves_the_model_alone(self):
        accepted = self.say(ALICE, "/help")
        self.work()

        self.assertEqual(accepted.outcome, Outcome.ANSWERED)
        self.assertIn("/new", accepted.notice)
        self.assertEqual(self.sent(ALICE), [accepted.notice])

    def test_it_begins_a_new_conversation_and_keeps_the_old_one(self):
        self.model.enqueue("one", "two")
        self.say(ALICE, "my name is Qi")
        self.work()

        self.say(ALICE, "/new trip to Kyoto")
        self.work()
        self.say(ALICE, "what is my name?")
        self.work()

        self.assertNotIn("Qi", str(self.model.requests[1].messages))
        base, new = Session.objects.order_by("pk")
        self.assertEqual((base.key, new.title), (str(ALICE), "trip to Kyoto"))
        self.assertEqual(new.session_key.base, base.session_key)
        self.assertEqual(new.turns.count(), 2)

    def test_it_lists_every_conversation_of_this_chat_only(self):
        """Twelve times /new gives thirteen sessions here, none of another chat (B021, B022)."""
        self.say(BOB, "/new salary")
        for _ in range(12):
            self.say(ALICE, "/new")
        self.work()

        listed = self.say(ALICE, "/sessions").notice

        self.assertEqual(listed.count(str(ALICE)), 13)
        self.assertNotIn("salary", listed)
        self.assertEqual(listed.count("* "), 1)

    def test_it_looks_no_further_back_than_a_reset(self):
        self.model.enqueue("one", "two")
        self.say(ALICE, "my name is Qi")
        self.work()

        self.say(ALICE, "/reset")
        self.say(ALICE, "what is my name?")
        self.work()

        self.assertNotIn("Qi", str(self.model.requests[1].messages))
        self.assertTrue(MemoryTurn.objects.filter(content="my name is Qi").exists())

    def test_it_keeps_commands_out_of_what_the_model_reads(self):
        self.model.enqueue("one")
        self.say(ALICE, "/whoami")
        self.say(ALICE, "hi")
        self.work()

        self.assertNotIn("whoami", str(self.model.requests[0].messages))

    def test_it_changes_the_model_of_a_chat(self):
        self.say(ALICE, "/model other")
        self.say(ALICE, "/model nonsense")
        self.work()

        self.assertEqual(self.chat(ALICE).model, "other")
        self.assertIn("Available: main, other", self.sent(ALICE)[-1])

    def test_it_refuses_a_member_what_needs_an_admin(self):
        self.say(GROUP, "/model other", who="333")
        self.work()
        self.say(GROUP, "/model other", who="444", is_admin=True)
        self.work()

        refused, done = self.sent(GROUP)
        self.assertEqual(refused, "/model needs an admin of this chat.")
        self.assertIn("now uses other", done)

    def test_it_takes_a_path_for_a_message(self):
        self.model.enqueue("a file")

        self.assertEqual(self.say(ALICE, "/etc/hosts is what?").outcome, Outcome.QUEUED)
        self.work()

        self.assertEqual(MemoryTurn.objects.get(role="user").kind, TurnKind.MESSAGE)

    def test_it_stops_nothing_of_another_chat(self):
        self.say(BOB, "a question")

        self.assertEqual(self.say(ALICE, "/stop").notice, "There was nothing to stop.")
        self.model.enqueue("answered")
        self.work()

        self.assertEqual(self.sent(BOB), ["answered"])

    def test_it_lifts_the_admins_of_an_owners_chat_to_owners(self):
        self.say(ALICE, "/help")
        Chat.objects.filter(chat_key=str(ALICE)).update(is_owner=True)

        self.assertIn("rights here: owner", self.say(ALICE, "/whoami").notice)


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/new", "/new", ""),
        ("/NEW trip", "/new", "trip"),
        ("/model\nother", "/model", "other"),
        ("/start", "/help", ""),
    ],
)
def test_it_reads_a_command(text: str, name: str, argument: str):
    command = slash.parse(text)

    assert command == slash.Command(name, argument)


@pytest.mark.parametrize(
    "text", ["", "new", "/", "/unknown", " /new", "//new", "/newer", "/new@another_bot"]
)
def test_it_reads_no_command_where_there_is_none(text: str):
    assert slash.parse(text) is None


def test_it_has_a_line_in_the_table_of_rights_for_every_command():
    assert set(slash.COMMANDS) <= set(NEEDED)


def test_it_gives_a_turn_without_rights_the_least():
    assert Rights.parse("") == Rights.MEMBER
