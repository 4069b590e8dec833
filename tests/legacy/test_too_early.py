"""The commands in a place where nothing was ever set up."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("words", [("import_legacy", "old.db"), ("migrate_session_keys", "status")])
def test_it_says_in_a_line_that_there_is_no_database_yet(words: tuple[str, ...], tmp_path: Path):
    env = {**os.environ, "NAHIDA_DATA_DIR": str(tmp_path)}
    env.pop("DATABASE_URL", None)

    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *words],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.strip() == (
        "CommandError: the database is not ready: run bin/up once, or manage.py migrate"
    )
