"""A short siege of a whole Nahida: `bin/bench chaos` runs a long one, and says what is counted."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
ROUNDS = 10  # one kill of each kind, and two more
NO_SERVER = 3  # exit code


@pytest.mark.processes
@pytest.mark.parametrize(
    ("broker", "wire"),
    [("orm", "plain"), ("redis", "plain"), ("redis", "telegram"), ("orm", "milky")],
)
def test_it_loses_and_doubles_nothing_under_kills(broker: str, wire: str) -> None:
    """Every message has one answer, the platform sees none twice, and what it may not have seen is listed."""
    options = ["--rounds", str(ROUNDS), "--broker", broker, "--wire", wire]
    command = [sys.executable, "-m", "bench", "chaos", *options]

    siege = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    if siege.returncode == NO_SERVER:
        pytest.skip(siege.stderr.strip())
    assert siege.returncode == 0, siege.stdout + siege.stderr
