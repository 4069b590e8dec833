"""What the chat page's script may ask, and of whom."""

import json
import uuid
from http import HTTPStatus

from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client, TestCase

from channels_app.addresses import ChatAddress
from memory_app.models import MemoryTurn, Role, TurnKind, TurnState
from memory_app.turns import NewTurn, append_turn
from sessions_app import lanes
from sessions_app.models import Access, Chat, Lane, Session
from sessions_app.routing import start_session

CANARY = "canary-7f3a"


class ChatViewCase(TestCase):
    """Alice has said something; bob is signed in beside her."""

    def setUp(self) -> None:
        self.alice = User.objects.create_user("alice")
        self.bob = User.objects.create_user("bob")
        self.as_alice, self.as_bob = Client(), Client()
        self.as_alice.force_login(self.alice)
        self.as_bob.force_login(self.bob)

    def tell(self, user: User, text: str, *, session: Session | None = None) -> MemoryTurn:
        with transaction.atomic():
            lane = lanes.lock(ChatAddress.web(user.pk))
            line = NewTurn(kind=TurnKind.MESSAGE, content=text, state=TurnState.DONE)
            return append_turn(lane, line, session=session)

    def send(self, client: Client, text: str, **more: object):
        body = {"text": text, "key": str(uuid.uuid4()), **more}
        return client.post("/chat/send/", json.dumps(body), "application/json")


class PrivacyTest(ChatViewCase):
    def test_it_shows_a_chat_to_nobody_else(self) -> None:
        """Bob asks every URL for alice's session and turns, and learns not even that they exist."""
        turn = self.tell(self.alice, CANARY)
        session = turn.session_id
        urls = [
            "/chat/",
            f"/chat/s/{session}/",
            "/chat/state/",
            f"/chat/state/?session={session}",
            f"/chat/turns/?session={session}&before={turn.pk + 1}",
            f"/chat/turns/?before={turn.pk + 1}",
            f"/chat/events/?session={session}",
            f"/chat/s/{session + 999}/",
        ]

        answers = {url: self.as_bob.get(url) for url in urls}

        for url, answer in answers.items():
            body = b"" if answer.streaming else answer.content
            self.assertNotIn(CANARY.encode(), body, url)
            expected = HTTPStatus.OK if url in ("/chat/", "/chat/state/") else HTTPStatus.NOT_FOUND
            self.assertEqual(answer.status_code, expected, url)
        self.assertContains(self.as_alice.get("/chat/"), CANARY)
        self.assertContains(self.as_alice.get(f"/chat/state/?session={session}"), CANARY)

    def test_it_lets_nobody_write_into_another_chat(self) -> None:
        session = self.tell(self.alice, CANARY).session_id

        answer = self.send(self.as_bob, "hello", session=session)

        self.assertEqual(answer.status_code, HTTPStatus.NOT_FOUND)
        self.assertEqual(MemoryTurn.objects.count(), 1)

    def test_it_takes_the_same_key_of_two_users_as_two_messages(self) -> None:
        key = str(uuid.uuid4())

        self.send(self.as_alice, "one", key=key)
        self.send(self.as_bob, "two", key=key)

        self.assertEqual(MemoryTurn.objects.count(), 2)

    def test_it_tells_a_stranger_nothing(self) -> None:
        session = self.tell(self.alice, CANARY).session_id
        stranger = Client()

        self.assertRedirects(stranger.get("/chat/"), "/login/?next=/chat/")
        for url in ("/chat/state/", f"/chat/turns/?session={session}", "/chat/events/"):
            self.assertEqual(stranger.get(url).status_code, HTTPStatus.UNAUTHORIZED, url)
        self.assertEqual(self.send(stranger, "hello").status_code, HTTPStatus.UNAUTHORIZED)

    def test_it_wants_the_csrf_token(self) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(self.alice)

        self.assertEqual(self.send(strict, "hello").status_code, HTTPStatus.FORBIDDEN)

    def test_it_hides_tool_results(self) -> None:
        turn = self.tell(self.alice, "hello")
        MemoryTurn.objects.create(
            session=turn.session, kind=TurnKind.TOOL, role=Role.TOOL, content=CANARY
        )

        self.assertNotContains(self.as_alice.get("/chat/"), CANARY)


