"""Any order of messages, commands, deaths and failures: the lane does what a plain list of lines would do."""

from dataclasses import dataclass, field

import hypothesis.strategies as st
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory_app.models import MemoryTurn, Role
from memory_app.turns import ATTEMPTS, GAVE_UP
from nahida.agent.turns import MODEL_IS_DOWN
from nahida.agent.vocabulary import ModelError
from tests.base import GROUP
from tests.fakes.model import ScriptedModel
from tests.lanes.stage import Killed, LaneTestCase


@dataclass(eq=False)
class Line:
    text: str
    kind: str = "message"
    rights: str = "member"
    state: str = "pending"
    batch: "Batch | None" = None


@dataclass(eq=False)
class Batch:
    lines: list[Line]
    attempts: int = 0
    is_stopped: bool = False

    def end(self, state: str) -> None:
        for line in self.lines:
            line.state = state


@dataclass
class PlainLane:
    """What a lane is meant to be, in memory."""

    lines: list[Line] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    running: Batch | None = None
    is_put_off: bool = False
    is_awake: bool = False

    @property
    def pending(self) -> list[Line]:
        return [line for line in self.lines if line.state == "pending"]

    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.is_awake = self.is_awake or line.state == "pending"

    def stop(self) -> None:
        for line in self.pending:
            if line.kind == "message":
                line.state = "stopped"
        if self.running:
            self.running.is_stopped = True

    def begin(self) -> Batch | None:
        """Return the batch that a worker gets to work on; None if there is nothing to answer, or no more."""
        if not self.is_awake or self.is_put_off:
            return None
        if self.running is None and self.pending:
            self.running = self.next_batch()
        batch = self.running
        if batch is None or batch.is_stopped or batch.attempts == ATTEMPTS:
            self.give_up(batch)
            return None
        batch.attempts += 1
        batch.end("running")
        return batch

    def next_batch(self) -> Batch:
        first, *rest = self.pending
        if first.batch is not None:
            return first.batch
        lines = [first]
        for line in rest if first.kind == "message" else []:
            if line.batch or (line.kind, line.rights) != (first.kind, first.rights):
                break
            lines.append(line)
        batch = Batch(lines)
        for line in lines:
            line.batch = batch
        return batch

    def give_up(self, batch: Batch | None) -> None:
        if batch is not None:
            batch.end("stopped" if batch.is_stopped else "failed")
            self.answers += [] if batch.is_stopped else [GAVE_UP]
        self.finish()

    def put_back(self, batch: Batch) -> None:
        if batch.attempts == ATTEMPTS:
            batch.end("failed")
            self.answers.append(MODEL_IS_DOWN)
            self.finish()
            return
        batch.end("pending")
        self.running = None
        self.is_put_off = True

    def finish(self) -> None:
        self.running = None
        self.is_awake = bool(self.pending)


class LaneMachine(RuleBasedStateMachine):
    stage: "MachineTests"

    def __init__(self) -> None:
        super().__init__()
        self.plain = PlainLane()
        self.count = 0
        self.example = transaction.atomic()
        self.example.__enter__()

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.example.__exit__(None, None, None)

    @initialize()
    def open(self) -> None:
        self.stage.say(GROUP, "hello, all", addressed=False)
        self.plain.add(Line("hello, all", state="observed"))

    def say(self, text: str, **details: object) -> str:
        self.count += 1
        text = f"{text} {self.count}"
        self.stage.say(GROUP, text, message_id=str(self.count), **details)
        return text

    @rule(is_admin=st.booleans())
    def ask(self, is_admin: bool) -> None:
        text = self.say("line", is_admin=is_admin)
        self.plain.add(Line(text, rights="admin" if is_admin else "member"))

    @rule()
    def chat(self) -> None:
        self.plain.add(Line(self.say("aside", addressed=False), state="observed"))

    @rule()
    def command(self) -> None:
        self.plain.add(Line(self.say("/new"), kind="command"))

    @rule()
    def stop(self) -> None:
        text = self.say("/stop")
        had_work = bool(self.plain.pending or self.plain.running)
        self.plain.stop()
        self.plain.add(Line(text, kind="command", state="done"))
        self.plain.answers.append("Stopped." if had_work else "There was nothing to stop.")

    @precondition(lambda self: any(line.text.startswith("line") for line in self.plain.lines))
    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        lines = [line for line in self.plain.lines if line.text.startswith("line")]
        line = data.draw(st.sampled_from(lines))
        number = line.text.split()[1]
        self.count += 1
        text = f"line {number} edited {self.count}"
        self.stage.say(GROUP, text, edits=number, message_id=number)
        if line.state == "pending" and line.batch is None:
            line.text = text
        else:
            self.plain.add(Line(text, kind="edit", state="observed"))
            self.plain.lines[-1].text = text

    @rule()
    def work(self) -> None:
        batch = self.plain.begin()
        if batch is None or batch.lines[0].kind == "command":
            self.stage.run_lane(GROUP, model=ScriptedModel())
            if batch is not None:
                batch.end("done")
                self.plain.answers.append("A new conversation begins.")
                self.plain.finish()
            return
        answer = f"to {batch.lines[-1].text}"
        self.stage.run_lane(GROUP, model=ScriptedModel(answer))
        batch.end("done")
        self.plain.answers.append(answer)
        self.plain.finish()

    @precondition(lambda self: self.next_is_a_message())
    @rule()
    def die(self) -> None:
        batch = self.plain.begin()
        model = ScriptedModel(*[Killed()] * (batch is not None))
        try:
            self.stage.run_lane(GROUP, model=model)
        except Killed:
            self.stage.expire_lease(GROUP)

    @precondition(lambda self: self.next_is_a_message())
    @rule()
    def be_down(self) -> None:
        batch = self.plain.begin()
        model = ScriptedModel(*[ModelError("down", kind="unavailable")] * (batch is not None))
        self.stage.run_lane(GROUP, model=model)
        if batch is not None:
            self.plain.put_back(batch)

    def next_is_a_message(self) -> bool:
        lines = self.plain.running.lines if self.plain.running else self.plain.pending
        return bool(lines) and lines[0].kind == "message"

    @precondition(lambda self: self.plain.is_put_off)
    @rule()
    def wait(self) -> None:
        self.plain.is_put_off = False
        self.stage.make_due(GROUP)

    @invariant()
    def it_holds_the_same_lines(self) -> None:
        rows = MemoryTurn.objects.filter(role=Role.USER).order_by("pk")
        stored = [(turn.content, turn.kind, turn.state) for turn in rows]
        self.stage.assertEqual(
            stored, [(line.text, line.kind, line.state) for line in self.plain.lines]
        )

    @invariant()
    def it_has_given_the_same_answers(self) -> None:
        answers = MemoryTurn.objects.filter(role=Role.ASSISTANT).order_by("pk")
        said = [answer.content for answer in answers]
        self.stage.assertEqual(
            [text[: len(plain)] for text, plain in zip(said, self.plain.answers, strict=True)],
            self.plain.answers,
        )

    @invariant()
    def it_sleeps_when_nothing_is_left(self) -> None:
        if not self.plain.lines:
            return
        is_awake = self.stage.lane(GROUP).wake_at is not None
        self.stage.assertEqual(is_awake, self.plain.is_awake)


class MachineTests(LaneTestCase):
    def test_it_does_what_a_plain_list_would_do(self):
        class Machine(LaneMachine):
            stage = self

        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=25,
                stateful_step_count=25,
                deadline=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
