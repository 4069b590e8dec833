"""How fast a memory answers, how big it grows: by keyword, by vector and by both, beside the bare driver with the same statements."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice
from statistics import median, quantiles
from typing import Any

from bench.site import Broker, Site

CHATS = 1_000
CHARACTERS = 63  # of an item
SHARED = 0.05  # of all items are for every chat
LARGE = 0.10  # are of one chat that never stops
DIMENSIONS = 384
ASKED = 300  # recalls of one kind
BUDGET = 8  # items of one recall
PAGE = 50
APPENDED = 500


@dataclass(frozen=True, slots=True)
class Figures:
    p50: float
    p95: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Figures":
        return cls(median(seconds) * 1000, quantiles(seconds, n=20)[-1] * 1000)

    def __str__(self) -> str:
        return f"{self.p50:7.2f} / {self.p95:7.2f} ms"


def run(broker: Broker, *, items: Sequence[int], turns: int) -> bool:
    """Print the figures; True if they keep what is promised of the largest memory and of the page."""
    words = Words(random.Random(1))
    kept = True
    with Site(broker):
        print(f"memory on {'SQLite' if broker == 'orm' else 'PostgreSQL'}, p50 / p95")
        stored = 0
        for size in items:
            fill_items(words, first=stored, last=size)
            settle()
            stored = size
            print(f"{size:,} items, {CHATS:,} chats and what all share; index {index_mb():.1f} MB")
            kept = show_recalls(words, size) and kept
        fill_turns(words, turns)
        settle()
        return show_turns(words, turns) and kept


class Words:
    """Text as people write it, without the words that say nothing: the commonest stands in every tenth item, a fifth is Latin."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        common = [chr(point) for point in range(0x4E00, 0x4E00 + 2_500)]
        self.han = [
            "".join(chance.choices(common, k=chance.choice((1, 2, 2, 2, 3)))) for _ in range(8_000)
        ]
        self.latin = [
            "".join(chance.choices("aeioubcdfglmnprst", k=chance.randint(3, 9)))
            for _ in range(3_000)
        ]
        self.han_sums = list(accumulate(1 / (rank + 60) for rank in range(len(self.han))))
        self.latin_sums = self.han_sums[: len(self.latin)]

    def text(self, length: int = CHARACTERS) -> str:
        parts: list[str] = []
        size = 0
        while size < length:
            if self.chance.random() < 0.2:
                part = f" {self.chance.choices(self.latin, cum_weights=self.latin_sums)[0]} "
            else:
                part = self.chance.choices(self.han, cum_weights=self.han_sums)[0]
            parts.append(part)
            size += len(part)
        return "".join(parts).strip()

    def chat(self) -> int:
        return 0 if self.chance.random() < LARGE else self.chance.randrange(CHATS)

    def part_of(self, text: str, length: int) -> str:
        start = self.chance.randrange(max(len(text) - length, 1))
        return text[start : start + length]


def fill_items(words: Words, *, first: int, last: int) -> None:
    """Store items with their vectors as the importer would, in bulk."""
    import numpy as np

    from memory_app.items import content_hash
    from memory_app.models import ItemKind, MemoryEmbedding, MemoryItem
    from memory_app.scopes import GLOBAL
    from memory_app.tokens import index_text

    def rows() -> Iterator[MemoryItem]:
        for _ in range(first, last):
            shared = words.chance.random() < SHARED
            content = words.text()
            scope = GLOBAL if shared else scope_of(words.chat())
            yield MemoryItem(
                scope_type=scope.scope_type,
                scope_id=scope.scope_id,
                kind=ItemKind.PROCEDURE if shared else ItemKind.FACT,
                content=content,
                search_tokens=index_text(content),
                content_hash=content_hash(content),
            )

    chance = np.random.default_rng(first)
    waiting = rows()
    while batch := list(islice(waiting, 5_000)):
        made = MemoryItem.objects.bulk_create(batch)
        vectors = chance.standard_normal((len(made), DIMENSIONS))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        MemoryEmbedding.objects.bulk_create(
            MemoryEmbedding(
                item=item,
                model="bench",
                dimensions=DIMENSIONS,
                content_hash=item.content_hash,
                vector=vector.astype("<f4").tobytes(),
            )
            for item, vector in zip(made, vectors, strict=True)
        )


def address_of(chat: int) -> Any:
    from channels_app.addresses import ChatAddress

    return ChatAddress("bench", "private", str(chat))


def scope_of(chat: int) -> Any:
    from memory_app.scopes import CHAT_SCOPE, Scope

    return Scope(CHAT_SCOPE, address_of(chat).chat_key)


