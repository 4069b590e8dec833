"""Taking back what a record did: every value is put where it was, or nothing is touched and the rows in the way are named."""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any, Final

from django.apps import apps
from django.db import IntegrityError, models, transaction

from sessions_app.ledger import plain, standing, whole
from sessions_app.models import Change, MigrationLog, MigrationUndo
from sessions_app.relations import pointing_at

REVERTED: Final = "reverted"
MOST_SHOWN = 20  # rows in the way
WHOLE_ROW = (Change.INSERT, Change.DELETE, Change.STAND)

Kind = type[models.Model]


class UndoError(Exception):
    """A record cannot be taken back: `rows` names what stands in the way, at most `MOST_SHOWN` of it."""

    def __init__(self, record: MigrationLog, rows: list[str]) -> None:
        super().__init__(f"{record.old_key} cannot be taken back: {'; '.join(rows)}")
        self.rows = rows


def take_back(record: MigrationLog) -> None:
    """Put back all that a record changed, newest first. Raises UndoError; the caller's transaction then rolls back."""
    assert transaction.get_connection().in_atomic_block, "it is all or nothing"
    _refuse_if_any(record, _later_records(record))
    _refuse_if_any(record, _obstacles(record))


def _refuse_if_any(record: MigrationLog, obstacles: Iterable[str]) -> None:
    found = list(islice(dict.fromkeys(obstacles), MOST_SHOWN))
    if found:
        raise UndoError(record, found)


def _later_records(record: MigrationLog) -> Iterator[str]:
    """Name the records that have since touched the same rows: they are taken back first."""
    others = MigrationUndo.objects.exclude(record=record).exclude(record__result=REVERTED)
    for mine in record.undo.order_by("pk"):
        overlapping = others.filter(
            model=mine.model,
            first_pk__lte=mine.last_pk,
            last_pk__gte=mine.first_pk,
            pk__gt=mine.pk,
        )
        for other in overlapping.select_related("record"):
            if _share(mine, other):
                yield f"record {other.record_id} ({other.record.old_key}) came later: revert it first"


def _share(mine: MigrationUndo, other: MigrationUndo) -> bool:
    """Two ranges may overlap and have no row in common, if neither has to do with the other's values."""
    if mine.change in WHOLE_ROW or other.change in WHOLE_ROW:
        return True
    if mine.column != other.column:
        return False
    is_same_row = mine.first_pk == mine.last_pk == other.first_pk == other.last_pk
    return is_same_row or mine.new in (other.old, other.new)


def _obstacles(record: MigrationLog) -> Iterator[str]:
    # Read at once: a cursor that is left open when this ends early would be closed in another transaction.
    for _, rows in groupby(record.undo.order_by("-pk"), key=_one_row):
        yield from _put_back(list(rows))


def _one_row(undo: MigrationUndo) -> tuple[Any, ...]:
    """What replaced columns of one row, one after the other, is put back at once."""
    if undo.change == Change.UPDATE and undo.first_pk == undo.last_pk:
        return undo.model, undo.first_pk
    return (undo.pk,)


def _put_back(rows: list[MigrationUndo]) -> list[str]:
    first = rows[0]
    model = apps.get_model(first.model)
    try:
        with transaction.atomic():
            match first.change:
                case Change.INSERT:
                    return list(_remove(model, first))
                case Change.DELETE:
                    _restore(model, first)
                    return []
                case Change.STAND:
                    return list(_came_later(model, first))
            if first.first_pk == first.last_pk:
                return list(_restore_columns(model, first.first_pk, rows))
            return list(_restore_range(model, first))
    except IntegrityError as error:
        return [f"{first}: another row is in its place ({str(error).splitlines()[0]})"]


def _restore_columns(model: Kind, pk: int, rows: list[MigrationUndo]) -> Iterator[str]:
    expected: dict[str, Any] = {}
    old: dict[str, Any] = {}
    for undo in rows:
        expected.setdefault(undo.column, undo.new)
        old[undo.column] = undo.old
    row = model._base_manager.filter(pk=pk).select_for_update().values(*expected).first()
    found = list(_differences(model, pk, row, expected))
    if not found:
        model._base_manager.filter(pk=pk).update(**_values(model, old))
    yield from found


def _restore_range(model: Kind, undo: MigrationUndo) -> Iterator[str]:
    rows = model._base_manager.filter(
        pk__range=(undo.first_pk, undo.last_pk), **_values(model, {undo.column: undo.new})
    )
    number = rows.update(**_values(model, {undo.column: undo.old}))
    if number != undo.count:
        yield (
            f"{undo.model} {undo.first_pk} to {undo.last_pk}: "
            f"{number} rows hold {undo.column} {undo.new}, not {undo.count}"
        )


def _remove(model: Kind, undo: MigrationUndo) -> Iterator[str]:
    rows = model._base_manager.filter(pk=undo.first_pk)
    row = whole(rows.select_for_update()).get(undo.first_pk)
    found = [
        *_differences(model, undo.first_pk, row, undo.new or {}),
        *_pointing(model, undo.first_pk),
    ]
    if not found:
        rows.delete()
    yield from found


def _restore(model: Kind, undo: MigrationUndo) -> None:
    values = _values(model, undo.old or {})
    model._base_manager.bulk_create([model(**values)])
    # A column that sets itself has done so.
    model._base_manager.filter(pk=undo.first_pk).update(**values)


def _came_later(model: Kind, undo: MigrationUndo) -> Iterator[str]:
    now = standing(model, undo.first_pk)
    for place, (last, count) in (undo.new or {}).items():
        if now.get(place) == [last, count]:
            continue
        label, _, column = place.rpartition(".")
        other = apps.get_model(label)
        rows = other._base_manager.filter(**{column: undo.first_pk}).order_by("-pk")
        later = list(rows.filter(pk__gt=last).values_list("pk", flat=True)[:MOST_SHOWN])
        for pk in later:
            yield f"{label} {pk} came later and has {column} {undo.first_pk}"
        if not later:
            yield f"other rows of {label} have {column} {undo.first_pk} now"


def _pointing(model: Kind, pk: int) -> Iterator[str]:
    for other, column in pointing_at(model):
        rows = other._base_manager.filter(**{column: pk}).order_by("pk")
        for its in rows.values_list("pk", flat=True)[:MOST_SHOWN]:
            yield f"{other._meta.label} {its} has {column} {pk}"


def _differences(
    model: Kind, pk: int, row: dict[str, Any] | None, expected: dict[str, Any]
) -> Iterator[str]:
    if row is None:
        yield f"{model._meta.label} {pk} is gone"
        return
    for column, value in expected.items():
        if plain(row[column]) != value:
            yield f"{model._meta.label} {pk}: {column} is now {plain(row[column])!r}, not {value!r}"


def _values(model: Kind, columns: dict[str, Any]) -> dict[str, Any]:
    """Return values as the model takes them, from what JSON held."""
    fields = {field.attname: field for field in model._meta.concrete_fields}
    return {
        name: value if value is None else fields[name].to_python(value)
        for name, value in columns.items()
    }
