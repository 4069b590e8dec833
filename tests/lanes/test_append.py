"""R1: one way into a lane, under its lock."""

import ast
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from channels_app.addresses import ChatAddress, SessionKey
from channels_app.clock import DbNow
from memory_app.models import MemoryTurn, Role, TurnKind, TurnState
from memory_app.turns import NewTurn, append_turn
from sessions_app import lanes
from sessions_app.models import Chat, ChatAlias, Lane, Session
from sessions_app.routing import chat_for
from tests.base import ALICE, BOB, GROUP
from tests.lanes.stage import LaneTestCase, meanwhile

CAROL = ChatAddress("fake", "private", "30003")
APPS = ("nahida", "memory_app", "sessions_app", "scheduler_app", "channels_app")


class AppendTests(LaneTestCase):
    def test_it_counts_and_wakes(self):
        """A turn that wants an answer is one more in the inbox, and makes the lane due at once."""
        self.say(ALICE, "one")
        Lane.objects.update(woken_at=DbNow(), wake_at=None)

        self.say(ALICE, "two")

        lane = self.lane(ALICE)
        self.assertEqual(lane.inbox, 2)
        self.assertIsNone(lane.woken_at)
        self.assertTrue(lanes.is_due(lane))

    def test_it_keeps_a_later_time(self):
        """A lane that waits, whoever made it, is not hurried by the next message."""
        self.say(ALICE, "one")
        self.put_off(ALICE)
        planned = self.lane(ALICE).wake_at

        self.say(ALICE, "two")

        self.assertEqual(self.lane(ALICE).wake_at, planned)

    def test_it_wakes_a_lane_that_was_due_long_ago(self):
        self.say(ALICE, "one")
        self.make_due(ALICE)
        overdue = self.lane(ALICE).wake_at

        self.say(ALICE, "two")

        self.assertTrue(lanes.is_due(self.lane(ALICE)))
        self.assertNotEqual(self.lane(ALICE).wake_at, overdue)

    def test_it_lets_the_lane_sleep_for_what_wants_no_answer(self):
        self.say(GROUP, "between ourselves", addressed=False)

        lane = self.lane(GROUP)
        self.assertEqual((lane.inbox, lane.wake_at), (0, None))
        self.assertEqual(self.states("between ourselves"), ["observed"])

    def test_it_locks_the_lane_before_it_writes(self):
        """The lane's row comes before the turn's, and before any change of the chat."""
        self.say(ALICE, "one")

        with CaptureQueriesContext(
            connection,
        ) as queries:
            self.say(ALICE, "two", chat_title="Alice at home")

        said = [query["sql"] for query in queries]
        lock = _first(said, 'FROM "sessions_app_lane"')
        self.assertLess(lock, _first(said, 'INSERT INTO "memory_app_memoryturn"'))
        self.assertLess(lock, _first(said, 'UPDATE "sessions_app_chat"'))
        if connection.vendor == "postgresql":
            self.assertIn("FOR UPDATE", said[lock])

    def test_it_looks_again_when_its_chat_was_merged_away(self):
        """The chat is merged between being found and getting its lane: the message goes where the chat went."""
        alice, bob = chat_for(ALICE), chat_for(BOB)

        def merge() -> None:
            Chat.objects.filter(pk=alice.pk).update(merged_into=bob)

        with meanwhile('SELECT "sessions_app_lane"', merge):
            self.say(ALICE, "where am I?")

        self.assertEqual(self.turn("where am I?").lane, self.lane(BOB))
        self.assertFalse(Lane.objects.filter(chat=alice).exists())

    def test_it_makes_a_lane_under_a_share_lock_of_its_chat(self):
        with CaptureQueriesContext(connection) as queries:
            self.say(ALICE, "one")

        said = [query["sql"] for query in queries]
        share = _first(said, "SELECT merged_into_id")
        self.assertLess(share, _first(said, 'INSERT INTO "sessions_app_lane"'))
        if connection.vendor == "postgresql":
            self.assertIn("FOR SHARE", said[share])

    def test_it_finds_the_lane_of_an_older_address(self):
        chat = chat_for(ALICE)
        ChatAlias.objects.create(address=str(CAROL), chat=chat, reason="changed account")

        self.say(CAROL, "it is still me")

        self.assertEqual(self.turn("it is still me").lane, Lane.objects.get(chat=chat))

    def test_it_reads_the_active_session_under_the_lock(self):
        """A new conversation begun just before the lock is the one that the line belongs to."""
        self.say(ALICE, "old times")
        lane = self.lane(ALICE)
        fresh = Session.objects.create(
            key=str(SessionKey(ALICE, "0123abcd")), suffix="0123abcd", chat=lane.chat
        )

        def begin() -> None:
            Lane.objects.filter(pk=lane.pk).update(active_session=fresh)

        with meanwhile('SELECT "sessions_app_lane"', begin):
            self.say(ALICE, "new times")

        self.assertEqual(self.turn("new times").session, fresh)

    def test_it_refuses_to_write_outside_a_transaction(self):
        """A lane is no proof of a lock by itself."""
        self.say(ALICE, "one")
        lane = self.lane(ALICE)
        inside, connection.in_atomic_block = connection.in_atomic_block, False
        self.addCleanup(setattr, connection, "in_atomic_block", inside)

        with self.assertRaises(AssertionError):
            append_turn(lane, NewTurn(kind=TurnKind.MESSAGE, content="two"))

        connection.in_atomic_block = inside

    def test_it_cannot_leave_a_line_waiting_that_wants_no_answer(self):
        """The database itself knows the kinds that are never pending."""
        self.say(ALICE, "one")
        lane = self.lane(ALICE)

        for kind in (
            TurnKind.EDIT,
            TurnKind.NOTICE,
            TurnKind.TOOL,
            TurnKind.SUMMARY,
            TurnKind.IMPORTED,
        ):
            with self.subTest(kind=kind), self.assertRaises(IntegrityError), transaction.atomic():
                append_turn(lane, NewTurn(kind=kind, content="x", state=TurnState.PENDING))
        with self.assertRaises(IntegrityError), transaction.atomic():
            answer = NewTurn(kind=TurnKind.MESSAGE, role=Role.ASSISTANT, content="x")
            MemoryTurn.objects.filter(pk=append_turn(lane, answer).pk).update(state="running")


def test_it_is_the_only_way_in():
    """Nothing but `append_turn` makes a turn; the importer alone may insert in bulk."""
    makers = {
        f"{path.relative_to(settings.BASE_DIR)}:{function}"
        for app in APPS
        for path in (settings.BASE_DIR / app).rglob("*.py")
        if "migrations" not in path.parts and "legacy" not in path.parts
        for function in _makers_of_turns(path)
    }

    assert makers == {"memory_app/turns.py:append_turn"}


def _makers_of_turns(path: Path) -> list[str]:
    making = (
        "MemoryTurn(",
        "MemoryTurn.objects.create(",
        "MemoryTurn.objects.get_or_create(",
        "MemoryTurn.objects.update_or_create(",
        "MemoryTurn.objects.bulk_create(",
        ".turns.create(",
    )
    functions = [
        node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)
    ]
    return [
        function.name
        for function in functions
        if any(
            isinstance(node, ast.Call)
            and any(f"{ast.unparse(node.func)}(".endswith(word) for word in making)
            for node in ast.walk(function)
        )
    ]


def _first(said: list[str], words: str) -> int:
    return next(index for index, sql in enumerate(said) if words in sql)
