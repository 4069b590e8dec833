"""Pages by cursor: the next one begins where the last one ended, whatever was added meanwhile."""

import base64
import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar

from django.db.models import Model, Q, QuerySet
from ninja import Field, Query, Schema

from nahida.gateway.problems import InvalidRequestError

Row = TypeVar("Row", bound=Model)

MAX_ID = 2**63 - 1
CHUNK = 500  # rows looked at together when `keep` drops some


class CursorError(InvalidRequestError):
    def __init__(self) -> None:
        super().__init__("the cursor is none of ours: use next_cursor of the page before as it is")


class Paging(Schema):
    limit: int = Field(50, ge=1, le=200)
    cursor: str | None = Field(None, max_length=200, description="next_cursor of the page before")


Paged = Annotated[Paging, Query()]


def by_id(
    rows: QuerySet[Row], paging: Paging, *, oldest_first: bool = False
) -> tuple[list[Row], str | None]:
    """Return one page and the cursor of the next. One query."""
    compare, order = ("pk__gt", "pk") if oldest_first else ("pk__lt", "-pk")
    if paging.cursor:
        rows = rows.filter(**{compare: _read(paging.cursor, parts=1)[0]})
    found = list(rows.order_by(order)[: paging.limit + 1])
    return _cut(found, paging, lambda row: [row.pk])


def by_time(
    rows: QuerySet[Row],
    paging: Paging,
    *,
    column: str,
    keep: Callable[[Row], bool] | None = None,
) -> tuple[list[Row], str | None]:
    """Return one page, latest first, and the cursor of the next.

    One query; with `keep`, which drops rows, as many as it takes to fill the page.
    """

    def place(row: Row) -> list[Any]:
        return [row.pk, getattr(row, column).isoformat()]

    rows = rows.order_by(f"-{column}", "-pk")
    after = _read(paging.cursor, parts=2) if paging.cursor else None
    if keep is None:
        return _cut(list(_behind(rows, column, after)[: paging.limit + 1]), paging, place)
    found: list[Row] = []
    while len(found) <= paging.limit:
        chunk = list(_behind(rows, column, after)[:CHUNK])
        found += filter(keep, chunk)
        if len(chunk) < CHUNK:
            break
        after = [chunk[-1].pk, getattr(chunk[-1], column)]
    return _cut(found, paging, place)


def _behind(rows: QuerySet[Row], column: str, after: list[Any] | None) -> QuerySet[Row]:
    if after is None:
        return rows
    pk, at = after
    # The first condition alone is what an index can be entered by.
    return rows.filter(Q(**{f"{column}__lte": at}), Q(**{f"{column}__lt": at}) | Q(pk__lt=pk))


def _cut(
    found: list[Row], paging: Paging, place: Callable[[Row], list[Any]]
) -> tuple[list[Row], str | None]:
    page = found[: paging.limit]
    return page, _write(place(page[-1])) if len(found) > paging.limit else None


def _write(place: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def _read(cursor: str, *, parts: int) -> list[Any]:
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError as error:
        raise CursorError from error
    match place:
        case [int(pk)] if parts == 1 and 0 <= pk <= MAX_ID:
            return [pk]
        case [int(pk), str(at)] if parts == 2 and 0 <= pk <= MAX_ID:
            return [pk, _instant(at)]
    raise CursorError


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise CursorError from error
    if at.tzinfo is None or not 1971 <= at.year <= 9990:  # no time zone can carry it out of range
        raise CursorError
    return at
