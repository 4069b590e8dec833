"""A platform's pace: between two parts to one chat there is a pause, and other chats go on."""

from channels_app.addresses import ChatAddress
from channels_app.models import DeliveryState
from tests.base import ALICE, GROUP
from tests.outbox.stage import OTHER_TOPIC, TOPIC, OutboxTestCase

PENDING, SENT = DeliveryState.PENDING, DeliveryState.SENT


class PaceTests(OutboxTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.platform().pace = 60.0

    def test_it_waits_between_the_parts_of_one_message(self):
        one = self.post_parts("a", "b", "c")

        self.deliver(one, one)
        self.assertEqual((self.letters(), self.state(one)), ("a", PENDING))
        self.make_due(one)
        self.deliver(one)
        self.make_due(one)
        self.deliver(one)

        self.assertEqual((self.letters(), self.state(one)), ("abc", SENT))

    def test_it_waits_between_messages_to_one_chat_its_topics_included(self):
        one, behind, topic = self.post(to=TOPIC), self.post(to=TOPIC), self.post(to=OTHER_TOPIC)

        self.deliver(one, behind, topic)

        self.assertEqual(self.states(one, behind, topic), [SENT, PENDING, PENDING])

    def test_it_waits_with_what_is_posted_later(self):
        self.deliver(self.post())

        later = self.post()
        self.deliver(later)

        self.assertEqual(self.state(later), PENDING)
        self.assertGreater(self.waits_s(later), 50)

    def test_it_lets_other_chats_go_on(self):
        self.deliver(self.post(to=ALICE))

        other = self.post(to=GROUP)
        self.deliver(other)

        self.assertEqual(self.state(other), SENT)

    def test_it_does_not_mix_up_chats_whose_numbers_begin_alike(self):
        longer = ChatAddress("fake", "group", GROUP.target_id + "1")
        self.deliver(self.post(to=GROUP))

        other = self.post(to=longer)
        self.deliver(other)

        self.assertEqual(self.state(other), SENT)
