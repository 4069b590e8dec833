"""A real protocol end, as far as one goes without a login.

NAHIDA_TESTS_YOGURT names its program: yogurt.kexe of the npm package @acidify/yogurt-linux-x64.
"""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = os.environ.get("NAHIDA_TESTS_YOGURT", "")


@pytest.mark.real_end
@pytest.mark.skipif(not PROGRAM, reason="NAHIDA_TESTS_YOGURT names no program")
def test_it_understands_a_real_end_that_is_logged_out():
    asked = subprocess.run(
        ["unshare", "--net", sys.executable, "-m", "tests.milky.real_end", PROGRAM],
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout.splitlines()[-1]) == {
        "right": "logged out",
        "wrong token": "unauthorized",
        "wrong path": "misconfigured",
        "stream": "quiet",
        "stream with a wrong token": "unauthorized",
        "send": "again after 30.0",
        "send with a wrong token": "again after 60.0",
    }
