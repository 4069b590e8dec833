"""Find what is remembered, and what was said. The scope stands inside every query, before anything is ranked (DESIGN 6).

    keyword   what holds the words of the query (`keyword.py`)
    vector    nearest unit vectors of the scope, exact
    hybrid    both, by reciprocal rank fusion

Ties: the newest first.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from channels_app.addresses import classify
from memory_app.embedding import QueryVector
from memory_app.index import ITEMS, TURNS, Indexed, scope_word, session_word
from memory_app.keyword import Found, Place, by_rank, keyword
from memory_app.models import MemoryEmbedding, MemoryItem, MemoryTurn
from memory_app.scopes import Scope
from sessions_app.models import Session

logger = logging.getLogger(__name__)

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


def search(
    query: str, *, scope: Scope, limit: int, mode: Mode, vector: QueryVector | None
) -> list[Hit]:
    """Return at most `limit` items of one scope that may be recalled, best first; none for a query without words.

    `vector` is of the same query; without one a hybrid search is one by keyword.
    """
    if mode == Mode.VECTOR and vector is None:
        raise SearchError("a vector search wants the query's vector")
    if vector is None or mode == Mode.KEYWORD:
        found, mode = keyword(query, _items_of(scope), limit=limit), Mode.KEYWORD
    elif mode == Mode.VECTOR:
        found = _nearest(vector, scope, limit=limit)
    else:
        listed = max(limit, LISTED)
        words = keyword(query, _items_of(scope), limit=listed)
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
    place = Place(TURNS, tuple(map(session_word, ids)), where, tuple(ids))
    found = keyword(query, place, limit=limit)
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


def _items_of(scope: Scope) -> Place:
    owner = scope_word(scope.scope_type, scope.scope_id)
    where = f"r.scope_type = %s AND r.scope_id = %s AND {ITEMS.shown.format(row='r')}"
    return Place(ITEMS, (owner,), where, (scope.scope_type, scope.scope_id))


def _everywhere(
    query: str, indexed: Indexed, within: QuerySet[MemoryItem] | QuerySet[MemoryTurn], *, limit: int
) -> list[Found]:
    try:
        sql, params = within.order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return []
    place = Place(indexed, None, f"r.id IN ({sql})", tuple(params))
    return keyword(query, place, limit=limit)


def _turn_hits(found: Sequence[Found], within: QuerySet[MemoryTurn]) -> list[TurnHit]:
    turns = within.in_bulk([hit.pk for hit in found])
    return [TurnHit(turns[hit.pk], hit.score) for hit in found if hit.pk in turns]


def _nearest(vector: QueryVector, scope: Scope, *, limit: int) -> list[Found]:
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
        Found(pk, round(float(score), 6))
        for (pk, _), score in zip(pairs, scores, strict=True)
        if score > max(vector.floor, 0.0)
    ]
    return sorted(found, key=by_rank)[:limit]


def _fused(words: Sequence[Found], vectors: Sequence[Found]) -> list[Found]:
    """Join two rankings; somebody who asks for words that stand there means them."""
    scores: dict[int, float] = {}
    for place, hit in enumerate(words, 1):
        scores[hit.pk] = (WHOLE if hit.is_whole else 1.0) / (RRF + place)
    for place, hit in enumerate(vectors, 1):
        scores[hit.pk] = scores.get(hit.pk, 0.0) + 1.0 / (RRF + place)
    return sorted((Found(pk, round(score, 6)) for pk, score in scores.items()), key=by_rank)
