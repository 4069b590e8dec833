"""Webhooks: nothing forged is stored, and what is genuine is stored once (B075 as far as a channel's own check reaches)."""

import json
from typing import Any

from memory_app.models import MemoryTurn
from tests.base import ALICE, NahidaTestCase

PATH = "/api/hooks/tests.fakes.channel.FakeChannel/fake"
EVENT = {"chat": "private:10001", "id": "e1", "text": "hi"}


class HookTests(NahidaTestCase):
    def post(self, body: Any, *, path: str = PATH, secret: str | None = "knock-knock") -> Any:
        headers = {} if secret is None else {"X-Fake-Secret": secret}
        data = body if isinstance(body, str) else json.dumps(body)
        return self.client.post(path, data, content_type="application/json", headers=headers)

    def test_it_takes_a_genuine_event_in_once(self):
        self.model.enqueue("hello")

        first, second = self.post(EVENT), self.post(EVENT)
        self.work()

        self.assertEqual((first.status_code, first.content), (200, b""))
        self.assertEqual(second.status_code, 200)
        self.assertEqual(self.sent(ALICE), ["hello"])

    def test_it_stores_nothing_that_is_forged(self):
        for secret in (None, "", "wrong", "knock-knock ", "Knock-Knock"):
            self.assertEqual(self.post(EVENT, secret=secret).status_code, 401, secret)

        self.assertFalse(MemoryTurn.objects.exists())

    def test_it_answers_well_to_an_event_that_concerns_nobody(self):
        self.assertEqual(self.post({"kind": "unknown"}).status_code, 200)

    def test_it_refuses_what_is_no_event(self):
        self.assertEqual(self.post("{").status_code, 400)
        self.assertEqual(self.post("[]").status_code, 400)
        self.assertEqual(self.post("[" * 100_000).status_code, 400)

    def test_it_refuses_an_event_that_is_too_big(self):
        """Only requests with files may be larger, and events carry none."""
        self.assertEqual(self.post(EVENT | {"text": "x" * 3_000_000}).status_code, 413)

    def test_it_knows_a_channel_only_by_its_own_kind_and_name(self):
        for path in ("/api/hooks/telegram/fake", "/api/hooks/tests.fakes.channel.FakeChannel/no"):
            self.assertEqual(self.post(EVENT, path=path).status_code, 404)
