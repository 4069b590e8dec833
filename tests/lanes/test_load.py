"""Many messages, many workers, and everything goes wrong at random: none is lost, none answered twice, all in order."""

import multiprocessing
import random
import time
import traceback
from collections import Counter
from datetime import timedelta
from itertools import groupby
from multiprocessing.queues import SimpleQueue

import pytest
from django.db import connection, transaction
from django.db.models import F, Q

from channels_app.addresses import ChatAddress
from channels_app.clock import DbNow
from channels_app.models import Delivery
from memory_app.models import MemoryTurn, Role, TurnKind, TurnState
from memory_app.turns import GAVE_UP
from nahida import queue
from nahida.agent import turns
from nahida.agent.intake import accept
from nahida.agent.vocabulary import ModelError, Reply, Usage
from sessions_app import lanes
from sessions_app.models import Lane
from tests.base import message
from tests.lanes.stage import HOUR, CommittedLaneTestCase, Killed, dying_at

MESSAGES, LANES, WORKERS = 750, 20, 8
PATIENCE_S = 900  # far more than it takes on a busy machine: a test that hangs must end
STATEMENTS = 60  # about those of one turn: a death strikes anywhere in it


class Echo:
    """Answers the last line it was shown, after a moment; sometimes it is down, sometimes its worker dies over it."""

    name = "echo"
    context_tokens = 32_000
    sees_images = False

    def __init__(self, luck: random.Random) -> None:
        self.luck = luck

    def ask(self, messages, *, tools=(), on_text, record, deadline):
        time.sleep(self.luck.random() * 0.01)
        chance = self.luck.random()
        if chance < 0.02:
            raise ModelError("down", kind="unavailable")
        if chance < 0.04:
            raise Killed
        return Reply(f"to {messages[-1].text.splitlines()[-1]}", (), Usage(1, 1), "stop", self.name)


