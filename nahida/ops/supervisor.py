"""Run a few programs for as long as we live: restart each that ends, leave nothing behind.

Each program runs under a guard (guard.py) that leads a session of its own. The group of a program
is killed whenever its leader exits, with any code: the main process of qcluster leaves workers
behind that go on taking tasks. No Django here.
"""

import contextlib
import logging
import math
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

logger = logging.getLogger(__name__)

GUARD = Path(__file__).with_name("guard.py")
START_S = 10.0  # what a program may need to import all that it is made of
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class Timing:
    """Seconds of the supervisor's patience; tests are less patient."""

    stop: float = 10.0  # from SIGTERM to SIGKILL
    stop_sick: float = 3.0  # the same for one that does not work: few of those stop when asked
    first_pause: float = 0.5  # before a restart; doubled by each early end
    longest_pause: float = 30.0
    steady: float = 30.0  # a program that ran this long did not end early
    check: float = 2.0  # between two looks at whether programs are well


def never_sick(uptime: float) -> str:
    return ""


def nothing() -> None:
    pass


@dataclass(frozen=True)
class Program:
    """One thing to keep running.

    `started` is called at each start, in a thread. `sick` is asked now and then, in a thread of its own, with the seconds since the start; it
    returns why the program must be restarted, or "".
    """

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    sick: Callable[[float], str] = never_sick
    started: Callable[[], None] = nothing


def stall_reason(
    uptime: float,
    *,
    waiting: Callable[[], float],
    silent: Callable[[], float],
    stall_s: float,
    silent_s: float = 120.0,
) -> str:
    """Say why a cluster that is alive does no work, or "".

    `waiting` is the age of the oldest due row nobody claims while a worker is free, `silent` that
    of the last heartbeat. What is older than the cluster is not the cluster's doing.
    """
    working = uptime - START_S
    if (age := min(working, waiting())) > stall_s:
        return f"work waits for {age:.0f} s"
    if (age := min(working, silent())) > silent_s:
        return f"no heartbeat for {age:.0f} s"
    return ""


def pause_before_restart(early_ends: int, *, timing: Timing) -> float:
    """Return the seconds to wait after this many early ends in a row."""
    return min(timing.longest_pause, timing.first_pause * 2.0 ** min(early_ends, 16))


class _Running:
    """One incarnation of a program: its guard, and our end of the guard's stdin."""

    def __init__(self, program: Program) -> None:
        self.started = time.monotonic()
        self.kill_at: float | None = None
        self.complaint = ""  # why it has to go, as the thread that looks after it found
        self.is_doubted = False  # the last look found a reason
        self.line, theirs = socket.socketpair()
        with theirs:
            self.guard = subprocess.Popen(  # noqa: S603 (our own command)
                [sys.executable, "-I", "-S", str(GUARD), *program.command],
                stdin=theirs.fileno(),
                env={**os.environ, **program.env},
                start_new_session=True,
            )

    def has_ended(self) -> bool:
        # WNOWAIT leaves the zombie: until it is reaped nobody else can get its process group id.
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.guard.pid, options) is not None

    def terminate(self, *, deadline: float) -> None:
        if self.kill_at is None:
            self.kill_at = deadline
            os.kill(self.guard.pid, signal.SIGTERM)  # send_signal() would reap

    def kill(self) -> None:
        # The whole group may be gone already (macOS says so with EPERM).
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.guard.pid, signal.SIGKILL)

    def bury(self) -> str:
        """Take down what is left of the group and say how the program ended."""
        self.kill()
        self.guard.wait()
        self.line.setblocking(False)
        try:
            code = self.line.recv(16).decode()
        except OSError:
            code = ""
        self.line.close()
        return f"exit code {code}" if code else "a kill"