def settle() -> None:
    """Let the database see what it holds, as it would after an hour."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def index_mb() -> float:
    from django.db import connection

    from memory_app.index import ITEMS

    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"SELECT sum(length(block)) FROM {ITEMS.name}_data")
        else:
            cursor.execute("SELECT pg_relation_size(%s::regclass)", [ITEMS.name])
        return float(cursor.fetchone()[0]) / 1e6


def show_recalls(words: Words, size: int) -> bool:
    from memory_app.models import MemoryItem

    ids = [words.chance.randint(1, size) for _ in range(ASKED)]
    texts = dict(MemoryItem.objects.filter(pk__in=ids).values_list("pk", "content"))
    parts = [words.part_of(text, words.chance.choice((2, 4, 8))) for text in texts.values()]
    questions = [f"{words.part_of(text, 10)}{words.text(15)}？" for text in texts.values()]
    crowd = [words.chance.randrange(1, CHATS) for _ in texts]
    slowest = 0.0
    for name, queries, chats in (
        ("words, any chat", parts, crowd),
        ("words, the large chat", parts, [0] * len(parts)),
        ("questions, any chat", questions, crowd),
        ("questions, the large chat", questions, [0] * len(questions)),
    ):
        for mode in ("keyword", "hybrid"):
            ours, bare = recalls(queries, chats, by_vector=mode == "hybrid")
            print(f"  {name:<26}{mode:<9}{ours}   bare {bare}")
            if mode == "keyword" and chats is crowd:
                slowest = max(slowest, ours.p95)
    return slowest <= 10


def recalls(
    queries: Sequence[str], chats: Sequence[int], *, by_vector: bool
) -> tuple[Figures, Figures]:
    """Return how long recalls take, and how long the bare driver takes for the statements they make."""
    import numpy as np

    from channels_app.addresses import SessionKey
    from memory_app.embedding import QueryVector
    from memory_app.recall import recall

    chance = np.random.default_rng(7)
    ours, bare = [], []
    for query, chat in zip(queries, chats, strict=True):
        values = chance.standard_normal(DIMENSIONS)
        vector = QueryVector("bench", values / np.linalg.norm(values)) if by_vector else None
        key = SessionKey(address_of(chat))
        with noted() as statements:
            recall(query, key=key, budget=BUDGET, vector=vector)
        bare.append(timed(partial(replay, statements)))
        ours.append(timed(partial(recall, query, key=key, budget=BUDGET, vector=vector)))
    return Figures.of(ours), Figures.of(bare)


def timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


@contextmanager
def noted() -> Iterator[list[tuple[str, Any]]]:
    from django.db import connection

    statements: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield statements


def replay(statements: Sequence[tuple[str, Any]]) -> None:
    from django.db import connection

    cursor = connection.connection.cursor()
    for sql, params in statements:
        if connection.vendor == "sqlite":
            sql = sql.replace("%s", "?").replace("%%", "%")
        cursor.execute(sql, tuple(params))
        cursor.fetchall()


def fill_turns(words: Words, count: int) -> None:
    """Store many turns, a tenth of them in one session."""
    from memory_app.models import MemoryTurn, Role, TurnKind
    from memory_app.tokens import index_text
    from sessions_app import lanes
    from sessions_app.models import Lane

    for chat in range(50):
        lanes.ensure(address_of(chat))
    sessions = list(Lane.objects.order_by("pk").values_list("pk", "active_session_id"))
    texts = [words.text() for _ in range(5_000)]
    prepared = [(text, index_text(text)) for text in texts]

    def rows() -> Iterator[MemoryTurn]:
        for number in range(count):
            lane, session = sessions[0] if number % 10 == 0 else sessions[number % len(sessions)]
            content, tokens = prepared[number * 7 % len(prepared)]
            yield MemoryTurn(
                session_id=session,
                lane_id=lane,
                kind=TurnKind.MESSAGE,
                role=Role.ASSISTANT,
                content=content,
                search_tokens=tokens,
            )

    waiting = rows()
    while batch := list(islice(waiting, 10_000)):
        MemoryTurn.objects.bulk_create(batch)


def show_turns(words: Words, count: int) -> bool:
    from memory_app.models import MemoryTurn
    from memory_app.search import search_turns
    from sessions_app.models import Session

    session = Session.objects.earliest("pk")
    newest = MemoryTurn.objects.filter(session=session).order_by("-pk")
    middle = newest[newest.count() // 2].pk
    pages = [
        timed(lambda: list(newest[:PAGE]))
        if number % 2
        else timed(lambda: list(newest.filter(pk__lt=middle)[:PAGE]))
        for number in range(ASKED)
    ]
    queries = [words.text(6) for _ in range(ASKED // 3)]
    found = [timed(partial(search_turns, query, session=session, limit=10)) for query in queries]
    appended = [timed(partial(append, number % 50, words.text())) for number in range(APPENDED)]
    page = Figures.of(pages)
    print(f"{count:,} turns")
    print(f"  page of {PAGE:<27}{page}")
    print(f"  search in a long transcript        {Figures.of(found)}")
    print(f"  append                             {Figures.of(appended)}")
    return page.p95 <= 5


def append(chat: int, text: str) -> None:
    from django.db import transaction

    from memory_app.models import TurnKind
    from memory_app.turns import NewTurn, append_turn

    with transaction.atomic():
        append_turn(address_of(chat), NewTurn(kind=TurnKind.NOTICE, content=text))
