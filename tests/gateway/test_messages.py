import json
from threading import Thread

from django.db import connection, transaction
from django.test import Client

from channels_app.models import Delivery
from memory_app.models import MemoryTurn
from nahida.gateway import keys
from nahida.gateway.idempotency import KEPT_FOR, forget_old
from nahida.gateway.models import ApiKey, IdempotencyKey
from sessions_app.models import Access, Chat, Session
from tests.base import CommittedTestCase
from tests.gateway.cast import GatewayTestCase, chat_of, lane_of

PRIVATE = "fake:private:10001"
GROUP = "fake:group:10001"


class SendTest(GatewayTestCase):
    def send(self, key: str, **body: object):
        return self.post("/api/send", {"text": "hello", **body}, key=key)

    def test_it_sends_and_says_where(self) -> None:
        lane_of(GROUP)

        response = self.send(self.key("send"), target=GROUP)

        delivery = Delivery.objects.get()
        assert response.status_code == 200, response.content
        assert response.json() == {
            "result": f"Message sent to {GROUP}",
            "target": GROUP,
            "delivery": "notify",
            "delivery_id": delivery.pk,
        }
        assert delivery.address == GROUP
        assert not MemoryTurn.objects.exists()

    def test_it_records_the_text_as_what_it_is(self) -> None:
        """Marked with who sent it, and never dressed as a user's line."""
        lane_of(GROUP)

        self.send(self.key("send"), target=GROUP, delivery="record")

        turn = MemoryTurn.objects.get()
        assert turn.session.key == GROUP
        assert (turn.role, turn.content) == ("assistant", "hello")
        assert turn.metadata["sent_by"] == f"api:user:{ApiKey.objects.get().pk}"
        assert turn.delivery == Delivery.objects.get()

    def test_it_says_how_a_target_is_written(self) -> None:
        key = self.key("send")

        for target, right in (
            (None, "write <channel>:<type>:<id>"),
            ("", "the target is missing"),
            ("10001", "write <channel>:private:10001 or <channel>:group:10001"),
            (10001, "write <channel>:private:10001 or <channel>:group:10001"),
            ("fake:10001", "write fake:private:10001 or fake:group:10001"),
            ("fake:unknown:10001", "write fake:private:10001 or fake:group:10001"),
            ("group:10001", "write <channel>:group:10001"),
            ("fake:group:", "has an empty id"),
            (":::", "empty channel"),
            ("fake:group:10001:42", "write fake:group:10001 for the chat"),
            ("fake:group:10001:deadbeef:subagent:x", "is a session key"),
            ("fake:group:\ud83d", "valid string"),
            ("fake:group:" + "x" * 1000, "at most 1000"),
            ("fake:group:%00", "NUL character"),
        ):
            response = self.send(key, **({"target": target} if target is not None else {}))

            assert response.status_code == 400, target
            assert right in response.json()["detail"], (target, response.json()["detail"])

    def test_it_refuses_a_mode_it_does_not_know(self) -> None:
        response = self.send(self.key("send"), target=GROUP, delivery="shout")

        assert response.status_code == 400

    def test_it_reaches_only_the_chats_of_a_limited_key(self) -> None:
        lane_of(PRIVATE)
        key = self.key("send", chats=[chat_of(GROUP)])

        allowed = self.send(key, target=GROUP)
        hidden = self.send(key, target=PRIVATE)
        missing = self.send(key, target="fake:private:99999")

        assert allowed.status_code == 200
        assert hidden.status_code == missing.status_code == 404
        assert hidden.content.replace(b"10001", b"99999") == missing.content
        assert not Chat.objects.filter(chat_key="fake:private:99999").exists()

    def test_it_writes_first_only_where_a_platform_is(self) -> None:
        key = self.key("send")

        assert self.send(key, target="fake:private:5").status_code == 200
        assert self.send(key, target="nowhere:private:5").status_code == 404
        assert self.send(key, target="web:private:5").status_code == 404

    def test_it_does_not_write_to_a_blocked_chat(self) -> None:
        lane_of(GROUP)
        Chat.objects.update(access=Access.BLOCKED)

        response = self.send(self.key("send"), target=GROUP)

        assert response.status_code == 400
        assert "blocked" in response.json()["detail"]
        assert not Delivery.objects.exists()

    def test_it_stores_text_for_a_chat_that_reads_here(self) -> None:
        lane_of("web:private:1")

        response = self.send(self.key("send"), target="web:private:1")

        assert response.json()["delivery_id"] is None
        assert MemoryTurn.objects.get().session == Session.objects.get(key="web:private:1")


