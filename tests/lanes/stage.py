"""What the tests of the lane add to the stage: workers that die, leases that run out, tools of every effect."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from django.db import connection
from django.db.models import F
from django_q.signals import pre_enqueue
from pydantic import BaseModel

from channels_app.addresses import ChatAddress
from channels_app.clock import DbNow
from memory_app.models import MemoryTurn
from memory_app.turns import Outgoing
from nahida.agent import policy, turns
from nahida.agent.policy import Rights
from nahida.agent.tools.base import Effect, Tool, ToolError, TurnScope
from nahida.agent.tools.message import MESSAGE
from nahida.agent.vocabulary import Model
from sessions_app import lanes
from sessions_app.models import Chat, Lane
from tests.base import ALICE, BOB, CommittedTestCase, NahidaTestCase, Stage

HOUR = timedelta(hours=1)


class Killed(BaseException):
    """The worker's process ends here: nothing that catches errors sees it."""


class Note(BaseModel):
    text: str


class Tools:
    """Test-only tools, one of each effect, and what they did to the world."""

    def __init__(self) -> None:
        self.looked: list[str] = []
        self.left: list[str] = []
        self.before_outside: Callable[[], None] = lambda: None
        self.offered = (
            Tool("look", "reads", Note, Effect.READ, self._look),
            Tool("say", "stages", Note, Effect.STAGED, self._say),
            Tool("title", "writes rows", Note, Effect.ROWS, self._title),
            Tool("post", "has an effect outside", Note, Effect.OUTSIDE, self._post),
            MESSAGE,
        )

    def _look(self, note: Note, scope: TurnScope) -> str:
        self.looked.append(note.text)
        return f"saw {note.text}"

    def _say(self, note: Note, scope: TurnScope) -> str:
        scope.staged.append(Outgoing(address=BOB, text=note.text))
        return "staged"

    def _title(self, note: Note, scope: TurnScope) -> str:
        chat = Chat.objects.get(pk=scope.chat.pk)
        Chat.objects.filter(pk=chat.pk).update(title=chat.title + note.text)
        if note.text == "refused":
            raise ToolError("that title is refused")
        return f"title is {chat.title + note.text}"

    def _post(self, note: Note, scope: TurnScope) -> str:
        self.before_outside()
        if note.text == "refused":
            raise ToolError("nobody listens there")
        self.left.append(note.text)
        return f"posted {note.text}"


class LaneStage(Stage):
    tools: Tools

    def setUp(self) -> None:
        super().setUp()
        self.tools = Tools()
        self.woken: list[tuple[str, int]] = []
        rights = dict.fromkeys(("look", "say", "title", "post"), Rights.MEMBER)
        table = patch.dict(policy.NEEDED, rights)
        table.start()
        self.addCleanup(table.stop)  # type: ignore[attr-defined]
        pre_enqueue.connect(self._note_wake_up, weak=False, dispatch_uid="lanes")
        self.addCleanup(pre_enqueue.disconnect, dispatch_uid="lanes")  # type: ignore[attr-defined]

    def _note_wake_up(self, sender: object, task: dict[str, Any], **_: object) -> None:
        self.woken.append((task["func"], task["args"][0]))

    def run_lane(self, address: ChatAddress = ALICE, *, model: Model | None = None) -> None:
        """Let a worker look at one lane, once."""
        turns.run_lane(
            self.lane(address).pk,
            model_for=lambda chat: model or self.model,
            tools=self.tools.offered,
        )

    def run_lanes(self, *, model: Model | None = None) -> int:
        before = MemoryTurn.objects.unfinished().count()
        for lane in Lane.objects.filter(wake_at__lte=DbNow()).order_by("wake_at"):
            self.run_lane(lane.address, model=model)
        return before - MemoryTurn.objects.unfinished().count()

    def die(self, address: ChatAddress = ALICE) -> None:
        """Let a worker take the next batch and die over the model call."""
        self.model.enqueue(Killed())
        try:
            self.run_lane(address)
        except Killed:
            self.expire_lease(address)
            return
        raise AssertionError("the worker had nothing to die over")

    def expire_lease(self, address: ChatAddress = ALICE) -> None:
        Lane.objects.filter(pk=self.lane(address).pk).update(lease_until=DbNow() - HOUR)

    def put_off(self, address: ChatAddress = ALICE, *, by: timedelta = HOUR) -> None:
        Lane.objects.filter(pk=self.lane(address).pk).update(wake_at=DbNow() + by)

    def make_due(self, address: ChatAddress = ALICE) -> None:
        self.put_off(address, by=-HOUR)

    def age_wake_up(self, address: ChatAddress = ALICE, *, by: timedelta) -> None:
        Lane.objects.filter(pk=self.lane(address).pk).update(woken_at=F("woken_at") - by)

    def claim(self, address: ChatAddress = ALICE) -> uuid.UUID:
        token = lanes.claim(self.lane(address).pk)
        assert token is not None
        return token

    def turn(self, text: str) -> MemoryTurn:
        return MemoryTurn.objects.get(content=text)

    def states(self, *texts: str) -> list[str]:
        return [self.turn(text).state for text in texts]


class LaneTestCase(LaneStage, NahidaTestCase):
    """A test inside one transaction."""


class CommittedLaneTestCase(LaneStage, CommittedTestCase):
    """A test of real transactions, for other threads and processes."""

    def wait_until_blocked(self) -> None:
        """Return when another connection waits for a lock of ours; on SQLite, where every writer does, at once."""
        if connection.vendor != "postgresql":
            return
        blocked = "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        for _ in range(2_000):
            with connection.cursor() as cursor:
                cursor.execute(blocked)
                if cursor.fetchone():
                    return
            threading.Event().wait(0.005)
        raise AssertionError("nobody waits for our locks")


@contextmanager
def dying_at(step: int) -> Iterator[list[str]]:
    """Kill the worker just before its statement number `step`. Yields the statements it came to say.

    The statements of transactions are not counted: a process that dies before COMMIT dies before the next statement, too.
    """
    said: list[str] = []

    def die(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN")):
            return execute(sql, params, many, context)
        said.append(sql)
        if len(said) == step + 1:
            raise Killed
        return execute(sql, params, many, context)

    with connection.execute_wrapper(die):
        yield said


@contextmanager
def meanwhile(begins: str, act: Callable[[], object]) -> Iterator[None]:
    """Let something happen just before the first statement that begins so, as another process would do it."""
    waiting = [act]

    def interrupt(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if waiting and sql.startswith(begins):
            waiting.pop()()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(interrupt):
        yield
    assert not waiting, f"no statement began with {begins}"
