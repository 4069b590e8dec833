"""What a ledger kept is put back exactly, or not at all."""

from datetime import date

from django.db import connection

from channels_app.addresses import SessionKey
from memory_app.models import DreamRun, MemoryItem, MemoryTurn
from sessions_app import rekey
from sessions_app.ledger import RowsChangedError
from sessions_app.models import Chat, ChatAlias, Lane, MigrationLog, MigrationUndo, Session
from sessions_app.relations import pointing_at
from sessions_app.undo import UndoError
from tests.base import ALICE, BOB
from tests.sessions_app.moving import NEW, OLD, MovingTestCase, before_statement, rows


class UndoTests(MovingTestCase):
    def refuse(self, record: MigrationLog | None = None) -> list[str]:
        """Return the rows that stand in the way; nothing has changed."""
        before = rows()

        with self.assertRaises(UndoError) as caught:
            self.take_back(record)

        self.assertEqual(rows(), before)
        return caught.exception.rows

    def moved(self) -> MigrationLog:
        return MigrationLog.objects.get(kind="chat_move")

    def test_it_takes_back_the_renaming_of_a_chat(self):
        self.furnish(OLD)
        before = rows()
        self.move()
        self.assertNotEqual(rows(), before)

        self.take_back(self.moved())

        self.assertEqual(rows(), before)

    def test_it_takes_back_the_merging_of_two_chats(self):
        """With all that two chats can have, lanes with holders and deleted rows included."""
        self.furnish(OLD)
        self.furnish(NEW)
        self.furnish(BOB)
        self.hold(OLD)
        before = rows()
        self.move()
        self.assertNotEqual(rows(), before)

        self.take_back(self.moved())

        self.assertEqual(rows(), before)

    def test_it_takes_back_two_addresses_that_changed_places(self):
        """The row that was merged away holds the address that its successor goes back to."""
        self.furnish(OLD)
        self.furnish(NEW)
        self.move()
        before = rows()
        self.move(OLD, chat=self.chat(NEW))

        self.take_back(MigrationLog.objects.latest("pk"))

        self.assertEqual(rows(), before)

    def test_it_restores_everything_a_session_can_have(self):
        chat = self.furnish(OLD)
        base, other = Session.objects.filter(chat=chat).order_by("pk")[:2]
        for session in (base, other):
            DreamRun.objects.create(session=session, night=date(2031, 5, 11))
        before = rows()
        with self.ledger() as ledger:
            rekey.merge_sessions(base, other, ledger=ledger)
        self.assertNotEqual(rows(), before)

        self.take_back()

        self.assertEqual(rows(), before)

    def test_it_tells_interleaved_turns_apart(self):
        """Turns of both lie between each other: as many ranges as that takes."""
        self.append(ALICE, "a")
        base = self.lane(ALICE).active_session
        begun = self.start_session(ALICE)
        for text, session in [("b", begun), ("c", base), ("d", base), ("e", begun), ("f", base)]:
            turn = self.append(ALICE, text)
            MemoryTurn.objects.filter(pk=turn.pk).update(session=session)
        before = rows()
        with self.ledger() as ledger:
            rekey.merge_sessions(base, begun, ledger=ledger)

        counts = self.record.undo.filter(model="memory_app.MemoryTurn").values_list(
            "count", flat=True
        )
        self.assertEqual(sorted(counts), [1, 1, 2])
        self.take_back()
        self.assertEqual(rows(), before)

    def split(self) -> tuple[Session, Session]:
        """Move the second and fourth of four turns to a new session."""
        turns = [self.append(ALICE, text) for text in "abcd"]
        base = self.lane(ALICE).active_session
        for turn in turns[1:3]:
            MemoryItem.objects.create(
                scope_type="global",
                scope_id="__global__",
                kind="decision",
                source_session=base,
                source_turn=turn,
            )
        key = SessionKey(ALICE, "0badcafe")
        self.before = rows()
        with self.ledger() as ledger:
            taken = Session.objects.create(key=str(key), suffix=key.suffix, chat=base.chat)
            ledger.inserted(taken)
            ids = [turns[1].pk, turns[3].pk]
            rekey.split_session(base, taken, rows=MemoryTurn.objects.all(), ids=ids, ledger=ledger)
        return base, taken

    def test_it_splits_off_exactly_the_listed_turns(self):
        """What was learnt from a turn goes with it."""
        base, taken = self.split()

        texts = {
            session.pk: "".join(session.turns.order_by("pk").values_list("content", flat=True))
            for session in (base, taken)
        }
        self.assertEqual(texts, {base.pk: "ac", taken.pk: "bd"})
        learnt = {session.pk: session.items.get().source_turn_id for session in (base, taken)}
        self.assertEqual(
            learnt, {taken.pk: taken.turns.earliest("pk").pk, base.pk: base.turns.latest("pk").pk}
        )

    def test_it_takes_back_a_split(self):
        self.split()

        self.take_back()

        self.assertEqual(rows(), self.before)

    def test_it_refuses_what_no_longer_holds_what_it_wrote(self):
        self.furnish(OLD)
        self.move()
        MemoryItem.objects.filter(scope_id=str(NEW)).update(scope_id=str(BOB))

        (found,) = self.refuse(self.moved())

        self.assertIn("memory_app.MemoryItem", found)

    def test_it_refuses_a_range_that_has_lost_a_row(self):
        for text in "abc":
            self.append(ALICE, text)
        base, begun = self.lane(ALICE).active_session, self.start_session(ALICE)
        other = self.start_session(ALICE)
        with self.ledger() as ledger:
            rekey.merge_sessions(base, begun, ledger=ledger)
        MemoryTurn.objects.filter(pk=begun.turns.earliest("pk").pk).update(session=other)

        (found,) = self.refuse()

        self.assertIn(f"2 rows hold session_id {begun.pk}, not 3", found)

    def test_it_names_the_row_the_column_and_both_values(self):
        self.furnish(OLD)
        self.move()
        session = Session.objects.get(key=str(NEW))
        Session.objects.filter(pk=session.pk).update(key="fake:group:7")

        self.assertEqual(
            self.refuse(self.moved()),
            [f"sessions_app.Session {session.pk}: key is now 'fake:group:7', not '{NEW}'"],
        )

    def test_it_refuses_to_remove_a_row_that_is_used(self):
        _, taken = self.split()
        Lane.objects.filter(pk=self.lane(ALICE).pk).update(active_session=taken)

        (found,) = self.refuse()

        self.assertIn(f"sessions_app.Lane {self.lane(ALICE).pk} has active_session", found)

    def test_it_refuses_where_turns_came_later(self):
        self.append(ALICE, "old")
        session = self.lane(ALICE).active_session
        with self.ledger() as ledger:
            rekey.rename_session(session, SessionKey(BOB), ledger=ledger)
            ledger.stand(session)
        late = self.append(ALICE, "new")

        self.assertEqual(
            self.refuse(),
            [f"memory_app.MemoryTurn {late.pk} came later and has session {session.pk}"],
        )

    def test_it_refuses_where_an_older_row_came_to_point_there(self):
        self.append(ALICE, "old")
        old, begun = self.lane(ALICE).active_session, self.start_session(ALICE)
        with self.ledger() as ledger:
            ledger.stand(old)
        Lane.objects.filter(active_session=begun).update(active_session=old)

        (found,) = self.refuse()

        self.assertIn("sessions_app.Lane", found)

    def test_it_refuses_where_a_place_is_taken(self):
        self.append(ALICE, "a")
        base = self.lane(ALICE).active_session
        with self.ledger() as ledger:
            rekey.merge_sessions(base, self.start_session(ALICE), ledger=ledger)
        Session.objects.create(key=str(ALICE), chat=self.chat(ALICE))

        (found,) = self.refuse()

        self.assertIn("another row is in its place", found)

    def test_it_takes_back_the_newest_first(self):
        """Also where a later record found the value as it wanted it: it relies on it."""
        self.append(ALICE, "a")
        rows_of_alice = Chat.objects.filter(pk=self.chat(ALICE).pk)
        with self.ledger() as ledger:
            ledger.update(rows_of_alice, access="blocked")
        first = self.record
        with self.ledger() as ledger:
            ledger.update(rows_of_alice, access="blocked")

        (found,) = self.refuse(first)
        self.assertIn(f"record {self.record.pk} ({self.record.old_key}) came later", found)
        self.take_back()
        MigrationLog.objects.filter(pk=self.record.pk).update(result="reverted")
        self.take_back(first)

        self.assertEqual(rows_of_alice.get().access, "allowed")

    def test_it_is_not_bound_by_ranges_that_only_overlap(self):
        """Turns of two pairs of chats lie between each other and have nothing to do with each other."""
        pairs = []
        for where in (ALICE, BOB, ALICE, BOB):
            self.append(where, "a")
        for where in (ALICE, BOB):
            base = self.lane(where).active_session
            pairs.append((base, self.start_session(where)))
        before = rows()
        records = []
        for base, begun in pairs:
            with self.ledger() as ledger:
                rekey.merge_sessions(base, begun, ledger=ledger)
            records.append(self.record)

        for record in records:
            self.take_back(record)

        self.assertEqual(rows(), before)

    def test_it_refuses_to_take_turns_that_another_record_brought(self):
        self.append(ALICE, "a")
        one = self.lane(ALICE).active_session
        two = self.start_session(ALICE)
        self.append(ALICE, "b")
        three = self.start_session(ALICE)
        self.append(ALICE, "c")
        with self.ledger() as ledger:
            rekey.merge_sessions(one, three, ledger=ledger)
        first = self.record
        with self.ledger() as ledger:
            rekey.merge_sessions(two, Session.objects.get(pk=three.pk), ledger=ledger)

        self.assertIn(f"record {self.record.pk} ", self.refuse(first)[0])

    def test_it_keeps_nothing_of_changes_that_failed(self):
        self.append(ALICE, "a")
        base, begun = self.lane(ALICE).active_session, self.start_session(ALICE)
        before = rows()

        with (
            self.assertRaises(RowsChangedError),
            before_statement('UPDATE "memory_app_memoryturn"', act=lambda: self.steal(base, begun)),
            self.ledger() as ledger,
        ):
            rekey.merge_sessions(base, begun, ledger=ledger)

        self.assertEqual((rows(), MigrationUndo.objects.count()), (before, 0))

    def steal(self, base: Session, begun: Session) -> None:
        """Move a turn away between the look and the write."""
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE memory_app_memoryturn SET session_id = %s WHERE session_id = %s",
                [begun.pk, base.pk],
            )

    def test_it_covers_every_kind_of_row_there_is(self):
        """A kind that a chat, session or lane can have and that is not here would not be shown to come back."""
        self.furnish(OLD)
        pointing = {model for target in (Chat, Session, Lane) for model, _ in pointing_at(target)}

        without = {model._meta.label for model in pointing if not model._base_manager.exists()}

        self.assertEqual(without, {ChatAlias._meta.label})
