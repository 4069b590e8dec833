"""The plan file: an export of the records, in which a person may decide. The rows win (DESIGN 8.2)."""

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from django.db.models import QuerySet
from django.utils import timezone

from nahida.legacy.gather import KIND
from nahida.legacy.inspect import lines_of
from nahida.legacy.models import Source
from nahida.legacy.proposals import COUNTS, SPLIT
from nahida.legacy.records import GONE, status
from sessions_app.models import MigrationLog

VERSION: Final = 1

Entry = dict[str, Any]


class PlanError(ValueError):
    """A plan file that cannot be used; the message says where."""


def write_plan(path: Path) -> None:
    """Write all records to a file, which is the old one or the new one at any moment."""
    path = path.resolve()
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False
        ) as file:
            _fill(file, path)
    except OSError as error:
        raise PlanError(f"{path} cannot be written: {error.strerror}") from error


def _fill(file: Any, path: Path) -> None:
    try:
        for piece in _pieces():
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
        Path(file.name).replace(path)
    except BaseException:
        Path(file.name).unlink(missing_ok=True)
        raise


def summary() -> dict[str, Any]:
    """Count the records of each kind; typed sessions, where nothing is to be done, are among the sessions."""
    rows = list(_records().values_list("recommendation", "confidence", "approval", "result"))
    names = ("recommendation", "confidence", "approval", "result")
    columns = zip(names, zip(*rows, strict=True), strict=True) if rows else []
    counts = {name: dict(sorted(Counter(values).items())) for name, values in columns}
    return {"records": len(rows), **counts}


def entry(record: MigrationLog) -> Entry:
    """Return a record as the plan shows it."""
    reason = [record.reason] if record.reason else []
    found: Entry = {
        "old_session_id": record.old_key,
        "status": status(record),
        "recommendation": record.recommendation,
        "new_session_id": record.new_key or None,
        "confidence": record.confidence,
        "evidence": record.evidence,
        "affected": {name: record.affected.get(name, 0) for name in COUNTS},
        "approval": record.approval,
        "notes": [*record.notes, *reason],
        "record": record.pk,
        "fingerprint": record.fingerprint,
    }
    if record.recommendation == SPLIT or record.targets:
        found["split_targets"] = record.targets
        found["remain_turn_ids"] = _remaining(record)
    return found


def _records() -> QuerySet[MigrationLog]:
    return MigrationLog.objects.filter(kind=KIND).exclude(result=GONE).order_by("pk")


def _pieces() -> Iterator[str]:
    """Yield the file piece by piece: with a million turns to split it is long."""
    head = {
        "kind": KIND,
        "version": VERSION,
        "created_at": timezone.now().isoformat(),
        "database": ", ".join(Source.objects.order_by("pk").values_list("path", flat=True)),
        "summary": summary(),
    }
    yield "{\n"
    for name, value in head.items():
        yield f"  {_json(name)}: {_json(value)},\n"
    yield '  "entries": ['
    before = "\n"
    for record in _records().iterator(chunk_size=100):
        fields = (f"      {_json(name)}: {_json(value)}" for name, value in entry(record).items())
        yield before + "    {\n" + ",\n".join(fields) + "\n    }"
        before = ",\n"
    yield "\n  ]\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _remaining(record: MigrationLog) -> list[int]:
    listed = {turn for target in record.targets for turn in target["turn_ids"]}
    return [line.id for line in lines_of(record.subject_pk) if line.id not in listed]