class _Keeper:
    """Keeps one program running."""

    def __init__(self, program: Program, *, timing: Timing) -> None:
        self.program = program
        self.timing = timing
        self.running: _Running | None = None
        self.start_at = 0.0
        self.early_ends = 0

    def step(self, *, stopping: bool) -> None:
        """Do what is due now."""
        now = time.monotonic()
        running = self.running
        if running is None:
            if not stopping and now >= self.start_at:
                self._start()
        elif running.has_ended():
            self._bury(running, stopping=stopping)
        elif running.kill_at is not None and now >= running.kill_at:
            logger.warning("%s does not stop: killed", self.program.name)
            running.kill_at = math.inf  # its end wakes us
            running.kill()
        elif running.complaint and running.kill_at is None:
            logger.warning("%s is restarted: %s", self.program.name, running.complaint)
            running.terminate(deadline=now + self.timing.stop_sick)

    def _start(self) -> None:
        try:
            self.running = _Running(self.program)
            threading.Thread(target=self._tell_start, daemon=True).start()
        except OSError:  # no process or memory left just now
            logger.exception("%s cannot be started", self.program.name)
            self.start_at = time.monotonic() + self.timing.longest_pause

    def _tell_start(self) -> None:
        try:
            self.program.started()
        except Exception:
            logger.exception("what is due at the start of %s failed", self.program.name)

    def look(self) -> bool:
        """Ask how the program is; True if it has to go.

        It has to when there is a reason twice in a row: one look may fall between the end of a
        long wait and the worker that is on its way.
        """
        running = self.running
        if running is None:
            return False
        try:
            reason = self.program.sick(time.monotonic() - running.started)
        except Exception:
            logger.exception("cannot tell how %s is", self.program.name)
            return False
        running.complaint = reason if running.is_doubted else ""
        running.is_doubted = reason != ""
        return running.complaint != ""

    def _bury(self, running: _Running, *, stopping: bool) -> None:
        end = running.bury()
        self.running = None
        if stopping:
            return
        now = time.monotonic()
        early = now - running.started < self.timing.steady and not running.complaint
        self.early_ends = self.early_ends + 1 if early else 0
        pause = pause_before_restart(self.early_ends - early, timing=self.timing)
        self.start_at = now + pause
        logger.warning("%s ended with %s: again in %.1f s", self.program.name, end, pause)

    def due_in(self, *, stopping: bool) -> float | None:
        """Return the seconds until `step` has something to do by itself."""
        if self.running is None:
            due = None if stopping else self.start_at
        else:
            due = self.running.kill_at
        return None if due in (None, math.inf) else max(0.0, due - time.monotonic())

    def stop(self) -> None:
        if self.running:
            self.running.terminate(deadline=time.monotonic() + self.timing.stop)

    def kill(self) -> None:
        if self.running:
            self.running.kill()


class Supervisor:
    """Runs programs until SIGTERM, SIGINT or SIGHUP; a second signal kills at once."""

    def __init__(self, programs: Sequence[Program], *, timing: Timing | None = None) -> None:
        self.timing = timing or Timing()
        self.keepers = [_Keeper(program, timing=self.timing) for program in programs]
        self.signals = 0
        self.closing = threading.Event()

    def run(self) -> None:
        """Return when every program has ended after a signal. Main thread only."""
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        with ours, theirs, selectors.DefaultSelector() as selector:
            selector.register(ours, selectors.EVENT_READ)
            self._listen_to_signals(theirs.fileno())
            doctor = threading.Thread(target=self._look_after, args=(theirs,), daemon=True)
            doctor.start()
            try:
                while self._step():
                    if selector.select(self._patience()):
                        ours.recv(4096)
            finally:
                self.closing.set()
                for keeper in self.keepers:
                    keeper.kill()
                signal.set_wakeup_fd(-1)

    def _listen_to_signals(self, wakeup: int) -> None:
        def count(number: int, frame: FrameType | None) -> None:
            self.signals += 1

        def notice(number: int, frame: FrameType | None) -> None:
            """The wake-up is all that SIGCHLD is for."""

        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            # nohup has SIGHUP ignored, and means it.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, count)
        signal.signal(signal.SIGCHLD, notice)

    def _step(self) -> bool:
        """Do all that is due; False when we are to stop and nothing runs any more."""
        stopping = self.signals > 0
        for keeper in self.keepers:
            if self.signals > 1:
                keeper.kill()
            elif stopping:
                keeper.stop()
            keeper.step(stopping=stopping)
        return not stopping or any(keeper.running for keeper in self.keepers)

    def _patience(self) -> float | None:
        waits = [keeper.due_in(stopping=self.signals > 0) for keeper in self.keepers]
        return min((wait for wait in waits if wait is not None), default=None)

    def _look_after(self, wakeup: socket.socket) -> None:
        """Note what ails each program. Runs in a thread: a look may wait for a database."""
        while not self.closing.wait(self.timing.check):
            for keeper in self.keepers:
                if keeper.look():
                    wakeup.send(b"\0")
