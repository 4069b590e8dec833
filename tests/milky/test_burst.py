"""Many first messages at the same moment: one chat, one session, and none of them lost."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from django.db import connections
from django.test import Client

from channels_app.addresses import ChatAddress
from sessions_app.models import Chat, Session
from tests.fakes.milky import events
from tests.fakes.milky.events import Event
from tests.milky.site import MilkySite

PATH = "/api/hooks/milky/qq"
PERSON = ChatAddress("qq", "private", "30303")
GROUP = ChatAddress("qq", "group", "30303")


class BurstTests(MilkySite):
    mode = "webhook"

    def post(self, event: Event) -> int:
        body, headers = self.end.webhook(event)
        authorization = {"Authorization": headers["Authorization"]}
        try:
            answer = Client().post(
                PATH, body, content_type="application/json", headers=authorization
            )
        finally:
            connections.close_all()
        return int(answer.status_code)

    def burst(self, sent: Sequence[Event]) -> list[int]:
        with ThreadPoolExecutor(len(sent)) as pool:
            return list(pool.map(self.post, sent))

    def test_it_stores_twenty_first_messages_of_a_person(self):
        first = [events.friend_message(30303, f"m{n}", message_seq=n) for n in range(1, 21)]

        self.assertEqual(self.burst(first), [200] * 20)

        self.assertEqual(sorted(self.said(PERSON)), sorted(f"m{n}" for n in range(1, 21)))
        self.assertEqual(Session.objects.filter(chat__channel="qq").count(), 1)

    def test_it_stores_twenty_first_messages_of_new_members(self):
        first = [
            events.group_message(30303, 40000 + n, f"m{n}", message_seq=n) for n in range(1, 21)
        ]

        self.assertEqual(self.burst(first), [200] * 20)

        self.assertEqual(sorted(self.said(GROUP)), sorted(f"m{n}" for n in range(1, 21)))
        self.assertEqual(Chat.objects.filter(channel="qq").count(), 1)

    def test_it_stores_one_message_of_twenty_deliveries(self):
        one = events.friend_message(30303, "once")

        self.assertEqual(self.burst([one] * 20), [200] * 20)

        self.assertEqual(self.said(PERSON), ["once"])
