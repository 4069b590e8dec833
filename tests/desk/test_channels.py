"""The channels' admin page: who each one is, how it fares, and a test message through it."""

from typing import Any

from django.contrib.messages import get_messages

from channels_app.channels import get_channel
from channels_app.messages import ChannelNews
from channels_app.models import ChannelState, Delivery, DeliveryState
from nahida.agent import delivery
from nahida.agent.receive import receive
from tests.base import ALICE
from tests.desk.test_admin import DeskCase
from tests.fakes.channel import FakeChannel

CHANNELS = "/admin/channels_app/channelstate/"
SEND = f"{CHANNELS}test-message/"


class ChannelPageTests(DeskCase):
    def setUp(self) -> None:
        super().setUp()
        get_channel("fake")
        FakeChannel.reset_all()

    def test_it_shows_who_a_channel_is_and_how_it_fares(self) -> None:
        facts = {"name": "Nahida @nahida_bot", "mode": "polling", "pending": 17}
        receive("fake", ChannelNews("conflict", "another program polls: stop it", facts))

        page = self.owner.get(CHANNELS).content.decode()

        for shown in ("Nahida @nahida_bot", "polling", "17", "conflict", "another program polls"):
            self.assertIn(shown, page)

    def test_it_shows_what_a_person_should_know(self) -> None:
        hint = "privacy mode is on: in groups it sees only what is addressed to it"
        receive("fake", ChannelNews("polling", detail={"hints": [hint]}))

        state = ChannelState.objects.get(channel="fake")

        self.assertIn(hint, self.owner.get(f"{CHANNELS}{state.pk}/change/").content.decode())
        self.assertIn(hint, self.owner.get("/admin/").content.decode())

    def test_it_says_that_a_channel_is_gone_from_the_configuration(self) -> None:
        receive("removed", ChannelNews("polling"))

        self.assertIn("not configured any more", self.owner.get(CHANNELS).content.decode())

    def send(self, target: str, text: str = "a test") -> Any:
        return self.owner.post(SEND, {"target": target, "text": text, "_form_submitted": "on"})

    def test_it_sends_a_test_message_and_shows_its_delivery(self) -> None:
        answer = self.send(str(ALICE))

        posted = Delivery.objects.get()
        self.assertEqual(
            answer.headers["HX-Redirect"], f"/admin/channels_app/delivery/{posted.pk}/change/"
        )
        delivery.deliver(posted.pk)
        posted.refresh_from_db()
        self.assertEqual(posted.state, DeliveryState.SENT)
        (message,) = FakeChannel.instances["fake"].sent
        self.assertEqual((message.address, message.part.text), (ALICE, "a test"))

    def test_it_refuses_a_wrong_target_with_the_right_form(self) -> None:
        for target, word in (
            ("10001", "&lt;channel&gt;:private:10001"),
            ("fake:10001", "fake:private:10001"),
            ("gone:private:10001", "no channel"),
        ):
            with self.subTest(target):
                self.assertIn(word, self.send(target).content.decode())

        self.assertFalse(Delivery.objects.exists())

    def test_it_sends_nothing_for_those_who_may_not(self) -> None:
        self.allow("view_channelstate")

        answer = self.clerk.post(
            SEND, {"target": str(ALICE), "text": "a test", "_form_submitted": "on"}
        )

        self.assertEqual(answer.status_code, 403)
        self.assertFalse(Delivery.objects.exists())

    def test_it_says_that_a_blank_text_is_not_sent(self) -> None:
        answer = self.send(str(ALICE), "\u200b")

        self.assertIn("nothing is sent", str(next(iter(get_messages(answer.wsgi_request)))))
