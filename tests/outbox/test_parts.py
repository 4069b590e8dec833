"""D3: one delivery, several parts; a retry goes on where it stood."""

from channels_app.channels import Refused, SendError
from channels_app.models import Delivery, DeliveryState
from nahida.agent.turns import NOTHING_SAID
from tests.base import ALICE
from tests.outbox.stage import BAD_MARKUP, NOT_SENT, REFUSED, TIMED_OUT, OutboxTestCase


class PartTests(OutboxTestCase):
    def test_it_cuts_a_long_text_at_the_limit_of_its_channel(self):
        one = self.post("word " * 2000)

        self.deliver(one)

        self.assertGreater(len(self.sent(ALICE)), 1)
        self.assertTrue(all(len(text) <= 4000 for text in self.sent(ALICE)))
        self.assertEqual("".join(self.sent(ALICE)).split(), ["word"] * 2000)

    def test_it_answers_a_message_with_its_first_part_only(self):
        one = self.post_parts("a", "b", reply_to="77")

        self.deliver(one)

        self.assertEqual([message.reply_to for message in self.messages(ALICE)], ["77", ""])
        self.assertEqual(self.state(one), DeliveryState.SENT)
        self.assertEqual(one.message_ids, ["fake-1", "fake-2"])

    def test_it_goes_on_where_it_stood(self):
        one, behind = self.post_parts("a", "b", "c"), self.post("z")
        self.plan(lambda message: None, NOT_SENT)
        self.deliver(one, behind)
        self.assertEqual(self.letters(), "a")
        self.assertEqual((self.state(one), one.next_part), (DeliveryState.PENDING, 1))

        self.make_due(one)
        self.deliver(one, behind)

        self.assertEqual(self.letters(), "abcz")

    def test_it_sends_refused_markup_once_more_as_plain_text(self):
        one = self.post("*half a bold")
        self.plan(BAD_MARKUP)

        self.deliver(one)

        (message,) = self.messages(ALICE)
        self.assertEqual((message.part.text, message.part.plain), ("*half a bold", True))
        self.assertEqual((self.state(one), one.attempts), (DeliveryState.SENT, 1))

    def test_it_sends_only_the_refused_part_as_plain_text(self):
        one = self.post_parts("a", "b", "c")
        self.plan(lambda message: None, BAD_MARKUP)

        self.deliver(one)

        plain = [message.part.plain for message in self.messages(ALICE)]
        self.assertEqual(plain, [False, True, False])

    def test_it_fails_what_is_refused_as_plain_text_too(self):
        """The platform has said that it took neither, so nothing is unknown."""
        one = self.post()
        self.plan(BAD_MARKUP, BAD_MARKUP)

        self.deliver(one)

        self.assertEqual(self.state(one), DeliveryState.FAILED)
        self.assertEqual((self.sent(ALICE), len(self.platform().plan)), ([], 0))

    def test_it_knows_nothing_of_a_plain_text_that_timed_out(self):
        one = self.post()
        self.plan(BAD_MARKUP, TIMED_OUT)

        self.deliver(one)

        self.assertEqual(self.state(one), DeliveryState.UNKNOWN)

    def test_it_sends_no_plain_text_when_the_lease_ran_out(self):
        one = self.post()

        self.finish_late(one, then=SendError("can't parse", refused=Refused.MARKUP))

        self.assertEqual(self.sent(ALICE), [])
        self.assertEqual(self.state(one), DeliveryState.UNKNOWN)

    def test_it_says_why_a_part_failed_and_sends_none_behind_it(self):
        one = self.post_parts("a", "b", "c")
        self.plan(lambda message: None, REFUSED)

        self.deliver(one)

        self.assertEqual((self.state(one), one.next_part), (DeliveryState.FAILED, 1))
        self.assertEqual((self.letters(), one.error), ("a", "message is not accepted"))

    def test_it_queues_no_blank_text(self):
        """A platform refuses it; a text of zero-width spaces is blank, too."""
        for text in ("", "  \n", "  \n\u200b", "\ufeff\u2060"):
            with self.subTest(text), self.assertRaises(AssertionError):
                self.post(text)

        self.assertFalse(Delivery.objects.exists())

    def test_it_says_so_when_the_model_said_nothing(self):
        """An answer of invisible characters is no answer: silence would look like a fault."""
        self.model.enqueue("  \n\u200b")

        self.say(ALICE, "hi")
        self.work()

        self.assertEqual(self.sent(ALICE), [NOTHING_SAID])
