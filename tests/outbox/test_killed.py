"""D2 with kill -9 of a real worker, at every step of a send."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from channels_app.models import Delivery, DeliveryState
from nahida.ops.ticker import tick
from tests.outbox.stage import CommittedOutboxTestCase

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]


class KilledTests(CommittedOutboxTestCase):
    def test_it_is_sent_by_the_next_worker_when_it_was_only_claimed(self):
        one, behind = self.post_parts("a", "b"), self.post("z")

        arrived = self.kill_before(2, one)
        self.assertEqual((arrived, self.state(one)), ("", DeliveryState.CLAIMED))
        self.expire_lease(one)
        self.work()

        self.assertEqual(arrived + self.letters(), "abz")
        self.assertEqual(self.states(one, behind), [DeliveryState.SENT] * 2)

    def test_it_is_unknown_when_a_request_was_out(self):
        """The platform has the first part, and nobody recorded it: it is not sent again."""
        one, behind = self.post_parts("a", "b"), self.post("z")

        arrived = self.kill_before(3, one)
        self.assertEqual(self.state(one), DeliveryState.SENDING)
        tick()
        self.assertEqual(self.state(one), DeliveryState.SENDING)
        self.expire_lease(one)
        self.work()

        self.assertEqual(arrived + self.letters(), "az")
        self.assertEqual((self.state(one), one.next_part), (DeliveryState.UNKNOWN, 0))
        self.assertIsNotNone(one.token)
        self.assertEqual(self.state(behind), DeliveryState.SENT)

    def test_it_is_unknown_between_two_parts(self):
        """What had arrived by then is counted."""
        one, behind = self.post_parts("a", "b"), self.post("z")

        arrived = self.kill_before(4, one)
        self.expire_lease(one)
        self.work()

        self.assertEqual(arrived + self.letters(), "az")
        self.assertEqual((self.state(one), one.next_part), (DeliveryState.UNKNOWN, 1))
        self.assertEqual(self.state(behind), DeliveryState.SENT)

    def kill_before(self, step: int, one: Delivery) -> str:
        """Return the parts that left before the worker died."""
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.outbox.doomed", str(one.pk), str(step)],
            cwd=ROOT,
            env=os.environ | {"DATABASE_URL": self.database_url()},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert worker.stdout is not None
            said = iter(worker.stdout.readline, "")
            left = [line.strip() for line in iter(lambda: next(said, "here\n"), "here\n")]
            self.assertIsNone(worker.poll(), "the worker ended by itself")
        finally:
            worker.kill()
            worker.communicate()
        return "".join(left)

    def database_url(self) -> str:
        """Return where the tables of this test are."""
        database = settings.DATABASES["default"]
        name = database["NAME"]
        if "sqlite" in database["ENGINE"]:
            return f"sqlite:///{name}"
        user = f"{database['USER']}:{database['PASSWORD']}"
        return f"postgres://{user}@{database['HOST']}:{database['PORT']}/{name}"
