"""Who is let in, and what is stored of whom is not (DESIGN 5, B017, B069)."""

from channels_app.addresses import ChatAddress
from channels_app.models import Delivery, InboundEvent
from memory_app.models import MemoryTurn
from nahida.agent.intake import Outcome
from sessions_app.models import Access, AnswerPolicy, Chat, Session
from tests.base import ALICE, GROUP, NahidaTestCase

STRANGER = ChatAddress("guarded", "private", "999")
STRANGE_GROUP = ChatAddress("guarded", "group", "7788")


class StrangerTests(NahidaTestCase):
    def test_it_refuses_a_stranger_once_with_a_pairing_code(self):
        """A fresh chat waits for the owner: one polite refusal, one line kept, the rest only counted."""
        first = self.say(STRANGER, "let me in\nplease")
        second = self.say(STRANGER, "hello?")
        self.work()

        chat = self.chat(STRANGER)
        self.assertEqual((first.outcome, second.outcome), (Outcome.REFUSED, Outcome.REFUSED))
        self.assertEqual(len(self.sent(STRANGER)), 1)
        self.assertIn(chat.pairing_code, self.sent(STRANGER)[0])
        self.assertEqual((chat.first_line, chat.refused_count), ("let me in", 2))
        self.assertFalse(MemoryTurn.objects.exists())

    def test_it_answers_once_the_owner_has_allowed_the_chat(self):
        self.say(STRANGER, "let me in")
        Chat.objects.update(access=Access.ALLOWED)
        self.model.enqueue("welcome")

        self.say(STRANGER, "hello again")
        self.work()

        self.assertEqual(self.sent(STRANGER)[-1], "welcome")

    def test_it_does_not_disturb_a_strange_group_that_did_not_address_it(self):
        self.say(STRANGE_GROUP, "chatter", addressed=False)

        chat = self.chat(STRANGE_GROUP)
        self.assertEqual((chat.pairing_code, chat.first_line), ("", ""))
        self.assertFalse(Delivery.objects.exists())

    def test_it_refuses_a_strange_group_that_addresses_it(self):
        self.say(STRANGE_GROUP, "hey bot")
        self.work()

        self.assertEqual(len(self.sent(STRANGE_GROUP)), 1)

    def test_it_gives_a_command_of_a_stranger_no_effect(self):
        accepted = self.say(STRANGER, "/status")

        self.assertEqual(accepted.outcome, Outcome.REFUSED)
        self.assertNotIn("session", accepted.notice)

    def test_it_ignores_a_blocked_chat(self):
        self.say(ALICE, "/help")
        Chat.objects.update(access=Access.BLOCKED)
        turns = MemoryTurn.objects.count()

        accepted = self.say(ALICE, "hello")

        self.assertEqual(accepted.outcome, Outcome.IGNORED)
        self.assertEqual(MemoryTurn.objects.count(), turns)

    def test_it_keeps_a_group_blocked_whoever_writes_and_in_whichever_topic(self):
        """Rules are matched on the chat, not on a session or topic."""
        self.say(GROUP, "/help")
        Chat.objects.update(access=Access.BLOCKED, answer_policy=AnswerPolicy.ALWAYS)

        accepted = self.say(GROUP.with_thread("5"), "hello", who="333")

        self.assertEqual(accepted.outcome, Outcome.IGNORED)

    def test_it_lets_a_thread_inherit_its_parents_access(self):
        parent = Chat.objects.create(
            chat_key="guarded:channel:1",
            channel="guarded",
            target_type="channel",
            target_id="1",
            access=Access.ALLOWED,
        )
        thread = ChatAddress("guarded", "thread", "2")
        Chat.objects.create(
            chat_key=str(thread),
            channel="guarded",
            target_type="thread",
            target_id="2",
            parent=parent,
        )

        allowed = self.say(thread, "hello")
        Chat.objects.filter(pk=parent.pk).update(access=Access.BLOCKED)
        blocked = self.say(thread, "hello")

        self.assertEqual((allowed.outcome, blocked.outcome), (Outcome.QUEUED, Outcome.IGNORED))
        self.model.enqueue("hi")
        Chat.objects.update(access=Access.ALLOWED)
        self.work()


