"""D5: what a page or a script reads from the database is never sent to it."""

from django.db import transaction

from channels_app import outbox
from channels_app.addresses import ChatAddress
from channels_app.models import Delivery
from memory_app import turns
from memory_app.models import MemoryTurn, TurnKind
from memory_app.turns import Outgoing
from sessions_app import lanes
from tests.base import ALICE
from tests.fakes.model import call
from tests.outbox.stage import OutboxTestCase

WEB = ChatAddress.web(7)
API = ChatAddress.api(3, user="alice")


class WebAndApiTests(OutboxTestCase):
    def test_it_answers_without_a_delivery(self):
        for where in (WEB, API):
            with self.subTest(where):
                self.model.enqueue("here you are")

                self.say(where, "hi")
                self.work()

                self.assertEqual(self.answers(where), ["here you are"])
        self.assertFalse(Delivery.objects.exists())

    def test_it_answers_a_command_without_a_delivery(self):
        accepted = self.say(WEB, "/whoami")

        self.assertEqual(self.answers(WEB), [accepted.notice])
        self.assertFalse(Delivery.objects.exists())

    def test_it_posts_nothing_there(self):
        with transaction.atomic():
            posted = [outbox.post(lanes.lock(where).address, "hello") for where in (WEB, API)]

        self.assertEqual(posted, [None, None])
        self.assertFalse(Delivery.objects.exists())

    def test_it_stores_a_text_sent_there_as_a_turn(self):
        """Both ways of sending: nothing else could carry it. It is the assistant's line, never a user's."""
        for where in (WEB, API):
            for record in (False, True):
                with self.subTest(where=where, record=record):
                    text = f"news {where} {record}"
                    out = Outgoing(address=where, text=text, record=record, origin=str(ALICE))

                    with transaction.atomic():
                        delivery = turns.write_out(out)

                    turn = MemoryTurn.objects.get(content=text)
                    self.assertIsNone(delivery)
                    self.assertEqual((turn.kind, turn.role), (TurnKind.NOTICE, "assistant"))
                    self.assertEqual(turn.origin, str(ALICE))
        self.assertFalse(Delivery.objects.exists())

    def test_it_stores_what_the_model_sends_to_its_own_page(self):
        self.model.enqueue(call("message", target=str(WEB), text="first this"), "and the answer")

        self.say(WEB, "hi")
        self.work()

        self.assertEqual(self.answers(WEB), ["first this", "and the answer"])
        self.assertFalse(Delivery.objects.exists())

    def test_it_sends_elsewhere_without_a_turn(self):
        """A platform's chat is told by a delivery; only `record` also makes it part of the conversation."""
        with transaction.atomic():
            turns.write_out(Outgoing(address=ALICE, text="only told"))
            turns.write_out(Outgoing(address=ALICE, text="told and kept", record=True))
        self.work()

        self.assertEqual(self.sent(ALICE), ["only told", "told and kept"])
        self.assertEqual(self.answers(ALICE), ["told and kept"])
