"""A test whose work is done by a process that is killed in the midst of it."""

import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings
from django.test import TransactionTestCase

ROOT = Path(__file__).resolve().parents[2]


class DoomedCase(TransactionTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.doomed = subprocess.Popen(
            [sys.executable, "-m", "tests.legacy.doomed"],
            cwd=ROOT,
            env=os.environ | {"DATABASE_URL": self.database_url()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.doomed.communicate)
        self.addCleanup(self.doomed.kill)

    def do(self, act: str, what: object, step: int) -> str:
        """Let it act and die before its `step`th write; return "killed", or "done" if there were not so many."""
        assert self.doomed.stdin is not None
        assert self.doomed.stdout is not None
        self.doomed.stdin.write(f"{act} {what} {step}\n")
        self.doomed.stdin.flush()
        return self.doomed.stdout.readline().strip()

    def database_url(self) -> str:
        """Return where the tables of this test are."""
        database = settings.DATABASES["default"]
        name = database["NAME"]
        if "sqlite" in database["ENGINE"]:
            return f"sqlite:///{name}"
        user = f"{database['USER']}:{database['PASSWORD']}"
        return f"postgres://{user}@{database['HOST']}:{database['PORT']}/{name}"
