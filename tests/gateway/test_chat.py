"""Questions over the API. `answer` and `drain` stand for the worker."""

from datetime import timedelta
from typing import Any
from unittest.mock import patch

from django.utils import timezone

from channels_app.addresses import SessionKey
from channels_app.messages import InboundMessage
from memory_app.models import MemoryTurn, ModelCall, TurnState
from nahida.agent.intake import Accepted, accept
from nahida.gateway import oneoff
from nahida.gateway.models import ApiKey
from sessions_app.models import Access, Chat, Lane, Session
from sessions_app.routing import start_session
from tests.base import NahidaTestCase
from tests.gateway.cast import ALICE, GatewayTestCase, answer, say


class ChatTestCase(NahidaTestCase, GatewayTestCase):
    def ask(self, text: str, *, key: str, **body: object) -> Any:
        response = self.post("/api/chat", {"text": text, "wait_s": 0, **body}, key=key)
        assert response.status_code in (200, 202), response.content
        return response.json()

    def look(self, turn_id: int, *, key: str) -> Any:
        response = self.get(f"/api/chat/{turn_id}", key=key)
        assert response.status_code == 200, response.content
        return response.json()


class AskTest(ChatTestCase):
    def test_it_answers_202_until_there_is_an_answer(self) -> None:
        key = self.key("chat")
        self.model.enqueue("It is blue.")

        response = self.post(
            "/api/chat", {"text": "which colour?", "user": "qi", "wait_s": 0}, key=key
        )
        self.work()
        done = self.get(response["Location"], key=key).json()

        api_key = ApiKey.objects.get()
        assert response.status_code == 202
        assert response.json()["state"] == "pending"
        assert done["text"] == "It is blue."
        assert done["state"] == "done"
        assert done["session_key"] == f"api:private:{api_key.pk}.qi"
        assert done["session_key_kind"] == "typed"
        assert done["turn_id"] == response.json()["turn_id"]

    def test_it_answers_a_command_at_once(self) -> None:
        said = self.ask("/whoami", key=self.key("chat"), user="qi")

        assert said["state"] == "done"
        assert "name: qi" in said["text"]

    def test_it_tells_what_an_answer_cost(self) -> None:
        key = self.key("chat")
        turn_id = self.ask("hello", key=key, user="qi")["turn_id"]
        answer(turn_id, "hi")
        for _ in range(2):
            ModelCall.objects.create(
                turn_id=turn_id, model="main", tokens_in=10, tokens_out=3, cost="0.25", outcome="ok"
            )

        usage = self.look(turn_id, key=key)["usage"]

        assert (usage["requests"], usage["tokens_in"], usage["tokens_out"]) == (2, 20, 6)
        assert float(usage["cost"]) == 0.5

    def test_it_says_what_a_failed_turn_was_told(self) -> None:
        key = self.key("chat")
        failed = self.ask("hello", key=key, user="qi")["turn_id"]
        answer(failed, "The model is down.", state=TurnState.FAILED)
        silent = self.ask("hello?", key=key, user="qi")["turn_id"]
        answer(silent, "")

        assert self.look(failed, key=key)["state"] == "failed"
        assert self.look(failed, key=key)["text"] == "The model is down."
        assert self.look(silent, key=key)["state"] == "done"
        assert self.look(silent, key=key)["text"] == ""

    def test_it_stores_odd_characters_as_harmless_ones(self) -> None:
        """B108, B110: in text they are replaced; in a name, which they would change, refused."""
        key = self.key("chat")

        said = self.ask("hi\x00 \ud83d there", key=key, user="qi")
        nul = self.post("/api/chat", {"text": "hi", "user": "q\x00i"}, key=key)
        half = self.post("/api/chat", {"text": "hi", "user": "q\ud83di"}, key=key)
        nothing = self.post("/api/chat", {"text": "\x00\x00 ", "user": "qi"}, key=key)

        assert MemoryTurn.objects.get(pk=said["turn_id"]).content == "hi \ufffd there"
        assert [r.status_code for r in (nul, half, nothing)] == [400] * 3

    def test_it_refuses_what_it_does_not_know(self) -> None:
        key = self.key("chat")

        bodies: tuple[Any, ...] = (
            {},
            [],
            {"text": 5},
            {"text": "hi", "users": "qi"},
            {"text": "hi", "user": ""},
            {"text": "hi", "user": "~qi"},
            {"text": "hi", "user": "x" * 201},
            {"text": "hi", "user": ":" * 150},
            {"text": "hi", "wait_s": 3601},
            {"text": "x" * 100_001},
        )
        for body in bodies:
            response = self.post("/api/chat", body, key=key)
            assert response.status_code == 400, body
            assert response["Content-Type"] == "application/problem+json"

    def test_it_refuses_a_body_that_is_no_json(self) -> None:
        for body in (b"{", b"\xff", b"[" * 100_000):
            response = self.client.post(
                "/api/chat", body, "application/json", headers={"authorization": self.key("chat")}
            )
            assert response.status_code == 400

    def test_it_refuses_a_request_that_is_too_big(self) -> None:
        response = self.post("/api/chat", {"text": "x" * 3_000_000}, key=self.key("chat"))

        assert response.status_code == 413

    def test_it_says_so_when_the_chat_is_blocked(self) -> None:
        key = self.key("chat")
        self.ask("hello", key=key, user="qi")
        Chat.objects.update(access=Access.BLOCKED)

        response = self.post("/api/chat", {"text": "hello?", "user": "qi"}, key=key)

        assert response.status_code == 403
        assert "blocked" in response.json()["detail"]

    def test_it_gives_each_user_of_each_key_a_chat_of_their_own(self) -> None:
        one, two = self.key("chat"), self.key("chat")

        keys = {
            self.ask("hi", key=key, user=user)["session_key"]
            for key in (one, two)
            for user in ("qi", "Qi", "a:b", "a%3Ab")
        }

        assert len(keys) == 8

    def test_it_shows_a_key_only_what_it_asked_itself(self) -> None:
        """B021, B141: also to a key that reaches every chat but may not read sessions."""
        mine, other = self.key("chat"), self.key("chat")
        turn_id = self.ask("my salary", key=mine, user="qi")["turn_id"]
        line = say(ALICE, "hello")

        hidden = self.get(f"/api/chat/{turn_id}", key=other)
        strange = self.get(f"/api/chat/{line.pk}", key=other)
        missing = self.get("/api/chat/999999", key=other)

        assert [r.status_code for r in (hidden, strange, missing)] == [404] * 3
        assert self.get(f"/api/chat/{2**63}", key=other).status_code == 400

    def test_it_lets_a_limited_key_read_the_chats_it_makes(self) -> None:
        key, other = self.key(chats=[]), self.key(chats=[])

        said = self.ask("hi", key=key, user="qi")

        path = f"/api/sessions/{said['session_key']}"
        assert self.get(path, key=key).status_code == 200
        assert self.get(path, key=other).status_code == 404


