"""The environment of the tests, set before Django reads its settings.

Nothing of the machine's own Nahida is touched: data and configuration are the tests' own, and each test process has a Redis database
to itself, counted up from that of REDIS_URL.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

data = tempfile.mkdtemp(prefix="nahida-tests-")
Path(data, "static").mkdir()
atexit.register(shutil.rmtree, data, ignore_errors=True)

os.environ |= {
    "DJANGO_SETTINGS_MODULE": "nahida.settings",
    "DJANGO_SECRET_KEY": "tests-only-and-nowhere-else-0123456789abcdefghij",
    "NAHIDA_CONFIG": str(Path(__file__).with_name("nahida.toml")),
    "NAHIDA_DATA_DIR": data,
    "NAHIDA_ROLE": "",
}

if redis_url := os.environ.get("REDIS_URL"):
    server, _, number = redis_url.rpartition("/")
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    os.environ["REDIS_URL"] = f"{server}/{int(number) + worker}"
