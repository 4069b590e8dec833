"""Tests of real transactions empty the tables behind them: the full-text index must follow all the same."""

import pytest
from django.core.management import call_command

from memory_app.index import index_present
from memory_app.models import MemoryTurn
from tests.base import ALICE, CommittedTestCase
from tests.memory_app.test_index import turns


@pytest.mark.xdist_group("lanes")
class FlushTests(CommittedTestCase):
    def test_it_follows_rows_after_a_flush(self):
        self.say(ALICE, "the blue bicycle")
        session = MemoryTurn.objects.get().session
        before = turns(session, "bicycle")
        call_command("flush", interactive=False, verbosity=0)
        emptied = turns(session, "bicycle")

        self.say(ALICE, "the red bicycle")

        turn = MemoryTurn.objects.get()
        self.assertEqual((len(before), emptied), (1, []))
        self.assertEqual(turns(turn.session, "bicycle"), [turn.pk])
        self.assertEqual(index_present(databases=["default"]), [])