class TwiceAtOnceTest(CommittedTestCase):
    def test_it_does_it_once_and_answers_both(self) -> None:
        """The second request waits for the first and gets its answer."""
        with transaction.atomic():
            lane_of(GROUP)
        _, text = keys.create("test", scopes=["send"])
        answers = []

        def send() -> None:
            response = Client().post(
                "/api/send",
                json.dumps({"target": GROUP, "text": "hello"}),
                content_type="application/json",
                headers={"authorization": f"Bearer {text}", "idempotency-key": "once"},
            )
            answers.append((response.status_code, response.content))
            connection.close()

        threads = [Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(set(answers)) == 1
        assert answers[0][0] == 200
        assert Delivery.objects.count() == 1


class IdempotencyTest(GatewayTestCase):
    name = {"idempotency-key": "once"}

    def test_it_sends_once_and_answers_the_same(self) -> None:
        lane_of(GROUP)
        key, body = self.key("send"), {"target": GROUP, "text": "hello"}

        first = self.post("/api/send", body, key=key, **self.name)
        second = self.post("/api/send", body, key=key, **self.name)

        assert first.status_code == second.status_code == 200
        assert first.json() == second.json()
        assert Delivery.objects.count() == 1

    def test_it_refuses_another_body_under_the_same_name(self) -> None:
        lane_of(GROUP)
        key = self.key("send")

        self.post("/api/send", {"target": GROUP, "text": "hello"}, key=key, **self.name)
        other = self.post("/api/send", {"target": GROUP, "text": "bye"}, key=key, **self.name)

        assert other.status_code == 422
        assert Delivery.objects.count() == 1

    def test_it_keeps_the_names_of_two_keys_apart(self) -> None:
        lane_of(GROUP)
        body = {"target": GROUP, "text": "hello"}

        for key in (self.key("send"), self.key("send")):
            assert self.post("/api/send", body, key=key, **self.name).status_code == 200

        assert Delivery.objects.count() == 2

    def test_it_forgets_what_failed(self) -> None:
        key = self.key("send", chats=[chat_of(GROUP)])
        body = {"target": PRIVATE, "text": "hello"}

        refused = self.post("/api/send", body, key=key, **self.name)
        ApiKey.objects.get().chats.add(chat_of(PRIVATE))
        accepted = self.post("/api/send", body, key=key, **self.name)

        assert (refused.status_code, accepted.status_code) == (404, 200)

    def test_it_asks_once(self) -> None:
        key, body = self.key("chat"), {"text": "hello", "wait_s": 0}

        first = self.post("/api/chat", body, key=key, **self.name)
        second = self.post("/api/chat", body, key=key, **self.name)

        assert first.json() == second.json()
        assert MemoryTurn.objects.count() == 1

    def test_it_refuses_a_name_that_is_too_long(self) -> None:
        response = self.post(
            "/api/chat", {"text": "x"}, key=self.key("chat"), **{"idempotency-key": "x" * 201}
        )

        assert response.status_code == 400

    def test_it_forgets_a_name_after_a_week(self) -> None:
        lane_of(GROUP)
        key, body = self.key("send"), {"target": GROUP, "text": "hello"}
        self.post("/api/send", body, key=key, **self.name)
        kept = IdempotencyKey.objects.get()
        IdempotencyKey.objects.update(created_at=kept.created_at - KEPT_FOR)

        assert forget_old() == 1
        assert not IdempotencyKey.objects.exists()
