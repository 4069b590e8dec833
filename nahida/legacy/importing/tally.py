"""What was read and what became of it. The sums must add up, or the import has failed."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from channels_app.messages import storable

SHOWN_IDS = 5

# Called with a kind, how many of its rows are done, and of how many.
Progress = Callable[[str, int, int], None]


class TallyError(Exception):
    """Rows were read that are neither imported, nor there already, nor skipped with a reason."""


@dataclass(slots=True)
class Count:
    """`skipped` holds the old ids by reason, `left` the rows of a table without a home here."""

    read: int = 0
    imported: int = 0
    there: int = 0
    skipped: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def skip(self, reason: str, old_id: object) -> None:
        self.skipped[reason].append(storable(str(old_id)))

    @property
    def skips(self) -> int:
        return sum(map(len, self.skipped.values()))


class Tally:
    def __init__(self) -> None:
        self.kinds: dict[str, Count] = {}
        self.left: dict[str, tuple[int, str]] = {}

    def of(self, kind: str) -> Count:
        return self.kinds.setdefault(kind, Count())

    def leave(self, table: str, rows: int, reason: str) -> None:
        self.left[table] = rows, reason

    def check(self) -> None:
        for kind, count in self.kinds.items():
            if count.read != count.imported + count.there + count.skips:
                raise TallyError(
                    f"{kind}: {count.read} read, but {count.imported} imported, {count.there} there "
                    f"already and {count.skips} skipped: the import is not complete"
                )

    def as_json(self) -> dict[str, Any]:
        return {
            "kinds": {
                kind: {
                    "read": count.read,
                    "imported": count.imported,
                    "already_there": count.there,
                    "skipped": dict(count.skipped),
                }
                for kind, count in self.kinds.items()
            },
            "left": {
                table: {"rows": rows, "reason": reason}
                for table, (rows, reason) in self.left.items()
            },
        }

    def lines(self) -> Iterator[str]:
        """Yield the closing table."""
        yield f"{'':<24}{'read':>10}{'imported':>10}{'there':>10}{'skipped':>10}"
        for kind, count in self.kinds.items():
            yield (
                f"{kind:<24}{count.read:>10}{count.imported:>10}{count.there:>10}{count.skips:>10}"
            )
        for kind, count in self.kinds.items():
            for reason, ids in count.skipped.items():
                more = f" and {len(ids) - SHOWN_IDS} more" if len(ids) > SHOWN_IDS else ""
                yield f"skipped {kind}: {reason}: {', '.join(ids[:SHOWN_IDS])}{more}"
        for table, (rows, reason) in self.left.items():
            yield f"left in the old file: {table}, {rows} rows: {reason}"
