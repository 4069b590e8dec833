"""A transaction that was ended to break a deadlock is begun anew; any other error is the caller's."""

import unittest

from django.db import OperationalError
from psycopg.errors import DeadlockDetected, LockNotAvailable

from sessions_app.deadlocks import ATTEMPTS, outlast_deadlocks


def broken(cause: Exception) -> OperationalError:
    error = OperationalError(str(cause))
    error.__cause__ = cause
    return error


class DeadlockTests(unittest.TestCase):
    def setUp(self) -> None:
        self.attempts = 0

    def act(self, cause: Exception, *, failures: int) -> str:
        self.attempts += 1
        if self.attempts <= failures:
            raise broken(cause)
        return "done"

    def test_it_begins_anew(self) -> None:
        self.assertEqual(
            outlast_deadlocks(lambda: self.act(DeadlockDetected(), failures=2)), "done"
        )
        self.assertEqual(self.attempts, 3)

    def test_it_gives_up_at_last(self) -> None:
        with self.assertRaises(OperationalError):
            outlast_deadlocks(lambda: self.act(DeadlockDetected(), failures=99))
        self.assertEqual(self.attempts, ATTEMPTS)

    def test_it_repeats_nothing_else(self) -> None:
        with self.assertRaises(OperationalError):
            outlast_deadlocks(lambda: self.act(LockNotAvailable(), failures=1))
        self.assertEqual(self.attempts, 1)