class SessionTest(ChatTestCase):
    def test_it_goes_on_with_an_older_session(self) -> None:
        key = self.key("chat")
        base = self.ask("hello", key=key, user="qi")["session_key"]
        newer = start_session(Lane.objects.get())

        latest = self.ask("here?", key=key, user="qi")["session_key"]
        older = self.ask("there?", key=key, user="qi", session=base)["session_key"]
        by_session_alone = self.ask("and there?", key=key, session=newer.key)["session_key"]

        assert (latest, older, by_session_alone) == (newer.key, base, newer.key)

    def test_it_finds_no_session_of_another_user_key_or_chat(self) -> None:
        mine, other = self.key("chat"), self.key("chat")
        session = self.ask("hello", key=mine, user="qi")["session_key"]
        say(ALICE, "hello")
        count = Chat.objects.count(), Lane.objects.count()

        for body in (
            {"session": session, "user": "bo"},
            {"session": session, "user": "qi"},
            {"session": session},
            {"session": ALICE},
            {"session": "api:1"},
            {"session": "nonsense"},
            {"session": f"{session}%00"},
            {"session": f"{session}:topic:{'x' * 201}"},
        ):
            response = self.post("/api/chat", {"text": "hi", **body}, key=other)
            assert response.status_code == 404, body
        unknown = str(SessionKey.parse(session).new())
        response = self.post("/api/chat", {"text": "hi", "session": unknown}, key=mine)
        assert response.status_code == 404
        assert (Chat.objects.count(), Lane.objects.count()) == count


class NobodyTest(ChatTestCase):
    """B141: without a user there is no conversation, least of all a shared one."""

    def test_it_remembers_nothing_from_one_question_to_the_next(self) -> None:
        key = self.key("chat")
        self.model.enqueue("Noted.", "I do not know.")

        first = self.ask("my locker code is 7391", key=key)
        second = self.ask("what is my locker code?", key=key)
        self.work()

        assert first["session_key"] is second["session_key"] is None
        assert self.look(second["turn_id"], key=key)["text"] == "I do not know."
        assert "7391" not in repr(self.model.requests[-1])

    def test_it_lists_and_shows_no_such_chat_or_session(self) -> None:
        key = self.key()
        self.ask("hello", key=key)
        session = Session.objects.get()

        assert self.get("/api/sessions", key=key).json()["items"] == []
        assert self.get("/api/chats", key=key).json()["items"] == []
        assert self.get(f"/api/sessions/{session.key}", key=key).status_code == 404
        again = self.post("/api/chat", {"text": "hi", "session": session.key}, key=key)
        assert again.status_code == 404

    def test_it_is_erased_after_a_day(self) -> None:
        key = self.key("chat", chats=[])
        kept = self.ask("keep", key=key, user="qi")["turn_id"]
        for text in ("old", "old and unanswered", "new"):
            self.ask(text, key=key)
        old, unanswered, new = Chat.objects.filter(oneoff.one_off()).order_by("pk")
        answer(MemoryTurn.objects.get(content="old").pk, "an answer")
        aged = Chat.objects.filter(pk__in=[old.pk, unanswered.pk])
        aged.update(created_at=timezone.now() - timedelta(days=2))
        Chat.objects.exclude(oneoff.one_off()).update(created_at=timezone.now() - timedelta(days=2))

        erased = oneoff.erase_old()

        assert erased == 1
        left = Chat.objects.filter(oneoff.one_off()).values_list("pk", flat=True)
        assert set(left) == {unanswered.pk, new.pk}
        assert MemoryTurn.objects.filter(pk=kept).exists()


class WaitTest(ChatTestCase):
    def test_it_waits_for_the_answer(self) -> None:
        """The worker is called when the request first looks for its answer."""
        key = self.key("chat")
        self.model.enqueue("It is blue.")

        with patch("nahida.gateway.chat.accept", side_effect=self.accept_and_work):
            response = self.post("/api/chat", {"text": "which?", "user": "qi"}, key=key)

        assert response.status_code == 200
        assert response.json()["text"] == "It is blue."

    def accept_and_work(self, message: InboundMessage) -> Accepted:
        accepted = accept(message)
        self.work()
        return accepted
