"""A process that is killed: `python -m tests.legacy.doomed` reads lines `apply PK STEP`, `revert PK STEP` or `import FILE STEP`.

For each it forks a worker that kills itself with signal 9 just before its STEPth write, and says "killed"; or "done", if there are
not so many writes.
"""

import os
import signal
import sys

import django


def main() -> None:
    django.setup()
    from django.core.management import call_command

    from nahida.legacy.apply import apply_record
    from nahida.legacy.revert import revert
    from tests.legacy.scenes import before_write

    for line in sys.stdin:
        act, what, step = line.split()
        worker = os.fork()
        if worker:
            _, status = os.waitpid(worker, 0)
            print("killed" if os.WIFSIGNALED(status) else "done", flush=True)
            continue
        with before_write(int(step), lambda: os.kill(os.getpid(), signal.SIGKILL)):
            if act == "apply":
                apply_record(int(what), who="alice", allows=True)
            elif act == "revert":
                revert(int(what), who="alice")
            else:
                call_command("import_legacy", what, stdout=sys.stderr)
        os._exit(0)


if __name__ == "__main__":
    os.environ["NAHIDA_ROLE"] = "worker"
    main()
