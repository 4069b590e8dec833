"""PostgreSQL ends one of two transactions that wait for each other. Nothing of it is stored, so it is simply begun anew."""

from collections.abc import Callable
from typing import TypeVar

from django.db import OperationalError

ATTEMPTS = 5

T = TypeVar("T")


def outlast_deadlocks(act: Callable[[], T]) -> T:
    """Run a whole transaction, again if it was ended to break a deadlock. Not from inside another transaction."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return act()
        except OperationalError as error:
            if not _is_deadlock(error) or attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def _is_deadlock(error: OperationalError) -> bool:
    return getattr(error.__cause__, "sqlstate", "") == "40P01"
