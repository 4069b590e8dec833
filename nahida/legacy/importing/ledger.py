"""Which old rows are here already, by their old ids."""

from collections.abc import Iterable
from typing import Final

from nahida.legacy.models import Imported, Source
from sessions_app.models import Session

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

    def get(self, old_id: object) -> int | None:
        return self.here.get(str(old_id))

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


class Sessions(Ledger):
    """Old session ids and the sessions they are today."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, SESSION)

    def pk(self, old_id: object) -> int:
        """Return the session of an old id that a row of the old file names."""
        found = self.get(old_id)
        assert found is not None, "every session that a row names is made before"
        return found

    def session(self, old_id: object) -> Session | None:
        pk = self.get(old_id)
        return Session.objects.get(pk=pk) if pk else None
