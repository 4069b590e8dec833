"""What holds for every test."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Where everything that a test can ask for is installed, a skipped test is a failed one.
NO_SKIP = os.environ.get("NAHIDA_TESTS_NO_SKIP") == "1"

# How long an example takes says more about the machine than about the code.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    report = yield
    if NO_SKIP and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be: {report.longrepr}"
    return report
