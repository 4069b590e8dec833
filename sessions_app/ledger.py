"""Changes that can be taken back exactly: each is made and, in the same transaction, kept in undo rows of a record (DESIGN 4, 8).

What is kept is what the rows held, so it does not matter who made a change or by which rule: `undo.py` only puts values back.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from types import TracebackType
from typing import Any, Self

from django.db import connection, models, transaction
from django.db.models import Count, Max, Min, QuerySet

from sessions_app.models import Change, MigrationLog, MigrationUndo
from sessions_app.relations import pointing_at

AT_ONCE = 2_000  # rows that one statement names one by one
# Of the rows that point to one, so many are counted: a long history must not cost more than a short one.
COUNTED = 100

Row = dict[str, Any]
Rows = QuerySet[Any]


class RowsChangedError(Exception):
    """A statement touched other rows than were read just before: somebody else wrote, nothing may stay of this."""


class Ledger:
    """The changes of one record. A context: what it kept is stored when the block ends well."""

    def __init__(self, record: MigrationLog) -> None:
        self._record = record
        self._kept: list[MigrationUndo] = []

    def __enter__(self) -> Self:
        assert transaction.get_connection().in_atomic_block, "a change and its undo are one"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if kind is None:
            MigrationUndo.objects.bulk_create(self._kept, batch_size=AT_ONCE)

    def update(self, rows: Rows, **values: Any) -> int:
        """Update rows of which each may hold something else. A value that was there already is kept too: it is relied on.

        Returns the number of rows.
        """
        columns = [_attname(rows.model, name) for name in values]
        before = _read(rows.select_for_update(), columns)
        pks = list(before)
        for start in range(0, len(pks), AT_ONCE):
            chunk = pks[start : start + AT_ONCE]
            after = self._write(rows.model, chunk, dict(zip(columns, values.values(), strict=True)))
            for pk in chunk:
                for column, new in after[pk].items():
                    self._keep(Change.UPDATE, rows.model, pk, column, before[pk][column], new)
        return len(before)

    def _write(self, model: type[models.Model], pks: list[Any], values: Row) -> dict[Any, Row]:
        """Return what the rows hold then: it is read if the database works it out."""
        rows = model._base_manager.filter(pk__in=pks)
        if rows.update(**values) != len(pks):
            raise RowsChangedError(f"rows of {model._meta.label} went away")
        if any(hasattr(value, "resolve_expression") for value in values.values()):
            return _read(rows, list(values))
        new = {column: plain(value) for column, value in values.items()}
        return dict.fromkeys(pks, new)

    def replace(self, rows: Rows, column: str, *, old: Any, new: Any) -> int:
        """Replace one value by another in any number of rows, by one UPDATE, kept as ranges of ids.

        A range ends where a row that held `new` all along lies between, so that taking back tells them apart.
        """
        model, column = rows.model, _attname(rows.model, column)
        moved = rows.filter(**{column: old})
        span = moved.aggregate(first=Min("pk"), last=Max("pk"), count=Count("pk"))
        if not span["count"]:
            return 0
        within = model._base_manager.filter(
            **{column: new}, pk__gt=span["first"], pk__lt=span["last"]
        )
        runs = (
            _runs(_ids(moved), _ids(within))
            if within.exists()
            else [(span["first"], span["last"], span["count"])]
        )
        for first, last, count in list(runs):
            self._keep(Change.UPDATE, model, first, column, old, new, last=last, count=count)
        if moved.update(**{column: new}) != span["count"]:
            raise RowsChangedError(f"rows of {model._meta.label} changed meanwhile")
        return int(span["count"])

    @contextmanager
    def watch(self, rows: Rows) -> Iterator[None]:
        """Keep what the block does to a few rows, whatever it does: those selected before and those selected after."""
        model = rows.model
        before = whole(rows.select_for_update())
        yield
        after = whole(model._base_manager.filter(pk__in=before)) | whole(rows.all())
        # In this order, so that going back frees a unique value before another row takes it again.
        for pk in before.keys() - after.keys():
            self._keep(Change.DELETE, model, pk, "", before[pk], None)
        for pk in before.keys() & after.keys():
            for column, new in after[pk].items():
                if new != before[pk][column]:
                    self._keep(Change.UPDATE, model, pk, column, before[pk][column], new)
        for pk in after.keys() - before.keys():
            self._keep(Change.INSERT, model, pk, "", None, after[pk])

    def inserted(self, row: models.Model) -> None:
        """Keep that a row was made just now."""
        model = type(row)
        made = whole(model._base_manager.filter(pk=row.pk))
        self._keep(Change.INSERT, model, row.pk, "", None, made[row.pk])

    def delete(self, row: models.Model) -> None:
        """Delete a row to which nothing points any more."""
        with self.watch(type(row)._base_manager.filter(pk=row.pk)):
            row.delete()

    def stand(self, row: models.Model) -> None:
        """Keep which rows point to one now: those that come later stand in the way of taking back."""
        model = type(row)
        self._keep(Change.STAND, model, row.pk, "", None, standing(model, row.pk))

    def _keep(
        self,
        change: Change,
        model: type[models.Model],
        first: Any,
        column: str,
        old: Any,
        new: Any,
        *,
        last: Any = None,
        count: int = 1,
    ) -> None:
        self._kept.append(
            MigrationUndo(
                record=self._record,
                change=change,
                model=model._meta.label,
                first_pk=first,
                last_pk=first if last is None else last,
                count=count,
                column=column,
                old=old,
                new=new,
            )
        )


def whole(rows: Rows) -> dict[Any, Row]:
    """Return all columns of rows by primary key, as JSON can hold them."""
    return _read(rows, [field.attname for field in rows.model._meta.concrete_fields])


def standing(model: type[models.Model], pk: Any) -> dict[str, list[int]]:
    """Return the last of the rows that point to a row, and how many there are up to a limit, for each ForeignKey.

    One query over a dozen tables, since it is asked for each of thousands of records.
    """
    places = list(pointing_at(model))
    parts = [part for other, column in places for part in _last_and_number(other, column)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(parts)}", [pk] * len(parts))
        row = cursor.fetchone()
    return {
        f"{other._meta.label}.{column}": [row[2 * place], row[2 * place + 1]]
        for place, (other, column) in enumerate(places)
    }


def _last_and_number(model: type[models.Model], column: str) -> Iterator[str]:
    quoted = connection.ops.quote_name
    pk = quoted(_column(model, model._meta.pk.name))
    rows = f"FROM {quoted(model._meta.db_table)} WHERE {quoted(_column(model, column))} = %s"
    yield f"COALESCE((SELECT MAX({pk}) {rows}), 0)"
    yield f"(SELECT COUNT(*) FROM (SELECT 1 {rows} LIMIT {COUNTED}) AS counted)"


def plain(value: Any) -> Any:
    """Return a column's value as JSON can hold it; `Field.to_python` reads it again."""
    if isinstance(value, models.Model):
        return value.pk
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    if value is None or isinstance(value, bool | int | float | str | list | dict):
        return value
    return str(value)  # a decimal, a UUID


def _read(rows: Rows, columns: list[str]) -> dict[Any, Row]:
    found = rows.order_by().values_list("pk", *columns)
    return {pk: dict(zip(columns, map(plain, values), strict=True)) for pk, *values in found}


def _column(model: type[models.Model], name: str) -> str:
    return str(getattr(model._meta.get_field(name), "column"))  # noqa: B009 (relations have none)


def _attname(model: type[models.Model], name: str) -> str:
    return str(getattr(model._meta.get_field(name), "attname"))  # noqa: B009 (relations have none)


def _ids(rows: Rows) -> Iterator[int]:
    return rows.order_by("pk").values_list("pk", flat=True).iterator()


def _runs(moved: Iterator[int], present: Iterator[int]) -> Iterator[tuple[int, int, int]]:
    """Yield first, last and number of each run of `moved` with none of `present` in it; both ascend."""
    barrier = next(present, None)
    run: list[int] = []  # first, last, number
    for pk in moved:
        if run and barrier is not None and barrier < pk:
            yield run[0], run[1], run[2]
            run = []
        run = [run[0], pk, run[2] + 1] if run else [pk, pk, 1]
        while barrier is not None and barrier < pk:
            barrier = next(present, None)
    if run:
        yield run[0], run[1], run[2]
