"""Find what is remembered, and what was said. The scope stands inside every query, before anything is ranked (DESIGN 6).

    keyword   every run of the query as a phrase; if that finds too few, any of its tokens
    vector    nearest unit vectors of the scope, exact
    hybrid    both, by reciprocal rank fusion

The database says which items match; how well is reckoned here, from the matches of this scope alone. So both databases give the same
order, and no other chat's words have a say in it, as they would have in a bm25 over the whole index. Ties: the newest first.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from channels_app.addresses import classify
from memory_app.embedding import QueryVector
from memory_app.index import ITEMS, TURNS, Indexed, scope_word, session_word
from memory_app.models import MemoryEmbedding, MemoryItem, MemoryTurn
from memory_app.scopes import Scope
from memory_app.stopwords import telling
from memory_app.tokens import Phrase, fts5_query, query_runs, query_tokens, tsquery
from sessions_app.models import Session

logger = logging.getLogger(__name__)

# With fewer hits than this of the whole query, any of its tokens will do.
FEW: Final = 3
# Matches of one scope that the database hands over, its own best first, to be ranked here.
CANDIDATES: Final = 100
# Characters of tokens that are judged of each: the first 1,500 Chinese characters or 3,000 words.
JUDGED: Final = 16_000
# A match of some tokens that is worth less than this part of the best one is noise.
FLOOR: Final = 0.35
# Vectors of one scope that are compared, of the newest items: 20,000 of 384 numbers are 30 MB.
MOST_VECTORS: Final = 20_000
# Reciprocal rank fusion: the usual constant, and what a match of the whole query counts.
RRF: Final = 60
WHOLE: Final = 2.0
LISTED: Final = 50  # of each list that is fused


class SearchError(ValueError):
    """The search cannot be made as asked."""


class Mode(StrEnum):
    KEYWORD = "keyword"
    VECTOR = "vector"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True)
class Hit:
    item: MemoryItem
    score: float
    mode: Mode


@dataclass(frozen=True, slots=True)
class TurnHit:
    turn: MemoryTurn
    score: float


@dataclass(frozen=True, slots=True)
class _Found:
    """A row that matches: 1.0 and more if the whole query does."""

    pk: int
    score: float

    @property
    def is_whole(self) -> bool:
        return self.score >= 1.0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where to look: a table, whose words in its index, and the condition on its rows, named `r`."""

    indexed: Indexed
    owners: tuple[str, ...] | None  # None: everybody's
    where: str
    params: tuple[Any, ...]


def search(
    query: str, *, scope: Scope, limit: int, mode: Mode, vector: QueryVector | None
) -> list[Hit]:
    """Return at most `limit` items of one scope that may be recalled, best first; none for a query without words.

    `vector` is of the same query; without one a hybrid search is one by keyword.
    """
    if mode == Mode.VECTOR and vector is None:
        raise SearchError("a vector search wants the query's vector")
    if vector is None or mode == Mode.KEYWORD:
        found, mode = _keyword(query, _items_of(scope), limit=limit), Mode.KEYWORD
    elif mode == Mode.VECTOR:
        found = _nearest(vector, scope, limit=limit)
    else:
        listed = max(limit, LISTED)
        words = _keyword(query, _items_of(scope), limit=listed)
        found = _fused(words, _nearest(vector, scope, limit=listed))[: max(limit, 0)]
    # Asked again: meanwhile one may have moved away or been forgotten.
    items = MemoryItem.objects.in_scope(scope).recallable().in_bulk([hit.pk for hit in found])
    return [Hit(items[hit.pk], hit.score, mode) for hit in found if hit.pk in items]


def search_turns(query: str, *, session: Session, limit: int) -> list[TurnHit]:
    """Return at most `limit` lines of the chat that a session belongs to, best first.

    What was said and answered, in every session and topic of the chat; no commands, no prompts of jobs. A session whose key names
    no chat type is searched alone: whose the others are nobody knows.
    """
    ids = _sessions_of(session)
    marks = ", ".join(["%s"] * len(ids))
    where = f"r.session_id IN ({marks}) AND {TURNS.shown.format(row='r')}"
    place = _Place(TURNS, tuple(map(session_word, ids)), where, tuple(ids))
    found = _keyword(query, place, limit=limit)
    return _turn_hits(found, MemoryTurn.objects.filter(session__in=ids))


