"""A message in, an answer out."""

from django.conf import settings

from memory_app.models import ModelCall
from tests.base import ALICE, BOB, GROUP, NahidaTestCase
from tests.fakes.model import call


class TurnTests(NahidaTestCase):
    def test_it_answers_a_message_once(self):
        """One message is one turn, one request, one answer, one delivery."""
        self.model.enqueue("Hello Alice.")

        self.say(ALICE, "hi")
        self.work()

        self.assertEqual(self.sent(ALICE), ["Hello Alice."])
        self.assertEqual(
            self.lines(ALICE), [("user", "hi", "done"), ("assistant", "Hello Alice.", "done")]
        )
        self.assertEqual(ModelCall.objects.count(), 1)

    def test_it_keeps_chats_of_one_number_apart(self):
        """Private 10001 and group 10001 never see each other, and bob sees neither."""
        self.model.enqueue("noted", "noted too", "you said nothing")

        self.say(ALICE, "my locker code is 7391")
        self.work()
        self.say(GROUP, "the meeting is at nine")
        self.work()
        self.say(BOB, "what did we just talk about?")
        self.work()

        group, bob = (self.model.requests[index].messages for index in (1, 2))
        self.assertNotIn("7391", str(group))
        self.assertNotIn("7391", str(bob))
        self.assertNotIn("meeting", str(bob))

    def test_it_lets_the_model_send_to_its_own_chat(self):
        self.model.enqueue(call("message", target=str(ALICE), text="first this"), "and the answer")

        self.say(ALICE, "hi")
        self.work()

        self.assertEqual(self.model.requests[1].last, f"Message sent to {ALICE}")
        self.assertEqual(self.sent(ALICE), ["first this", "and the answer"])

    def test_it_says_so_when_an_answer_is_longer_than_may_be_sent(self):
        """B112: what is cut off is not cut in silence."""
        limit = settings.NAHIDA.agent.answer_limit
        self.model.enqueue("long " * limit)

        self.say(ALICE, "everything, please")
        self.work()

        (answer,) = self.answers(ALICE)
        self.assertTrue(answer.endswith("[The answer reached its longest length.]"))
        self.assertLess(len(answer), limit + 100)
