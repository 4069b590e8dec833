"""The supervisor, tried on small real processes that note their pid in a folder."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nahida.ops.supervisor import Timing, pause_before_restart, stall_reason

pytestmark = pytest.mark.processes

# A program notes its pid under its name; `helper` is what qcluster's workers are to its main.
PROGRAM = """
import os, signal, sys, time
def note(name): open(sys.argv[1] + "/%s-%d" % (name, os.getpid()), "w").close()
{prepare}
note("leader")
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("helper")
    time.sleep(60)
{act}
"""
SUPERVISOR = """
import os, sys
from nahida.ops.supervisor import Program, Supervisor, Timing
folder, body, sick = sys.argv[1:]
program = Program(
    name="program", command=[sys.executable, "-c", body, folder], sick=eval(sick)
)
timing = Timing(stop=0.5, stop_sick=0.5, first_pause=0.05, longest_pause=0.1, steady=9, check=0.1)
Supervisor([program], timing=timing).run()
"""
WELL = "lambda uptime: ''"


def eventually(condition: Callable[[], object], *, within: float = 8.0) -> bool:
    """Look again and again until the condition holds; other processes set the pace."""
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Stage:
    """A supervisor over one program, and the pids that the program noted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[str] | None = None

    def start(self, act: str, *, prepare: str = "", sick: str = WELL) -> "Stage":
        body = PROGRAM.format(act=act, prepare=prepare)
        self.process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR, str(self.folder), body, sick],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert eventually(lambda: self.pids("helper")), "the program did not start"
        return self

    def pids(self, name: str) -> list[int]:
        notes = sorted(self.folder.glob(f"{name}-*"), key=lambda note: note.stat().st_mtime_ns)
        return [int(note.name.rpartition("-")[2]) for note in notes]

    def living(self) -> list[int]:
        return [pid for pid in self.pids("leader") + self.pids("helper") if alive(pid)]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(8)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    if stage.process:
        stage.process.kill()
        stage.process.communicate()
    for pid in stage.living():
        os.kill(pid, signal.SIGKILL)


def test_it_kills_the_group_when_the_leader_ends_well(stage: Stage) -> None:
    """Exit code 0 is an end like any other: what the leader left behind goes too."""
    stage.start("time.sleep(0.2); sys.exit(0)")
    helper = stage.pids("helper")[0]

    assert eventually(lambda: not alive(helper))


def test_it_starts_an_ended_program_again(stage: Stage) -> None:
    stage.start("time.sleep(0.2); sys.exit(3)")

    assert eventually(lambda: len(stage.pids("leader")) >= 2)


def test_it_starts_a_killed_program_again(stage: Stage) -> None:
    stage.start("time.sleep(60)")
    leader, helper = stage.pids("leader")[0], stage.pids("helper")[0]

    os.kill(leader, signal.SIGKILL)

    assert eventually(lambda: len(stage.pids("helper")) == 2)
    assert not alive(helper)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_and_leaves_nothing(stage: Stage, number: signal.Signals) -> None:
    stage.start("time.sleep(60)")

    code = stage.end(number)

    assert code == 0
    assert eventually(lambda: not stage.living())


def test_it_asks_the_leader_first(stage: Stage) -> None:
    """The leader gets SIGTERM, and time to end in its own way."""
    asked = "signal.signal(signal.SIGTERM, lambda *a: (note('asked'), sys.exit()))"
    stage.start("time.sleep(60)", prepare=asked)

    stage.end()

    assert stage.pids("asked") == stage.pids("leader")


def test_it_kills_what_ignores_the_request(stage: Stage) -> None:
    stage.start("time.sleep(60)", prepare="signal.signal(signal.SIGTERM, signal.SIG_IGN)")

    code = stage.end()

    assert code == 0
    assert eventually(lambda: not stage.living())


def test_it_takes_everything_down_when_it_is_killed(stage: Stage) -> None:
    """Nobody runs on without a supervisor, not even after kill -9."""
    stage.start("time.sleep(60)")

    stage.end(signal.SIGKILL)

    assert eventually(lambda: not stage.living(), within=2)


def test_it_survives_a_killed_guard(stage: Stage) -> None:
    stage.start("time.sleep(60)")
    leader = stage.pids("leader")[0]
    guard = int(Path(f"/proc/{leader}/stat").read_text().rpartition(")")[2].split()[1])

    os.kill(guard, signal.SIGKILL)

    assert eventually(lambda: len(stage.pids("leader")) == 2)
    assert not alive(leader)


def test_it_restarts_a_sick_program(stage: Stage) -> None:
    stage.start("time.sleep(60)", sick="lambda uptime: 'no work' if uptime > 0.3 else ''")
    first = stage.pids("leader")[0]

    assert eventually(lambda: len(stage.pids("leader")) >= 2)
    assert not alive(first)


def test_it_wants_a_reason_twice_in_a_row(stage: Stage) -> None:
    """One bad look may be an unlucky moment."""
    reasons = (
        "(lambda reasons: lambda uptime: next(reasons))(__import__('itertools').cycle(['?', '']))"
    )
    stage.start("time.sleep(60)", sick=reasons)

    assert not eventually(lambda: len(stage.pids("leader")) >= 2, within=1)


def test_it_survives_a_look_that_fails(stage: Stage) -> None:
    stage.start("time.sleep(0.4); sys.exit()", sick="lambda uptime: 1 / 0")

    assert eventually(lambda: len(stage.pids("leader")) >= 2)


def test_it_doubles_the_pause_up_to_a_limit() -> None:
    timing = Timing(first_pause=0.5, longest_pause=30)

    pauses = [pause_before_restart(ends, timing=timing) for ends in (0, 1, 2, 6, 1000)]

    assert pauses == [0.5, 1.0, 2.0, 30, 30]


@pytest.mark.parametrize(
    ("uptime", "waiting", "silent", "said"),
    [
        (500, 0, 1, ""),
        (500, 61, 1, "work waits for 61 s"),
        (500, 0, 121, "no heartbeat for 121 s"),
        (30, 9_000, 9_000, ""),
        (80, 9_000, 9_000, "work waits for 70 s"),
    ],
)
def test_it_knows_a_stalled_cluster(
    uptime: float, waiting: float, silent: float, said: str
) -> None:
    """What is older than the cluster is not its doing: it has just been restarted."""
    reason = stall_reason(uptime, waiting=lambda: waiting, silent=lambda: silent, stall_s=60)

    assert reason == said
