"""What holds for every test."""

import os

import pytest

# Where everything that a test can ask for is installed, a skipped test is a failed one.
NO_SKIP = os.environ.get("NAHIDA_TESTS_NO_SKIP") == "1"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    report = yield
    if NO_SKIP and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be: {report.longrepr}"
    return report