class PolicyTests(NahidaTestCase):
    def policy(self, policy: AnswerPolicy) -> None:
        self.say(GROUP, "/help")
        Chat.objects.update(answer_policy=policy)

    def test_it_answers_a_group_only_when_addressed_and_reads_the_rest(self):
        """A line to others is stored as observed, and shown to the model as context."""
        self.model.enqueue("yes")

        observed = self.say(GROUP, "lunch at noon", addressed=False)
        self.say(GROUP, "is there lunch?", who="333")
        self.work()

        self.assertEqual(observed.outcome, Outcome.OBSERVED)
        self.assertIn("lunch at noon", str(self.model.requests[0].messages))
        self.assertEqual(self.sent(GROUP), ["yes"])

    def test_it_stores_nothing_else_where_the_policy_says_so(self):
        self.policy(AnswerPolicy.ADDRESSED_ONLY)
        turns = MemoryTurn.objects.count()

        accepted = self.say(GROUP, "between us", addressed=False)

        self.assertEqual(accepted.outcome, Outcome.IGNORED)
        self.assertEqual(MemoryTurn.objects.count(), turns)

    def test_it_never_answers_where_it_only_reads(self):
        self.policy(AnswerPolicy.OBSERVE)

        accepted = self.say(GROUP, "hey bot")
        self.work()

        self.assertEqual(accepted.outcome, Outcome.OBSERVED)

    def test_it_answers_everything_where_the_policy_says_so(self):
        self.policy(AnswerPolicy.ALWAYS)
        self.model.enqueue("hm")

        self.say(GROUP, "just talking", addressed=False)
        self.work()

        self.assertEqual(self.sent(GROUP)[-1], "hm")


class IntakeTests(NahidaTestCase):
    def test_it_stores_a_message_that_comes_three_times_once(self):
        """The dedupe row is written by the transaction that accepts (B099)."""
        self.model.enqueue("once")

        outcomes = [self.say(ALICE, "hi", event_key="same").outcome for _ in range(2)]
        self.work()
        outcomes.append(self.say(ALICE, "hi", event_key="same").outcome)
        self.work()

        self.assertEqual(outcomes, [Outcome.QUEUED, Outcome.DUPLICATE, Outcome.DUPLICATE])
        self.assertEqual(self.sent(ALICE), ["once"])

    def test_it_takes_the_same_event_key_on_two_channels_as_two_messages(self):
        other = ChatAddress("fake-alt", "private", "10001")
        self.model.enqueue("a", "b")

        self.say(ALICE, "hi", event_key="1")
        self.say(other, "hi", event_key="1")
        self.work()

        self.assertEqual(InboundEvent.objects.count(), 2)
        self.assertEqual((self.sent(ALICE), self.sent(other)), (["a"], ["b"]))

    def test_it_stores_nothing_of_a_message_without_a_chat_type(self):
        """Nothing is ever guessed to be private."""
        with self.assertLogs("nahida.agent.intake", "WARNING"):
            accepted = self.say(ChatAddress("fake", "unknown", "10001"), "hi")

        self.assertEqual(accepted.outcome, Outcome.IGNORED)
        self.assertFalse(Chat.objects.exists() or InboundEvent.objects.exists())

    def test_it_cleans_halves_of_emoji_and_nul_bytes_on_the_way_in(self):
        """B108 and B110: what no database or provider takes never gets in."""
        self.model.enqueue("ok")

        self.say(ALICE, "hi\x00there \ud83d", name="x\ud83d\x00", chat_title="t\x00")
        self.work()

        turn = MemoryTurn.objects.get(role="user")
        self.assertEqual((turn.content, turn.sender_name), ("hithere \ufffd", "x\ufffd"))

    def test_it_takes_nothing_from_an_id_that_cannot_be_stored(self):
        """The same on both databases, though SQLite could keep it."""
        with self.assertLogs("nahida.agent.intake", "WARNING"):
            accepted = self.say(ChatAddress("fake", "private", "1\x00"), "hi")

        self.assertEqual(accepted.outcome, Outcome.IGNORED)

    def test_it_makes_one_session_for_a_chat(self):
        self.model.enqueue("1", "2")
        self.say(ALICE, "one")
        self.work()
        self.say(ALICE, "two")
        self.work()

        self.assertEqual([session.key for session in Session.objects.all()], [str(ALICE)])
        self.assertIn("one", str(self.model.requests[1].messages))

    def test_it_ignores_the_bots_own_echo(self):
        from channels_app.messages import Sender

        accepted = self.say(ALICE, "my own words", sender=Sender("fake:user:1", "me", is_self=True))

        self.assertEqual(accepted.outcome, Outcome.IGNORED)
