"""The environment of the tests, set before Django reads its settings: nothing of the machine's own Nahida is touched."""

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
