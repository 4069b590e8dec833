"""D4: the platform says that a chat has moved; what waits follows and is tried once more."""

from channels_app import outbox
from channels_app.addresses import ChatAddress
from channels_app.channels import SendError
from channels_app.models import DeliveryState
from nahida.agent.delivery import move_chat
from sessions_app.models import ChatAlias, MigrationLog
from tests.base import ALICE, GROUP
from tests.outbox.stage import NOT_SENT, TIMED_OUT, OutboxTestCase

OLD = ChatAddress("fake", "group", "-7001")
NEW = ChatAddress("fake", "group", "-1007001")
THIRD = ChatAddress("fake", "group", "-1009999")


def moved(to: ChatAddress) -> SendError:
    return SendError("group chat was upgraded to a supergroup chat", migrated_to=to)


class MovedTests(OutboxTestCase):
    def test_it_follows_and_tries_once_more_at_once(self):
        one, behind = self.post("first", to=OLD), self.post("second", to=OLD)
        self.plan(moved(NEW))

        self.deliver(one)
        self.deliver(behind)

        self.assertEqual(self.sent(NEW), ["first", "second"])
        self.assertEqual(self.sent(OLD), [])
        self.assertEqual(self.states(one, behind), [DeliveryState.SENT] * 2)
        self.assertEqual((one.address, one.attempts), (str(NEW), 2))
        self.assertEqual(ChatAlias.objects.get().address, str(OLD))
        self.assertEqual(MigrationLog.objects.get().new_key, str(NEW))

    def test_it_goes_on_with_the_part_that_did_not_arrive(self):
        one = self.post_parts("a", "b", to=OLD)
        self.plan(lambda message: None, moved(NEW))

        self.deliver(one)

        self.assertEqual((self.letters(OLD), self.letters(NEW)), ("a", "b"))

    def test_it_answers_no_message_of_the_old_chat_by_its_number(self):
        """Message ids do not carry over: in the new chat that number is somebody else's message."""
        one = self.post(to=OLD, reply_to="7")
        self.plan(moved(NEW))

        self.deliver(one)

        (message,) = self.messages(NEW)
        self.assertEqual(message.reply_to, "")

    def test_it_answers_a_message_in_mid_turn_in_the_new_chat(self):
        def move(request: object) -> str:
            move_chat(OLD, NEW)
            return "here I am"

        self.model.enqueue(move)

        self.say(OLD, "where are you?", message_id="7")
        self.work()

        (message,) = self.messages(NEW)
        self.assertEqual((message.part.text, message.reply_to), ("here I am", ""))

    def test_it_keeps_its_topic(self):
        one = self.post(to=OLD.with_thread("5"))
        self.plan(moved(NEW))

        self.deliver(one)

        self.assertEqual(self.sent(NEW.with_thread("5")), ["hello"])

    def test_it_goes_behind_what_waits_at_the_new_address(self):
        """Both chats exist: they become one, with one queue in order of ids."""
        earlier = self.post("earlier", to=NEW)
        one = self.post("later", to=OLD)
        self.plan(moved(NEW))

        self.deliver(one)
        self.assertEqual(self.sent(NEW), [])
        self.deliver(earlier, one)

        self.assertEqual(self.sent(NEW), ["earlier", "later"])

    def test_it_does_not_chase_a_chat_that_moves_again(self):
        """Two addresses that each name the other must not be asked for ever."""
        one = self.post(to=OLD)
        self.plan(moved(NEW), moved(OLD))

        self.deliver(one)

        self.assertEqual(self.state(one), DeliveryState.FAILED)
        self.assertEqual(self.chat(NEW).chat_key, str(NEW))
        self.assertEqual((self.sent(OLD), self.sent(NEW)), ([], []))

    def test_it_treats_the_second_attempt_like_any_other(self):
        for error, state in ((NOT_SENT, DeliveryState.PENDING), (TIMED_OUT, DeliveryState.UNKNOWN)):
            with self.subTest(state):
                old, new = (ChatAddress("fake", "group", f"{state}{at}") for at in ("", "-new"))
                one = self.post(to=old)
                self.plan(moved(new), error)

                self.deliver(one)

                self.assertEqual((self.state(one), one.address), (state, str(new)))

    def test_it_follows_when_the_worker_died_before_it_could(self):
        """The platform is simply asked again."""
        one = self.post(to=OLD)
        self.plan(moved(NEW), moved(NEW))
        outbox.send(one.pk)
        self.assertEqual(self.state(one), DeliveryState.PENDING)

        self.work()

        self.assertEqual(self.sent(NEW), ["hello"])

    def test_it_sends_the_next_part_where_the_chat_is_by_then(self):
        one = self.post_parts("a", "b", to=OLD)
        self.plan(lambda message: move_chat(OLD, NEW))

        self.deliver(one)

        self.assertEqual((self.letters(OLD), self.letters(NEW)), ("a", "b"))

    def test_it_takes_no_old_news(self):
        """A late answer about an address that the chat left long ago moves nothing."""
        self.post(to=OLD)
        move_chat(OLD, NEW)
        move_chat(NEW, THIRD)

        move_chat(OLD, NEW)

        self.assertEqual(self.chat(THIRD).merged_into, None)
        self.assertEqual(MigrationLog.objects.count(), 2)

    def test_it_moves_no_chat_of_the_same_number(self):
        private, one = self.post(to=ALICE), self.post(to=GROUP)
        self.plan(moved(NEW))

        self.deliver(one, private)

        self.assertEqual((self.sent(NEW), self.sent(ALICE)), (["hello"], ["hello"]))
        self.assertEqual(self.chat(ALICE).chat_key, str(ALICE))
