"""Chats that move while others write to them, in threads with connections of their own."""

import random
import threading
from collections.abc import Callable
from functools import partial

from django.db import connection, transaction

from channels_app import outbox
from channels_app.addresses import ChatAddress, SessionKey
from channels_app.models import Delivery
from memory_app.models import MemoryTurn, TurnState
from nahida.agent import turns
from sessions_app import lanes
from sessions_app.deadlocks import outlast_deadlocks
from sessions_app.models import Chat, Lane, MigrationLog, Session
from tests.fakes.model import ScriptedModel
from tests.sessions_app.moving import NEW, OLD, CommittedMovingTestCase

THIRD = ChatAddress("fake", "group", "3")


def together(*acts: Callable[[], object]) -> list[BaseException]:
    """Run all at once, and return what they raised."""
    failures: list[BaseException] = []
    start = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> None:
        try:
            start.wait(10)
            act()
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return failures


class ThreadTests(CommittedMovingTestCase):
    """Messages and moves are begun anew after a deadlock, as intake and delivery do."""

    def move(self, to: ChatAddress = NEW, *, chat: Chat | None = None) -> Chat:
        move = super().move
        return outlast_deadlocks(lambda: move(to, chat=chat))

    def append(self, where: ChatAddress, text: str, **details: object) -> MemoryTurn:
        append = super().append
        return outlast_deadlocks(lambda: append(where, text, **details))

    def test_it_loses_nothing_that_comes_while_a_chat_is_merged(self):
        """New topics appear at both addresses, messages and deliveries too, while the two become one."""
        for seed in range(4):
            with self.subTest(seed):
                old, new = (ChatAddress("fake", "group", f"{seed}{at}") for at in ("a", "b"))
                self.append(old, "hi")
                self.append(new, "hi")
                chat = self.chat(old)

                failures = together(
                    partial(self.write, old, seed),
                    partial(self.write, new, seed),
                    partial(self.write, old, seed + 100),
                    partial(self.move, new, chat=chat),
                )

                self.assertEqual(failures, [])
                self.assert_whole(self.chat(new))
                lines = MemoryTurn.objects.filter(lane__chat=self.chat(new))
                self.assertEqual(lines.count(), 2 + 3 * 12)
                self.assertEqual(
                    Delivery.objects.filter(address__startswith=f"{new}").count(), 3 * 12
                )

    def test_it_loses_nothing_that_comes_while_a_chat_is_renamed(self):
        for seed in range(4):
            with self.subTest(seed):
                old, new = (ChatAddress("fake", "group", f"{seed}{at}") for at in ("a", "b"))
                self.append(old, "hi")
                chat = self.chat(old)

                failures = together(
                    partial(self.write, old, seed),
                    partial(self.write, new, seed),
                    partial(self.move, new, chat=chat),
                )

                self.assertEqual(failures, [])
                self.assert_whole(self.chat(new))
                lines = MemoryTurn.objects.filter(lane__chat=self.chat(new))
                self.assertEqual(lines.count(), 1 + 2 * 12)

    def test_it_moves_once_when_it_is_told_twice(self):
        """Two failed sends learn of the same move at once."""
        self.append(OLD, "hi")
        chat = self.chat(OLD)

        failures = together(*[lambda: self.move(NEW, chat=chat)] * 3)

        self.assertEqual(failures, [])
        self.assertEqual(MigrationLog.objects.count(), 1)
        self.assertEqual(self.chat(NEW).pk, chat.pk)

    def test_it_survives_moves_in_a_circle(self):
        """Three chats are each told to move to the next: one is left, and each address leads to it."""
        for where in (OLD, NEW, THIRD):
            self.append(where, f"hi {where}")
        circle = [(OLD, NEW), (NEW, THIRD), (THIRD, OLD)]
        chats = {where: self.chat(where) for where in (OLD, NEW, THIRD)}

        failures = together(*[partial(self.move, b, chat=chats[a]) for a, b in circle])

        self.assertEqual(failures, [])
        (left,) = Chat.objects.filter(merged_into=None)
        self.assertEqual(MemoryTurn.objects.filter(lane__chat=left).count(), 3)
        self.assertEqual(Lane.objects.count(), 1)

    def test_it_answers_each_message_once_while_the_chat_is_merged(self):
        """Two workers answer, one thread merges; a turn that loses its lane is answered by the next holder."""
        for number in range(6):
            self.append(OLD, f"old {number}")
            self.append(NEW, f"new {number}")
        chat = self.chat(OLD)
        model = ScriptedModel(*["an answer"] * 99)

        def work() -> None:
            for _ in range(4):
                for pk in Lane.objects.values_list("pk", flat=True):
                    turns.run_lane(pk, model_for=lambda chat: model)

        failures = together(work, work, lambda: self.move(NEW, chat=chat))
        Lane.objects.update(lease_until=self.chat(NEW).created_at)
        work()

        self.assertEqual(failures, [])
        asked = MemoryTurn.objects.filter(role="user")
        self.assertEqual(set(asked.values_list("state", flat=True)), {TurnState.DONE})
        self.assertEqual(
            MemoryTurn.objects.filter(role="assistant").count(),
            asked.values("answered_by").distinct().count(),
        )
        self.assertFalse(Delivery.objects.filter(address=str(OLD)).exists())

    def write(self, where: ChatAddress, seed: int) -> None:
        chance = random.Random(seed)
        for number in range(12):
            topic = where.with_thread(chance.choice(["", *"12345678"]))
            self.append(topic, f"{seed} {number}")
            outlast_deadlocks(partial(self.queue, topic, f"{seed} {number}"))

    @transaction.atomic
    def queue(self, where: ChatAddress, text: str) -> None:
        outbox.post(lanes.lock(where).address, text)

    def assert_whole(self, chat: Chat) -> None:
        """Nothing is left at the old address, and every key says where its row is."""
        strays = Lane.objects.exclude(chat__merged_into=None)
        self.assertFalse(strays.exists())
        for session in Session.objects.filter(chat=chat):
            self.assertEqual(session.session_key.chat_key, chat.chat_key)
        for lane in Lane.objects.filter(chat=chat):
            self.assertEqual(lane.active_session.chat, chat)
            base = SessionKey(lane.address)
            self.assertEqual(lane.active_session.key, str(base))
            rows = MemoryTurn.objects.filter(lane=lane)
            self.assertFalse(rows.exclude(session__chat=chat).exists())
        at_work = {lane.address for lane in Lane.objects.filter(chat=chat)}
        for delivery in Delivery.objects.filter(address__startswith=chat.chat_key):
            self.assertIn(delivery.to, at_work)
