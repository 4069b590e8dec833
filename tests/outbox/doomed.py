"""A worker that is killed: `python -m tests.outbox.doomed PK STEP` delivers a row and stops before its STEPth write to it.

It says each text that its platform was handed, then "here", and waits for the end.
"""

import os
import sys
import time

import django


def main(pk: int, step: int) -> None:
    django.setup()
    from channels_app.channels import get_channel
    from nahida.agent.delivery import deliver
    from tests.fakes.channel import FakeChannel
    from tests.outbox.stage import before_update

    def stop() -> None:
        print("here", flush=True)
        time.sleep(60)

    get_channel("fake")
    platform = FakeChannel.instances["fake"]
    # The text is said as it leaves: if the worker dies in mid-request, it has arrived all the same.
    platform.plan.extend([lambda message: print(message.part.text[0], flush=True)] * 9)
    with before_update(step, stop):
        deliver(pk)


if __name__ == "__main__":
    os.environ["NAHIDA_ROLE"] = "worker"
    main(*map(int, sys.argv[1:]))