def search_everywhere(
    query: str, *, within: QuerySet[MemoryItem], asked_by: str, limit: int
) -> list[Hit]:
    """Return the best items of `within`, whoever's they are: for the owner, and logged.

    Archived, held and superseded ones are found as well. The log does not hold the query.
    """
    found = _everywhere(query, ITEMS, within, limit=limit)
    logger.info("%s searched every memory: %d found", asked_by, len(found))
    items = within.in_bulk([hit.pk for hit in found])
    return [Hit(items[hit.pk], hit.score, Mode.KEYWORD) for hit in found if hit.pk in items]


def search_turns_everywhere(
    query: str, *, within: QuerySet[MemoryTurn], asked_by: str, limit: int
) -> list[TurnHit]:
    """Return the best turns of `within`, whoever's they are: for the owner, and logged without the query."""
    found = _everywhere(query, TURNS, within, limit=limit)
    logger.info("%s searched every transcript: %d found", asked_by, len(found))
    return _turn_hits(found, within)


def _sessions_of(session: Session) -> list[int]:
    if session.chat_id is None or classify(session.key) not in ("typed", "typed-derived"):
        return [session.pk]
    typed = Session.objects.filter(chat=session.chat_id, legacy_untyped=False)
    return list(typed.order_by("pk").values_list("pk", flat=True))


def _items_of(scope: Scope) -> _Place:
    owner = scope_word(scope.scope_type, scope.scope_id)
    where = f"r.scope_type = %s AND r.scope_id = %s AND {ITEMS.shown.format(row='r')}"
    return _Place(ITEMS, (owner,), where, (scope.scope_type, scope.scope_id))


def _everywhere(
    query: str, indexed: Indexed, within: QuerySet[MemoryItem] | QuerySet[MemoryTurn], *, limit: int
) -> list[_Found]:
    try:
        sql, params = within.order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return []
    place = _Place(indexed, None, f"r.id IN ({sql})", tuple(params))
    return _keyword(query, place, limit=limit)


def _turn_hits(found: Sequence[_Found], within: QuerySet[MemoryTurn]) -> list[TurnHit]:
    turns = within.in_bulk([hit.pk for hit in found])
    return [TurnHit(turns[hit.pk], hit.score) for hit in found if hit.pk in turns]


def _keyword(query: str, place: _Place, *, limit: int) -> list[_Found]:
    """Return what matches the whole query; if that is little, behind it what matches some of it."""
    runs = query_runs(query)
    if not runs or limit <= 0:
        return []
    tokens = telling(query_tokens(query))
    whole = [
        _Found(pk, round(1 + _brevity(text), 6)) for pk, text in _matches(place, runs, any_of=False)
    ]
    found = sorted(whole, key=_order)
    if len(found) < min(FEW, limit):
        known = {hit.pk for hit in whole}
        some = [row for row in _matches(place, tokens, any_of=True) if row[0] not in known]
        found += sorted(_partial(some, runs, tokens), key=_order)
    return found[:limit]


def _order(hit: _Found) -> tuple[float, int]:
    return -hit.score, -hit.pk


def _partial(
    rows: Sequence[tuple[int, str]], runs: Sequence[Phrase], tokens: Sequence[Phrase]
) -> list[_Found]:
    """Judge rows by how much of the query they hold; what few of them hold counts more."""
    held = [[_holds(text, token) for token in tokens] for _, text in rows]
    weights = [math.log(1 + len(rows) / (sum(column) or 0.5)) for column in zip(*held, strict=True)]
    total = sum(weights)
    found = []
    for (pk, text), row in zip(rows, held, strict=True):
        share = sum(weight for weight, has in zip(weights, row, strict=True) if has) / total
        phrases = sum(_holds(text, run) for run in runs) / len(runs)
        # Less than 1 by construction: not all of the runs stand in it.
        found.append(_Found(pk, round(0.45 * (share + phrases) + 0.05 * _brevity(text), 6)))
    best = max((hit.score for hit in found), default=0.0)
    return [hit for hit in found if hit.score >= FLOOR * best]


def _holds(text: str, phrase: Phrase) -> bool:
    wanted = " " + " ".join(phrase.tokens)
    return (wanted if phrase.open_end else f"{wanted} ") in text


def _brevity(text: str) -> float:
    """Of two matches the shorter one is more about it. Between 0 and 1."""
    return 1 / (1 + text.count(" ") / 20)


