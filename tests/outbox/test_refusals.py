"""D3: what a platform objects to is left out, once, and the rest is sent."""

from channels_app.channels import Refused, SendError
from channels_app.models import DeliveryState
from tests.base import ALICE
from tests.outbox.stage import TIMED_OUT, TOPIC, OutboxTestCase

NO_REPLY = SendError("message to be replied not found", refused=Refused.REPLY)
NO_THREAD = SendError("message thread not found", refused=Refused.THREAD)
BAD_MARKUP = SendError("can't parse entities", refused=Refused.MARKUP)


class RefusalTests(OutboxTestCase):
    def test_it_goes_without_a_reply_to_what_is_gone(self):
        one = self.post(reply_to="5")
        self.plan(NO_REPLY)

        self.deliver(one)

        (message,) = self.messages(ALICE)
        self.assertEqual((message.reply_to, self.state(one)), ("", DeliveryState.SENT))

    def test_it_goes_without_a_topic_that_is_gone(self):
        one = self.post(to=TOPIC)
        self.plan(NO_THREAD)

        self.deliver(one)

        self.assertEqual(self.sent(TOPIC.with_thread("")), ["hello"])

    def test_it_leaves_out_one_thing_after_the_other(self):
        one = self.post(to=TOPIC, reply_to="5")
        self.plan(NO_THREAD, NO_REPLY, BAD_MARKUP)

        self.deliver(one)

        (message,) = self.messages(TOPIC.with_thread(""))
        self.assertEqual((message.reply_to, message.part.plain), ("", True))

    def test_it_fails_what_is_refused_though_it_was_left_out(self):
        one = self.post(to=TOPIC)
        self.plan(NO_THREAD, NO_THREAD)

        self.deliver(one)

        self.assertEqual(self.state(one), DeliveryState.FAILED)

    def test_it_repeats_nothing_that_timed_out_in_between(self):
        one = self.post(reply_to="5")
        self.plan(NO_REPLY, TIMED_OUT)

        self.deliver(one)

        self.assertEqual((self.state(one), self.sent(ALICE)), (DeliveryState.UNKNOWN, []))
