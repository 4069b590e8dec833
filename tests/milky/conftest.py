"""The real protocol end is asked only where there is one."""

import os

collect_ignore = [] if os.environ.get("NAHIDA_TESTS_YOGURT") else ["test_real_end.py"]
