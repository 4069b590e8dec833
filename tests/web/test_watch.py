"""What one look at a session tells a page that has seen it before."""

import uuid

from django.contrib.auth.models import User
from django.db import transaction
from django.test import TestCase

from channels_app.addresses import ChatAddress
from memory_app.models import MemoryTurn, TurnKind, TurnState
from memory_app.turns import NewTurn, append_turn, move_later
from nahida.web.stream import Watch
from sessions_app import lanes
from sessions_app.models import Draft
from sessions_app.routing import start_session


class WatchTest(TestCase):
    def setUp(self) -> None:
        self.alice = User.objects.create_user("alice")
        self.first = self.append("hello")
        self.watch = Watch(self.alice.pk, self.first.session_id)

    def append(self, text: str) -> MemoryTurn:
        with transaction.atomic():
            self.lane = lanes.lock(ChatAddress.web(self.alice.pk))
            return append_turn(self.lane, NewTurn(kind=TurnKind.MESSAGE, content=text))

    def run_first(self, text: str, *, token: uuid.UUID) -> None:
        MemoryTurn.objects.filter(pk=self.first.pk).update(
            state=TurnState.RUNNING, batch=self.first.pk
        )
        Draft.objects.update_or_create(
            lane=self.lane, defaults={"turn": self.first.pk, "token": token, "text": text}
        )

    def test_it_tells_each_thing_once(self) -> None:
        first, second = self.watch.look(), self.watch.look()

        self.assertEqual([turn["text"] for turn in first["turns"]], ["hello"])
        self.assertEqual(first["active"], self.first.session_id)
        self.assertEqual(second, {})

    def test_it_keeps_the_cursor_before_what_is_unfinished(self) -> None:
        """A connection that comes back is told again of every turn that may have changed."""
        self.watch.look()
        self.assertEqual(self.watch.after, 0)

        MemoryTurn.objects.update(state=TurnState.DONE)
        changes = self.watch.look()

        self.assertEqual([turn["state"] for turn in changes["turns"]], ["done"])
        self.assertEqual(self.watch.after, self.first.pk)

    def test_it_sends_only_what_grew_of_a_draft(self) -> None:
        token = uuid.uuid4()
        self.run_first("Good", token=token)
        self.assertEqual(self.watch.look()["draft"], {"at": 0, "text": "Good"})

        self.run_first("Good morning", token=token)

        self.assertEqual(self.watch.look()["draft"], {"at": 4, "text": " morning"})

    def test_it_starts_a_draft_over_with_a_new_token(self) -> None:
        self.run_first("Good", token=uuid.uuid4())
        self.watch.look()

        self.run_first("Good evening", token=uuid.uuid4())

        self.assertEqual(self.watch.look()["draft"], {"at": 0, "text": "Good evening"})

    def test_it_says_when_a_draft_is_over(self) -> None:
        self.run_first("Good", token=uuid.uuid4())
        self.watch.look()

        MemoryTurn.objects.update(state=TurnState.DONE)

        self.assertIsNone(self.watch.look()["draft"])

    def test_it_says_when_turns_moved_to_a_new_session(self) -> None:
        later = self.append("later")
        self.watch.look()

        with transaction.atomic():
            lane = lanes.lock(ChatAddress.web(self.alice.pk))
            session = start_session(lane)
            move_later(lane, after=self.first, to=session)
        changes = self.watch.look()

        self.assertTrue(changes["moved"])
        self.assertEqual(changes["active"], session.pk)
        self.assertNotIn("turns", changes)
        self.assertEqual(MemoryTurn.objects.get(pk=later.pk).session, session)

    def test_it_waits_for_the_first_session(self) -> None:
        """A page that was opened before anything was said learns of what another tab begins."""
        bob = User.objects.create_user("bob")
        watch = Watch(bob.pk, None)
        self.assertEqual(watch.look(), {})

        with transaction.atomic():
            lane = lanes.lock(ChatAddress.web(bob.pk))

        self.assertEqual(watch.look(), {"active": lane.active_session_id})

    def test_it_shows_nothing_of_another_user(self) -> None:
        bob = User.objects.create_user("bob")

        self.assertEqual(Watch(bob.pk, self.first.session_id).look(), {"gone": True})