def _matches(place: _Place, phrases: Sequence[Phrase], *, any_of: bool) -> list[tuple[int, str]]:
    """Return id and tokens, with a blank at each end, of the rows of `place` that match."""
    sql, params = _BACKENDS[connection.vendor](place, list(phrases), any_of)
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [(pk, f" {text} ") for pk, text in cursor.fetchall()]


class _Backend(Protocol):
    def __call__(
        self, place: _Place, phrases: list[Phrase], any_of: bool
    ) -> tuple[str, list[Any]]: ...


def _on_sqlite(place: _Place, phrases: list[Phrase], any_of: bool) -> tuple[str, list[Any]]:
    index, table = place.indexed.name, place.indexed.table
    match = f"tokens : ({fts5_query(phrases, any_of=any_of)})"
    order = f"bm25({index}, 0.0, 1.0), {index}.rowid DESC" if any_of else f"{index}.rowid DESC"
    columns = f"r.id, SUBSTR(r.search_tokens, 1, {JUDGED})"
    if place.owners is None:
        # A cross join keeps the order: asking the index for each row of `where` takes seconds.
        sql = (
            f"SELECT {columns} FROM {index} CROSS JOIN {table} r "  # noqa: S608  # names of constants
            f"WHERE {index} MATCH %s AND r.id = {index}.rowid AND {place.where} "
            f"ORDER BY {order} LIMIT {CANDIDATES}"
        )
        return sql, [match, *place.params]
    # The owner's word stands for the whole of `where`, so that no row is read but those that are judged.
    owners = " OR ".join(f'"{owner}"' for owner in place.owners)
    inner = f"SELECT rowid AS pk FROM {index} WHERE {index} MATCH %s ORDER BY {order} LIMIT {CANDIDATES}"  # noqa: S608
    sql = f"SELECT {columns} FROM ({inner}) CROSS JOIN {table} r ON r.id = pk WHERE {place.where}"  # noqa: S608
    return sql, [f"owner : ({owners}) AND {match}", *place.params]


def _on_postgresql(place: _Place, phrases: list[Phrase], any_of: bool) -> tuple[str, list[Any]]:
    order = "ts_rank(r.search_vector, query) DESC, r.id DESC" if any_of else "r.id DESC"
    sql = (
        f"SELECT r.id, SUBSTR(r.search_tokens, 1, {JUDGED}) "  # noqa: S608
        f"FROM {place.indexed.table} r, to_tsquery('simple', %s) query "
        f"WHERE r.search_vector @@ query AND {place.where} ORDER BY {order} LIMIT {CANDIDATES}"
    )
    return sql, [tsquery(phrases, any_of=any_of), *place.params]


_BACKENDS: Final[dict[str, _Backend]] = {"sqlite": _on_sqlite, "postgresql": _on_postgresql}


def _nearest(vector: QueryVector, scope: Scope, *, limit: int) -> list[_Found]:
    """Compare with every vector of the scope that is of the same model and size."""
    size = len(vector.values)
    rows = MemoryEmbedding.objects.filter(
        item__in=MemoryItem.objects.in_scope(scope).recallable(),
        model=vector.model,
        dimensions=size,
    )
    pairs = list(rows.order_by("-item_id").values_list("item_id", "vector")[:MOST_VECTORS])
    if not pairs or limit <= 0:
        return []
    matrix = np.frombuffer(b"".join(bytes(raw) for _, raw in pairs), dtype="<f4").reshape(-1, size)
    scores = matrix @ vector.values.astype("<f4")
    found = [
        _Found(pk, round(float(score), 6))
        for (pk, _), score in zip(pairs, scores, strict=True)
        if score > max(vector.floor, 0.0)
    ]
    return sorted(found, key=_order)[:limit]


def _fused(words: Sequence[_Found], vectors: Sequence[_Found]) -> list[_Found]:
    """Join two rankings; somebody who asks for words that stand there means them."""
    scores: dict[int, float] = {}
    for place, hit in enumerate(words, 1):
        scores[hit.pk] = (WHOLE if hit.is_whole else 1.0) / (RRF + place)
    for place, hit in enumerate(vectors, 1):
        scores[hit.pk] = scores.get(hit.pk, 0.0) + 1.0 / (RRF + place)
    return sorted((_Found(pk, round(score, 6)) for pk, score in scores.items()), key=_order)
