"""Lead one program's process group, and let nothing of it outlive its leader or the supervisor.

Run as `python -I -S guard.py COMMAND...`, a session of its own, with stdin a socket whose other
end only the supervisor holds. It closes when the supervisor dies, however that happens.
The program's exit code goes out over it, because the guard takes itself down with the group.
"""

import contextlib
import os
import signal
import sys
from types import FrameType


def main(command: list[str]) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    program = os.fork()
    if program == 0:
        _become(command)

    def pass_on(number: int, frame: FrameType | None) -> None:
        # Not yet reaped, so the pid is still the program's own.
        os.kill(program, number)

    def look(number: int, frame: FrameType | None) -> None:
        pid, status = os.waitpid(program, os.WNOHANG)
        if pid:
            _end(os.waitstatus_to_exitcode(status))

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGCHLD, look)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
    os.read(0, 1)  # the supervisor never writes: this returns when it is gone
    _end(0)


def _become(command: list[str]) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        os.execvp(command[0], command)  # noqa: S606 (the supervisor's own command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(127)


def _end(code: int) -> None:
    with contextlib.suppress(OSError):  # nobody may be left to read it
        os.write(0, b"%d" % code)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
