"""Applying and reverting many records as long work, whose progress survives a reload (DESIGN 8.3)."""

from collections.abc import Iterable, Iterator
from typing import Final

from nahida.legacy.apply import apply_record, to_apply
from nahida.legacy.census import Census
from nahida.legacy.ground import BusyError
from nahida.legacy.revert import RevertError, revert
from nahida.legacy.running import Start
from nahida.ops import operations
from nahida.ops.backup import back_up
from nahida.ops.models import Operation

APPLY: Final = "apply_records"
REVERT: Final = "revert_records"
REFUSED: Final = "refused"


def start_apply(pks: Iterable[int], *, by: str, allows: bool, backs_up: bool) -> Operation:
    """Let a worker apply those of the records that are decided and open, in the order of the plan."""
    records = sorted(to_apply(pks))
    subject = {"records": records, "allows": allows, "backs_up": backs_up}
    return operations.start(APPLY, total=len(records), subject=subject, by=by)


def start_revert(pks: Iterable[int], *, by: str) -> Operation:
    """Let a worker take records back, the newest first."""
    records = sorted(set(pks), reverse=True)
    return operations.start(REVERT, total=len(records), subject={"records": records}, by=by)


def _apply(operation: Operation) -> Iterator[str]:
    """The worst that came of records stands in themselves; `result` has the backup and the counts."""
    start = _start(operation)
    for pk in operation.subject["records"][operation.done :]:
        outcome = apply_record(pk, who=operation.created_by, allows=operation.subject["allows"])
        yield outcome.result
    start.check()


def _start(operation: Operation) -> Start:
    if "undo_pk" not in operation.result:
        backup = str(back_up()) if operation.subject["backs_up"] else ""
        now = Start.now()
        operations.remember(operation, backup=backup, rows=dict(now.counts), undo_pk=now.undo_pk)
    counts: Census = operation.result["rows"]
    return Start(counts, operation.result["undo_pk"])


def _revert(operation: Operation) -> Iterator[str]:
    for pk in operation.subject["records"][operation.done :]:
        try:
            revert(pk, who=operation.created_by)
        except (RevertError, BusyError) as error:
            refused = operation.result.get("refused", {})
            operations.remember(operation, refused={**refused, str(pk): str(error)})
            yield REFUSED
        else:
            yield "reverted"


WORKS: Final = {APPLY: _apply, REVERT: _revert}
