"""Which rows hold the words of a query, and how well: asked of the full-text index, inside one place (DESIGN 6).

Every run of the query as a phrase first; if that finds too few, any of its tokens. The database says which rows match; how well is
reckoned here, from the matches of this place alone, so that no other chat's words have a say in it, as they would have in a bm25 over
the whole index. Ties: the newest first.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection

from channels_app.clock import is_postgresql
from memory_app.index import Indexed
from memory_app.stopwords import telling
from memory_app.tokens import Phrase, fts5_query, query_runs, query_tokens, tsquery

# With fewer rows than this that hold the whole query, any of its tokens will do.
FEW: Final = 3
# Rows that hold the whole query, the newest ones, and where the index cannot say what a row holds, the best it has.
CANDIDATES: Final = 100
JUDGED_BY_LENGTH: Final = 40  # of those that hold some of the query
# Tokens of a query any of which will do; the rest of a long one is read as phrases only.
MOST_TOKENS: Final = 64
# Characters of tokens that are read of a row where the index cannot say what it holds: 1,500 Chinese characters, 3,000 words.
JUDGED: Final = 16_000
# A row whose match is worth less than this part of the best one is noise.
FLOOR: Final = 0.35


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look: a table, whose words in its index, and the condition on its rows, named `r`, that means the same.

    Without `owners` it is everybody's, and `where` alone narrows it.
    """

    indexed: Indexed
    owners: tuple[str, ...] | None
    where: str
    params: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A row and how well it matches: 1.0 and more if the whole query does."""

    pk: int
    score: float

    @property
    def is_whole(self) -> bool:
        return self.score >= 1.0


def by_rank(found: Found) -> tuple[float, int]:
    return -found.score, -found.pk


def keyword(query: str, place: Place, *, limit: int) -> list[Found]:
    """Return at most `limit` rows, best first. At most three statements."""
    runs = query_runs(query)
    if not runs or limit <= 0:
        return []
    whole = [Found(pk, round(1 + _brevity(length), 6)) for pk, length in _whole(place, runs)]
    found = sorted(whole, key=by_rank)
    if len(found) < min(FEW, limit):
        known = {hit.pk for hit in whole}
        found += [hit for hit in _partial(query, place, runs, limit=limit) if hit.pk not in known]
    return found[:limit]


def _partial(query: str, place: Place, runs: Sequence[Phrase], *, limit: int) -> list[Found]:
    """Judge rows by how much of the query they hold; what few of them hold counts more."""
    tokens = telling(query_tokens(query))[:MOST_TOKENS]
    phrases = list(dict.fromkeys((*tokens, *runs)))
    held = _held(place, tokens, phrases)
    weights = _weights(held.values(), count=len(tokens))
    total = sum(weights)
    run_places = {phrases.index(run) for run in runs}
    scores = {
        pk: 0.45 * sum(weights[at] for at in places if at < len(tokens)) / total
        + 0.45 * len(run_places & places) / len(runs)
        for pk, places in held.items()
    }
    ranked = sorted((Found(pk, score) for pk, score in scores.items()), key=by_rank)
    best = ranked[: max(limit, JUDGED_BY_LENGTH)]
    lengths = _lengths(place, [hit.pk for hit in best])
    # Less than 1 by construction.
    judged = [
        Found(hit.pk, round(hit.score + 0.05 * _brevity(lengths[hit.pk]), 6))
        for hit in best
        if hit.pk in lengths
    ]
    floor = FLOOR * max((hit.score for hit in judged), default=0.0)
    return sorted((hit for hit in judged if hit.score >= floor), key=by_rank)


def _weights(held: Iterable[frozenset[int]], *, count: int) -> list[float]:
    counts = [0] * count
    rows = 0
    for places in held:
        rows += 1
        for at in places:
            if at < count:
                counts[at] += 1
    return [math.log(1 + (rows + 1) / (number or 0.5)) for number in counts]


def _brevity(length: int) -> float:
    """Of two matches the shorter one is more about it. Between 0 and 1; `length` is that of the tokens."""
    return 1 / (1 + length / 200)


def _whole(place: Place, runs: Sequence[Phrase]) -> list[tuple[int, int]]:
    """Return id and length of the newest rows that hold every run."""
    if is_postgresql():
        sql, params = _rows_on_postgresql(
            place, runs, any_of=False, columns="r.id, LENGTH(r.search_tokens)", order="r.id DESC"
        )
    else:
        sql, params = _rows_on_sqlite(
            place,
            runs,
            any_of=False,
            columns="r.id, LENGTH(r.search_tokens)",
            order=f"{place.indexed.name}.rowid DESC",
        )
    return [(pk, length) for pk, length in _asked(sql, params)]


def _held(
    place: Place, tokens: Sequence[Phrase], phrases: Sequence[Phrase]
) -> Mapping[int, frozenset[int]]:
    """Return which of `phrases` are held by the rows that hold any of `tokens`."""
    if place.owners is not None and not is_postgresql():
        return _postings(place, phrases, tokens=len(tokens))
    columns = f"r.id, SUBSTR(r.search_tokens, 1, {JUDGED})"
    if is_postgresql():
        rank = "ts_rank(r.search_vector, query) DESC, r.id DESC"
        sql, params = _rows_on_postgresql(place, tokens, any_of=True, columns=columns, order=rank)
    else:
        index = place.indexed.name
        rank = f"bm25({index}, 0.0, 1.0), {index}.rowid DESC"
        sql, params = _rows_on_sqlite(place, tokens, any_of=True, columns=columns, order=rank)
    return {
        pk: frozenset(at for at, phrase in enumerate(phrases) if _holds(f" {text} ", phrase))
        for pk, text in _asked(sql, params)
    }


def _holds(text: str, phrase: Phrase) -> bool:
    wanted = " " + " ".join(phrase.tokens)
    return (wanted if phrase.open_end else f"{wanted} ") in text


def _postings(place: Place, phrases: Sequence[Phrase], *, tokens: int) -> dict[int, frozenset[int]]:
    """Ask FTS5 for each phrase which rows of the owners hold it: no row is read, and none is left out.

    The first `tokens` phrases count; who holds but one of the others is no match.
    """
    index = place.indexed.name
    sql = " UNION ALL ".join(
        f"SELECT {at}, rowid FROM {index} WHERE {index} MATCH %s"  # noqa: S608  # names of constants
        for at in range(len(phrases))
    )
    params = [_match(place, fts5_query([phrase])) for phrase in phrases]
    held: dict[int, set[int]] = {}
    for at, pk in _asked(sql, params):
        held.setdefault(pk, set()).add(at)
    return {pk: frozenset(places) for pk, places in held.items() if min(places) < tokens}


def _lengths(place: Place, ids: Sequence[int]) -> dict[int, int]:
    if not ids:
        return {}
    marks = ", ".join(["%s"] * len(ids))
    sql = f"SELECT id, LENGTH(search_tokens) FROM {place.indexed.table} WHERE id IN ({marks})"  # noqa: S608
    return dict(_asked(sql, ids))


def _asked(sql: str, params: Sequence[Any]) -> list[tuple[Any, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def _match(place: Place, words: str) -> str:
    match = f"tokens : ({words})"
    if place.owners is None:
        return match
    owners = " OR ".join(f'"{owner}"' for owner in place.owners)
    return f"owner : ({owners}) AND {match}"


def _rows_on_sqlite(
    place: Place, phrases: Sequence[Phrase], *, any_of: bool, columns: str, order: str
) -> tuple[str, list[Any]]:
    index, table = place.indexed.name, place.indexed.table
    match = _match(place, fts5_query(list(phrases), any_of=any_of))
    if place.owners is None:
        # A cross join keeps the order: asking the index for each row of `where` takes seconds.
        sql = (
            f"SELECT {columns} FROM {index} CROSS JOIN {table} r "  # noqa: S608
            f"WHERE {index} MATCH %s AND r.id = {index}.rowid AND {place.where} "
            f"ORDER BY {order} LIMIT {CANDIDATES}"
        )
        return sql, [match, *place.params]
    # The owner's word stands for the whole of `where`, so that no row is read but those that are judged.
    inner = f"SELECT rowid AS pk FROM {index} WHERE {index} MATCH %s ORDER BY {order} LIMIT {CANDIDATES}"  # noqa: S608
    sql = f"SELECT {columns} FROM ({inner}) CROSS JOIN {table} r ON r.id = pk WHERE {place.where}"  # noqa: S608
    return sql, [match, *place.params]


def _rows_on_postgresql(
    place: Place, phrases: Sequence[Phrase], *, any_of: bool, columns: str, order: str
) -> tuple[str, list[Any]]:
    sql = (
        f"SELECT {columns} FROM {place.indexed.table} r, to_tsquery('simple', %s) query "  # noqa: S608
        f"WHERE r.search_vector @@ query AND {place.where} ORDER BY {order} LIMIT {CANDIDATES}"
    )
    return sql, [tsquery(list(phrases), any_of=any_of), *place.params]
