"""Which old rows are here already, by their old ids, and which are to come."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from channels_app.addresses import MAX_KEY_BYTES
from channels_app.messages import storable
from nahida.legacy.importing.reader import Row
from nahida.legacy.importing.tally import Count
from nahida.legacy.models import Imported, Source

SESSION: Final = "session"


class Ledger:
    """The rows of one kind that came in from a source. Read once, so that no row costs a query."""

    def __init__(self, source: Source, kind: str) -> None:
        self.source = source
        self.kind = kind
        rows = Imported.objects.filter(source=source, kind=kind)
        column = "session_id" if kind == SESSION else "object_pk"
        self.here: dict[str, int | None] = dict(rows.values_list("old_id", column))

    def __contains__(self, old_id: object) -> bool:
        return old_id in self.here

    def get(self, old_id: Any) -> int | None:
        """Return what an old row is today, None if it did not come in."""
        return self.here.get(old_id)

    def pk(self, old_id: Any) -> int:
        """Return what an old row is today that is known to have come in."""
        found = self.get(old_id)
        assert found is not None, "rows without it are left out before"
        return found

    def note(self, made: Iterable[tuple[str, int]]) -> None:
        rows = [
            Imported(
                source=self.source,
                kind=self.kind,
                old_id=old_id,
                session_id=pk if self.kind == SESSION else None,
                object_pk=None if self.kind == SESSION else pk,
            )
            for old_id, pk in made
        ]
        Imported.objects.bulk_create(rows)
        self.here.update((row.old_id, row.session_id or row.object_pk) for row in rows)

    def missing(
        self, rows: Iterable[Row], *, id_in: str, count: Count
    ) -> Iterator[tuple[str, Row]]:
        """Yield the rows that are to come, each with its old id, and count all others."""
        seen: set[str] = set()
        for row in rows:
            count.read += 1
            old_id = "" if row[id_in] is None else str(row[id_in])
            if reason := unfit(old_id):
                count.skip(f"its id {reason}", old_id)
            elif old_id in seen:
                count.skip("another row has the same id", old_id)
            elif old_id in self:
                count.there += 1
            else:
                seen.add(old_id)
                yield old_id, row


def unfit(old_id: str) -> str:
    """Return why a text cannot stand as a key or id here, "" if it can."""
    if not old_id:
        return "is empty"
    if storable(old_id) != old_id:
        return "has a character that databases do not keep"
    return "" if len(old_id.encode()) <= MAX_KEY_BYTES else "is too long"


def batched(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield what of them one transaction takes."""
    rest = iter(rows)
    while batch := list(islice(rest, size)):
        yield batch
