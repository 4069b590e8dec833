"""A running server and worker in this process, for tests that need a real connection."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from decimal import Decimal

import uvicorn
from django.contrib.auth.models import User
from django.db import connections
from django.test import TransactionTestCase
from django.test.utils import override_settings

from nahida.agent.turns import run_lane
from nahida.agent.vocabulary import CallRecord, Message, Reply, ToolSpec, Usage
from nahida.ops.stopping import stopping
from sessions_app import lanes

LOOK_EVERY_S = 0.03
START_S = 10


class PacedModel:
    """Shows each answer's first half, and the rest when the test opens the gate."""

    name = "paced"
    context_tokens = 32_000
    sees_images = False

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.asked: list[Sequence[Message]] = []

    def ask(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        on_text: Callable[[str], None],
        record: Callable[[CallRecord], None],
        deadline: float,
    ) -> Reply:
        self.asked.append(messages)
        text = self.answers.pop(0) if self.answers else f"answer {len(self.asked)}"
        half = text[: len(text) // 2]
        on_text(half)
        while not self.gate.wait(LOOK_EVERY_S):
            on_text(half)
        record(CallRecord(self.name, 10, 5, Decimal(0), 1, "stop", False))
        return Reply(text, (), Usage(10, 5), "stop", self.name)


class _Server(uvicorn.Server):
    def install_signal_handlers(self) -> None:
        """Signals belong to the test runner."""


@override_settings(
    ALLOWED_HOSTS=["127.0.0.1"],
    CSRF_TRUSTED_ORIGINS=[],
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
)
class LiveCase(TransactionTestCase):
    """Alice and bob, a server at `self.url`, and a worker that asks `self.model`."""

    def setUp(self) -> None:
        self.alice = User.objects.create_user("alice", password="a long pass phrase")
        self.bob = User.objects.create_user("bob", password="a long pass phrase")
        self.model = PacedModel()
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, daemon=True),
            threading.Thread(target=self._serve, daemon=True),
        ]
        self._server = _Server(
            uvicorn.Config(
                "nahida.asgi:application", port=0, lifespan="off", log_level="warning", ws="none"
            )
        )
        for thread in self._threads:
            thread.start()
        self.addCleanup(self._stop)
        for _ in range(int(START_S / LOOK_EVERY_S)):
            if self._server.started:
                break
            self._over.wait(LOOK_EVERY_S)
        self.assertTrue(self._server.started, "the server did not start")
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def _serve(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._server.serve())
        self._loop.close()

    def _work(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            for lane_id in lanes.wake_due(10):
                run_lane(lane_id, model_for=lambda chat: self.model)
        connections.close_all()

    def _stop(self) -> None:
        self.model.gate.set()
        self._over.set()
        self._loop.call_soon_threadsafe(stopping.set)
        self._server.should_exit = True
        for thread in self._threads:
            thread.join(START_S)
        stopping.clear()
