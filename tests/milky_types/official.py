"""The Milky protocol's own schemas, asked through one Node process."""

import atexit
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest

FOLDER = Path(__file__).parent

Kind = Literal["event", "segment", "request", "response"]


class Official:
    """Says what is wrong with a value, "" if it is as the protocol has it. `name` is that of the API."""

    def __init__(self, node: str) -> None:
        self._process = subprocess.Popen(
            [node, "check.mjs"],
            cwd=FOLDER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def objection(self, kind: Kind, value: Any, *, name: str = "") -> str:
        answer = self._ask({"kind": kind, "name": name, "value": value})
        return "" if answer["ok"] else answer["error"] or "refused"

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answered is not None
        asked.write(json.dumps(question) + "\n")
        asked.flush()
        answer: dict[str, Any] = json.loads(answered.readline())
        return answer

    def close(self) -> None:
        self._process.communicate()


@cache
def _start() -> Official | str:
    node = shutil.which("node")
    if node is None:
        return "Node is not installed"
    if not (FOLDER / "node_modules").is_dir():
        return "the Milky schemas are not installed: npm ci --prefix tests/milky_types"
    started = Official(node)
    atexit.register(started.close)
    return started


def official() -> Official:
    """Return the schemas, started once in a process; skips the test where they are not installed."""
    started = _start()
    if isinstance(started, str):
        pytest.skip(started)
    return started
