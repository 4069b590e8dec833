"""Renaming and merging of single sessions."""

from datetime import timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from channels_app.addresses import SessionKey
from memory_app.models import DreamState, MemoryTurn
from sessions_app import rekey
from sessions_app.models import Lane, MigrationUndo, Session
from tests.base import ALICE, BOB
from tests.sessions_app.moving import MovingTestCase

DAY = timedelta(days=1)


class SessionTests(MovingTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.append(ALICE, "first")
        self.base = Session.objects.get(key=str(ALICE))
        self.begun = self.start_session(ALICE)
        self.append(ALICE, "second")

    def merge(self, old: Session, into: Session) -> None:
        with self.ledger() as ledger:
            rekey.merge_sessions(
                Session.objects.get(pk=old.pk), Session.objects.get(pk=into.pk), ledger=ledger
            )
        into.refresh_from_db()

    def test_it_renames_in_one_row(self):
        """However long the history: no turn is read or written, and one undo row a column."""
        turns = list(MemoryTurn.objects.values())
        key = SessionKey(ALICE, "0badcafe")

        with CaptureQueriesContext(connection) as done, self.ledger() as ledger:
            rekey.rename_session(self.begun, key, ledger=ledger)

        self.assertFalse([query for query in done if "memoryturn" in query["sql"]])
        self.assertEqual(MigrationUndo.objects.count(), 2)
        self.begun.refresh_from_db()
        self.assertEqual((self.begun.key, self.begun.suffix), (str(key), "0badcafe"))
        self.assertEqual(list(MemoryTurn.objects.values()), turns)

    def test_it_moves_all_turns_in_order_and_removes_the_row(self):
        self.append(BOB, "not mine")

        self.merge(self.base, self.begun)

        turns = self.begun.turns.order_by("pk").values_list("content", flat=True)
        self.assertEqual(list(turns), ["first", "second"])
        self.assertFalse(Session.objects.filter(pk=self.base.pk).exists())
        self.assertEqual(Session.objects.get(key=str(BOB)).turns.count(), 1)

    def test_it_keeps_the_earlier_birth_and_the_later_activity(self):
        now = timezone.now()
        times = {self.base: (now - 9 * DAY, now - DAY), self.begun: (now - 5 * DAY, now - 2 * DAY)}
        for session, (created, active) in times.items():
            Session.objects.filter(pk=session.pk).update(created_at=created, last_active_at=active)

        self.merge(self.base, self.begun)

        self.assertEqual(self.begun.created_at, now - 9 * DAY)
        self.assertEqual(self.begun.last_active_at, now - DAY)

    def test_it_keeps_what_was_set_aside_set_aside(self):
        Session.objects.filter(pk=self.base.pk).update(history_from=40)
        Session.objects.filter(pk=self.begun.pk).update(history_from=7)

        self.merge(self.base, self.begun)

        self.assertEqual(self.begun.history_from, 40)

    def test_it_joins_settings_and_title(self):
        """What both have set is as the session that stays had it."""
        Session.objects.filter(pk=self.base.pk).update(title="tea", settings={"a": 1, "b": 1})
        Session.objects.filter(pk=self.begun.pk).update(settings={"b": 2})

        self.merge(self.base, self.begun)

        self.assertEqual((self.begun.title, self.begun.settings), ("tea", {"a": 1, "b": 2}))

    def test_it_loses_nothing_that_was_imported(self):
        now = timezone.now()
        Session.objects.filter(pk=self.base.pk).update(imported={"id": 1}, imported_at=now)

        self.merge(self.base, self.begun)

        self.assertEqual((self.begun.imported, self.begun.imported_at), ({"id": 1}, now))
        other = Session.objects.create(
            key=f"{ALICE}:0badcafe", chat=self.begun.chat, imported={"id": 2}, imported_at=now
        )
        self.merge(other, self.begun)
        self.assertEqual(self.begun.imported, {"id": 1, "merged": [{"id": 2}]})

    def test_it_stays_active_where_the_old_one_was(self):
        Lane.objects.update(active_session=self.base)

        self.merge(self.base, self.begun)

        self.assertEqual(self.lane(ALICE).active_session, self.begun)

    def test_it_dreams_again_what_only_one_had_dreamt(self):
        DreamState.objects.create(session=self.base, dreamt_to=8)

        self.merge(self.base, self.begun)

        self.assertFalse(DreamState.objects.filter(dreamt_to__gt=0).exists())