@pytest.mark.processes
@pytest.mark.xdist_group("lanes")
class LoadTests(CommittedLaneTestCase):
    """Each worker is a process with its own share of the messages and its own wake-ups, as in a cluster."""

    def setUp(self) -> None:
        super().setUp()
        self.addresses = [ChatAddress("fake", "private", str(number)) for number in range(LANES)]
        self.went_wrong = Counter[str]()

    def test_it_answers_everything_once_and_in_order(self):
        connection.close()  # nobody inherits it
        fork = multiprocessing.get_context("fork")
        reports = fork.SimpleQueue()
        workers = [fork.Process(target=self.work, args=(n, reports)) for n in range(WORKERS)]
        for worker in workers:
            worker.start()
        broken = []
        for _ in workers:
            went_wrong, trouble = reports.get()
            self.went_wrong += went_wrong
            broken += trouble
        for worker in workers:
            worker.join()

        self.assertEqual(broken, [])
        self.assertEqual(
            self.went_wrong.keys(), {"killed", "lease expired", "wake-up lost", "wake-up doubled"}
        )
        self.assert_nothing_is_left()
        self.assertEqual(MemoryTurn.objects.filter(role=Role.USER).count(), MESSAGES)
        for lane in Lane.objects.all():
            with self.subTest(lane=str(lane)):
                self.assert_answered_once_and_in_order(lane)

    def work(self, number: int, reports: "SimpleQueue[tuple[Counter[str], list[str]]]") -> None:  # type: ignore[override]
        luck = random.Random(number)
        unsent = list(range(number, MESSAGES, WORKERS))
        give_up = time.monotonic() + PATIENCE_S
        broken = []
        try:
            while unsent or Lane.objects.filter(wake_at__isnull=False).exists():
                assert time.monotonic() < give_up, "still not done"
                self.do_something(luck, unsent)
        except BaseException:
            broken.append(traceback.format_exc())
        connection.close()
        reports.put((self.went_wrong, broken))

    def do_something(self, luck: random.Random, unsent: list[int]) -> None:
        chance = luck.random()
        if chance < 0.3 and unsent:
            self.send(luck, [unsent.pop() for _ in range(min(luck.randint(1, 4), len(unsent)))])
        elif chance < 0.4:
            self.let_time_pass(luck)
        else:
            self.follow_a_wake_up(luck)

    def send(self, luck: random.Random, numbers: list[int]) -> None:
        """Let a few lines in a row arrive at one chat."""
        address = luck.choice(self.addresses)
        for number in numbers:
            text = "/new" if number % 40 == 39 else f"message {number}"
            accept(message(address, text, event_key=f"message {number}"))

    def let_time_pass(self, luck: random.Random) -> None:
        """Half a minute for every lane; one lease, live or not, runs out; then the ticker looks."""
        minute = timedelta(minutes=1)
        with transaction.atomic():  # several lanes are locked in order, by whomever
            every = list(Lane.objects.order_by("pk").select_for_update())
            Lane.objects.filter(woken_at__isnull=False).update(woken_at=F("woken_at") - minute)
            Lane.objects.filter(wake_at__gt=DbNow()).update(wake_at=DbNow())
        unlucky = luck.choice(every).pk if every else 0
        leased = Lane.objects.filter(pk=unlucky, lease_until__gt=DbNow(), token__isnull=False)
        self.went_wrong["lease expired"] += leased.update(lease_until=DbNow() - HOUR)
        self.woken += [(queue.RUN_LANE, pk) for pk in lanes.wake_due(50)]

    def follow_a_wake_up(self, luck: random.Random) -> None:
        try:
            wake_up = self.woken.pop(luck.randrange(len(self.woken)))  # in any order
        except (ValueError, IndexError):
            time.sleep(luck.random() * 0.02)
            return
        chance = luck.random()
        if chance < 0.05:
            self.went_wrong["wake-up lost"] += 1
            return
        if chance < 0.1:
            self.went_wrong["wake-up doubled"] += 1
            self.woken.append(wake_up)
        try:
            with dying_at(luck.randrange(STATEMENTS) if luck.random() < 0.05 else 10_000):
                turns.run_lane(wake_up[1], model_for=lambda chat: Echo(luck))
        except Killed:
            self.went_wrong["killed"] += 1

    def assert_nothing_is_left(self) -> None:
        self.assertFalse(MemoryTurn.objects.unfinished().exists())
        awake = ~Q(token=None) | ~Q(wake_at=None) | ~Q(woken_at=None)
        self.assertFalse(Lane.objects.filter(awake).exists())

    def assert_answered_once_and_in_order(self, lane: Lane) -> None:
        """Each answer belongs to the run of lines it answers, and no answer belongs to none."""
        said = MemoryTurn.objects.filter(lane=lane, role=Role.USER).order_by("pk")
        batches = [
            (answer, list(run)) for answer, run in groupby(said, lambda turn: turn.answered_by_id)
        ]
        answers = [answer for answer, _ in batches]
        stored = MemoryTurn.objects.filter(lane=lane, role=Role.ASSISTANT).order_by("pk")
        self.assertEqual(answers, [turn.pk for turn in stored])
        for answer, (_, batch) in zip(stored, batches, strict=True):
            self.assert_fits(answer, batch)
        sent = Delivery.objects.filter(address=str(lane.address)).order_by("pk")
        self.assertEqual([turn.delivery_id for turn in stored], [delivery.pk for delivery in sent])

    def assert_fits(self, answer: MemoryTurn, batch: list[MemoryTurn]) -> None:
        self.assertEqual({turn.batch for turn in batch}, {batch[0].pk})
        if batch[0].state == TurnState.FAILED:
            self.assertIn(answer.content, (GAVE_UP, turns.MODEL_IS_DOWN))
            return
        self.assertEqual({turn.state for turn in batch}, {TurnState.DONE})
        if batch[0].kind == TurnKind.MESSAGE:
            self.assertEqual(answer.content, f"to {batch[-1].content}")
