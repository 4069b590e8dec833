"""The whole thing as its first user meets it: one command, no account, an answer from the small real model."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
START_S = 120  # on a busy machine, with two model loads side by side
ANSWER_S = 180


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.local_model
@pytest.mark.processes
@pytest.mark.xdist_group("processes")
class FirstAnswerTests(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="nahida-first-")
        self.addCleanup(folder.cleanup)
        self.port = free_port()
        self.log = Path(folder.name) / "log"
        self.env = {
            **{name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
            "NAHIDA_DATA_DIR": str(Path(folder.name) / "data"),
            "NAHIDA_CONFIG": str(self.configuration(Path(folder.name))),
            "NAHIDA_PORT": str(self.port),
            "NAHIDA_LOCAL_MODEL_PORT": str(free_port()),
            "REDIS_URL": "",
            "PYTHONUNBUFFERED": "1",
        }

    def configuration(self, folder: Path) -> Path:
        path = folder / "nahida.toml"
        path.write_text("[workers]\ncount = 1\n")
        return path

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self.env, capture_output=True, text=True, check=True
        )
        return done.stdout

    def up(self) -> "subprocess.Popen[bytes]":
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=ROOT,
                env=self.env,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.addCleanup(process.kill)
        self.wait_for("/chat/")
        return process

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + START_S
        while text not in self.log.read_text(errors="replace"):
            assert time.monotonic() < deadline, self.log.read_text(errors="replace")
            signal.sigtimedwait([], 0.1)

    def ask(self, key: str, text: str) -> dict[str, object]:
        body = {"text": text, "user": "new", "wait_s": ANSWER_S}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/chat",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=ANSWER_S + 30) as response:
            answer: dict[str, object] = json.load(response)
        return answer

    def test_it_answers_with_the_small_model_and_stops_without_a_trace(self):
        """A password is shown once, a question is answered, Ctrl-C leaves nothing running."""
        first = self.up()
        printed = self.log.read_text()
        key = re.search(r"nhd_[\w-]+", self.manage("create_api_key", "e2e", "--scope", "chat"))
        assert key is not None

        answer = self.ask(key[0], "What is the capital of France? Answer in one short sentence.")

        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(timeout=30), 0)
        self.assertIn("Password:", printed)
        self.assertEqual(answer["state"], "done")
        self.assertTrue(str(answer["text"]).strip())
        self.assertEqual(self.left_running(), [])

    def left_running(self) -> list[str]:
        """Return the command lines of processes that still use our data directory."""
        marker = f"NAHIDA_DATA_DIR={self.env['NAHIDA_DATA_DIR']}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if marker in (folder / "environ").read_bytes().split(b"\0"):
                    found.append((folder / "cmdline").read_text())
            except OSError:
                continue  # ended, or not ours to see
        return found
