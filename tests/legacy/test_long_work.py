"""Applying and reverting as long work: its row says how far it is, and it goes on after a kill."""

from pathlib import Path

from memory_app.models import MemoryTurn
from nahida.legacy.decide import decide
from nahida.legacy.inspect import inspect
from nahida.legacy.long_work import WORKS, start_apply, start_revert
from nahida.ops import operations
from nahida.ops.models import Operation
from nahida.tasks import run_operation
from sessions_app.models import MigrationLog
from tests.legacy.imported import old_session, record
from tests.legacy.test_apply_command import CommandCase
from tests.sessions_app.moving import rows


class LongWorkTest(CommandCase):
    def decided(self, *numbers: int) -> list[int]:
        for number in numbers:
            old_session(f"milky:{number}", f"milky:group:{number}")
        inspect(who="alice")
        return [decide(record(f"milky:{number}"), "approved", who="alice").pk for number in numbers]

    def start(self, pks: list[int], *, backs_up: bool = True) -> Operation:
        return start_apply(pks, by="alice", allows=True, backs_up=backs_up)

    def after(self, operation: Operation) -> Operation:
        operation.refresh_from_db()
        return operation

    def test_it_applies_all_after_one_backup(self):
        operation = self.start(self.decided(1, 2, 3))

        run_operation(operation.pk)

        done = self.after(operation)
        assert (done.state, done.done, done.total, done.error) == ("done", 3, 3, "")
        assert done.result["counts"] == {"renamed": 3}
        assert [Path(done.result["backup"])] == self.backups()
        assert record("milky:1").history[-1]["who"] == "alice"

    def test_it_goes_on_in_the_next_slice_with_the_same_backup(self):
        operation = self.start(self.decided(1, 2, 3))

        for _ in range(4):
            operations.run(operation.pk, works=WORKS, slice_s=0)

        assert self.after(operation).state == "done"
        assert len(self.backups()) == 1

    def test_it_takes_only_what_is_decided_and_open(self):
        pks = self.decided(1, 2)
        old_session("milky:9", "milky:group:9")
        inspect(who="alice")

        operation = self.start([record("milky:9").pk, *reversed(pks)], backs_up=False)
        run_operation(operation.pk)

        assert self.after(operation).subject["records"] == pks
        assert record("milky:9").result == ""

    def test_it_counts_what_stays_open(self):
        operation = self.start(self.decided(1, 2), backs_up=False)
        MigrationLog.objects.filter(old_key="milky:1").update(fingerprint="0")

        run_operation(operation.pk)

        assert self.after(operation).result["counts"] == {"stale": 1, "renamed": 1}
        assert self.after(operation).state == "done"

    def test_it_stops_without_a_backup(self):
        (self.folder / "backups").write_text("in the way")
        operation = self.start(self.decided(1))

        with self.assertLogs("nahida.ops.operations", "ERROR"):
            run_operation(operation.pk)

        assert self.after(operation).state == "failed"
        assert "cannot be written" in self.after(operation).error
        assert record("milky:1").result == ""

    def test_it_says_that_rows_went_missing(self):
        """What no record removed."""
        operation = self.start(self.decided(1, 2), backs_up=False)
        operations.run(operation.pk, works=WORKS, slice_s=0)
        MemoryTurn.objects.latest("pk").delete()

        with self.assertLogs("nahida.ops.operations", "ERROR"):
            run_operation(operation.pk)

        assert "memory_app.MemoryTurn has" in self.after(operation).error

    def test_it_reverts_the_newest_first(self):
        pks = self.decided(1, 2)
        before = rows()
        run_operation(self.start(pks, backs_up=False).pk)
        Operation.objects.all().delete()

        operation = start_revert(pks, by="bob")
        assert operation.subject["records"] == sorted(pks, reverse=True)
        run_operation(operation.pk)

        assert self.after(operation).result["counts"] == {"reverted": 2}
        Operation.objects.all().delete()
        after = rows()
        for changing in ("django_q.OrmQ", "ops.Operation"):
            before.pop(changing, None)
            after.pop(changing, None)
        assert after == before

    def test_it_keeps_why_a_record_was_not_reverted(self):
        (pk,) = self.decided(1)

        operation = start_revert([pk], by="bob")
        run_operation(operation.pk)

        assert "nothing to revert" in self.after(operation).result["refused"][str(pk)]
        assert self.after(operation).result["counts"] == {"refused": 1}
