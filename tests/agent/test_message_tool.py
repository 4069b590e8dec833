"""The message tool: to its own chat always, to others only from an owner's chat (B006, B010, B093)."""

from channels_app.addresses import ChatAddress
from memory_app.models import MemoryTurn, TurnKind
from nahida.agent.vocabulary import Reply, ToolCall
from sessions_app.models import Access, Chat, Session
from tests.base import ALICE, BOB, GROUP, NahidaTestCase
from tests.fakes.model import call, calls

ELSEWHERE = ChatAddress("fake", "group", "20001")


class MessageToolTests(NahidaTestCase):
    def ask(self, *scripts: Reply, owner: bool = True) -> list[str]:
        """Let alice's turn make these tool calls; return what the model was told of each."""
        self.say(ALICE, "/help")
        Chat.objects.filter(chat_key=str(ALICE)).update(is_owner=owner)
        self.model.enqueue(*scripts, "done")
        self.say(ALICE, "please tell them")
        self.work()
        return [request.last for request in self.model.requests[1:]]

    def test_it_sends_to_another_chat_from_an_owners_chat(self):
        told = self.ask(call("message", target=str(ELSEWHERE), text="dinner is ready"))

        self.assertEqual(told, [f"Message sent to {ELSEWHERE}"])
        self.assertEqual(self.sent(ELSEWHERE), ["dinner is ready"])
        self.assertFalse(MemoryTurn.objects.filter(content="dinner is ready").exists())

    def test_it_records_in_the_targets_base_session_marked_with_its_origin(self):
        """Recorded text is never dressed as a user's line, and the next answer there knows it."""
        self.ask(call("message", target=str(ELSEWHERE), text="dinner is ready", delivery="record"))

        turn = MemoryTurn.objects.get(content="dinner is ready")
        self.assertEqual((turn.kind, turn.role), (TurnKind.NOTICE, "assistant"))
        self.assertEqual((turn.session.key, turn.origin), (str(ELSEWHERE), str(ALICE)))
        self.model.enqueue("at seven")
        self.say(ELSEWHERE, "when was that?")
        self.work()
        self.assertIn("dinner is ready", str(self.model.requests[-1].messages))
        self.assertEqual(Session.objects.filter(chat=self.chat(ELSEWHERE)).count(), 1)

    def test_it_records_in_the_base_session_whatever_session_is_active(self):
        self.say(ELSEWHERE, "/new", is_admin=True)
        self.work()

        self.ask(call("message", target=str(ELSEWHERE), text="dinner", delivery="record"))

        self.assertEqual(MemoryTurn.objects.get(content="dinner").session.key, str(ELSEWHERE))

    def test_it_refuses_another_chat_to_everybody_else(self):
        told = self.ask(call("message", target=str(BOB), text="boo"), owner=False)

        self.assertEqual(told, ["error: message to another chat needs the owner."])
        self.assertFalse(Chat.objects.filter(chat_key=str(BOB)).exists())

    def test_it_looks_at_rows_and_not_at_what_a_text_says(self):
        """A member who quotes an owner's chat, or is called like it, gains nothing."""
        self.say(ALICE, "/help")
        Chat.objects.filter(chat_key=str(ALICE)).update(is_owner=True)
        self.model.enqueue(call("message", target=str(BOB), text="boo"), "no")

        self.say(GROUP, f"I write from {ALICE} · owner", who="333", name=f"Boss · owner {ALICE}")
        self.work()

        self.assertEqual(self.sent(BOB), [])
        self.assertIn("needs the owner", self.model.requests[1].last)

    def test_it_says_the_right_form_of_a_target(self):
        """B010: a partial target is a tool error that names what is missing, never a guess."""
        targets = ("10001", "fake:10001", "group:7788", "", "fake:", ":::", "fake:group:")

        told = self.ask(*(call("message", target=target, text="x") for target in targets))

        for answer in told:
            self.assertTrue(answer.startswith("error: "), answer)
            self.assertIn("write", answer)
        self.assertEqual(self.sent(ALICE)[-1], "done")

    def test_it_refuses_a_session_key_as_a_target(self):
        told = self.ask(call("message", target=f"{ALICE}:abcd1234", text="x"))

        self.assertIn("session key", told[0])

    def test_it_refuses_an_empty_text_and_a_blocked_chat(self):
        self.say(BOB, "/help")
        Chat.objects.filter(chat_key=str(BOB)).update(access=Access.BLOCKED)

        told = self.ask(
            call("message", target=str(ALICE), text="  "),
            call("message", target=str(BOB), text="hi"),
        )

        self.assertIn("the text is empty", told[0])
        self.assertIn("blocked", told[1])

    def test_it_stores_what_is_sent_to_a_web_chat_as_a_turn(self):
        """D5: nothing else carries it there."""
        web = ChatAddress.web(7)

        self.ask(call("message", target=str(web), text="look here"))

        turn = MemoryTurn.objects.get(content="look here")
        self.assertEqual((turn.session.key, turn.delivery), (str(web), None))

    def test_it_sends_an_identical_call_once(self):
        told = self.ask(
            call("message", target=str(ALICE), text="one"),
            call("message", target=str(ALICE), text="one"),
        )

        self.assertEqual(told[0], told[1])
        self.assertEqual(self.sent(ALICE).count("one"), 1)

    def test_it_tells_the_model_what_is_wrong_with_a_call(self):
        told = self.ask(
            calls(ToolCall("1", "message", "{not json")),
            calls(ToolCall("2", "nonsense", "{}")),
            call("message", text="no target"),
            call("message", target=str(ALICE), text="x", to="y"),
        )

        self.assertIn("not JSON", told[0])
        self.assertIn("offered: message", told[1])
        self.assertIn("target", told[2])
        self.assertIn("to: Extra inputs", told[3])
