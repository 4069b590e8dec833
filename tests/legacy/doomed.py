"""A process that is killed: `python -m tests.legacy.doomed` reads lines `apply PK STEP` or `revert PK STEP`.

For each it forks a worker that kills itself with signal 9 just before its STEPth write, and says "killed"; or "done", if there are
not so many writes.
"""

import os
import signal
import sys

import django


def main() -> None:
    django.setup()
    from nahida.legacy.apply import apply_record
    from nahida.legacy.revert import revert
    from tests.legacy.scenes import before_write

    for line in sys.stdin:
        act, pk, step = line.split()
        worker = os.fork()
        if worker:
            _, status = os.waitpid(worker, 0)
            print("killed" if os.WIFSIGNALED(status) else "done", flush=True)
            continue
        with before_write(int(step), lambda: os.kill(os.getpid(), signal.SIGKILL)):
            if act == "apply":
                apply_record(int(pk), who="alice", allows=True)
            else:
                revert(int(pk), who="alice")
        os._exit(0)


if __name__ == "__main__":
    os.environ["NAHIDA_ROLE"] = "worker"
    main()