class SendTest(ChatViewCase):
    def test_it_stores_a_message_once(self) -> None:
        key = str(uuid.uuid4())

        first = self.send(self.as_alice, "hello", key=key).json()
        again = self.send(self.as_alice, "hello", key=key).json()

        turn = MemoryTurn.objects.get()
        self.assertEqual(first, {"outcome": "queued", "turn": turn.pk})
        self.assertEqual(again, {"outcome": "duplicate", "turn": None})
        self.assertEqual(turn.session.key, str(ChatAddress.web(self.alice.pk)))
        self.assertEqual((turn.content, turn.state), ("hello", TurnState.PENDING))

    def test_it_goes_on_with_an_earlier_session(self) -> None:
        earlier = self.tell(self.alice, "about trees").session
        with transaction.atomic():
            start_session(lanes.lock(ChatAddress.web(self.alice.pk)))

        self.send(self.as_alice, "more trees", session=earlier.pk)

        self.assertEqual(MemoryTurn.objects.get(content="more trees").session, earlier)
        self.assertEqual(Lane.objects.get().active_session, earlier)

    def test_it_refuses_what_is_no_message(self) -> None:
        for text, more in (("", {}), ("x" * 20_001, {}), ("hello", {"key": "1"}), ("a", {"b": 1})):
            answer = self.send(self.as_alice, text, **more)
            self.assertEqual(answer.status_code, HTTPStatus.BAD_REQUEST)
            self.assertTrue(answer.json()["error"])
        self.assertEqual(MemoryTurn.objects.count(), 0)

    def test_it_says_that_a_chat_is_closed(self) -> None:
        self.tell(self.alice, "hello")
        Chat.objects.update(access=Access.BLOCKED)

        answer = self.send(self.as_alice, "hello?")

        self.assertEqual(answer.status_code, HTTPStatus.FORBIDDEN)
        self.assertIn("closed", answer.json()["error"])


class PageTest(ChatViewCase):
    def test_it_escapes_what_was_said(self) -> None:
        """The turns stand in the page as data, from which no tag can break out."""
        self.tell(self.alice, "</script><script>alert(1)</script>")

        self.assertNotContains(self.as_alice.get("/chat/"), "<script>alert")

    def test_it_allows_only_files_of_this_site(self) -> None:
        for url in ("/chat/", "/login/?next=/chat/"):
            policy = self.as_alice.get(url)["Content-Security-Policy"]
            self.assertIn("default-src 'none'", policy)
            self.assertNotIn("unsafe", policy)

    def test_it_pages_through_earlier_turns(self) -> None:
        turns = [self.tell(self.alice, f"line {number}") for number in range(50)]
        session = turns[0].session_id

        state = self.as_alice.get("/chat/state/").json()
        oldest = state["turns"][0]["id"]
        url = f"/chat/turns/?session={session}&before={oldest}"
        earlier = self.as_alice.get(url).json()

        self.assertEqual([turn["id"] for turn in state["turns"]], [t.pk for t in turns[10:]])
        self.assertTrue(state["more"])
        self.assertEqual([turn["id"] for turn in earlier["turns"]], [t.pk for t in turns[:10]])
        self.assertFalse(earlier["more"])

    def test_it_names_a_session_by_its_first_line(self) -> None:
        self.tell(self.alice, "Where does moss grow?")
        self.tell(self.alice, "And lichen?")

        sessions = self.as_alice.get("/chat/state/").json()["sessions"]

        self.assertEqual([session["title"] for session in sessions], ["Where does moss grow?"])

    def test_it_says_when_the_built_in_model_answers(self) -> None:
        """The note stands on the page exactly if the chat's model is the local one."""
        from django.conf import settings

        local = settings.NAHIDA.models[settings.NAHIDA.agent.model].local

        page = self.as_alice.get("/chat/")

        self.assertEqual(b"small built-in model" in page.content, local)
