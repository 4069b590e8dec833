"""Vectors of items: float32, of unit length, of one model at a time. The caller brings the model (DESIGN 6).

The one VectorIndex row says which model and size the vectors have, and carries wake-up and lease like every row that a worker
claims. Under its token the items of all scopes that lack a vector get one; no transaction is open while the model is asked. Another
model, or another size, is never mixed in: the work stops with the reason, search goes on by keyword, `reindex` begins anew.
"""

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from channels_app.clock import DbNow
from memory_app.models import ItemQuerySet, MemoryEmbedding, MemoryItem, VectorIndex

logger = logging.getLogger(__name__)

LEASE: Final = timedelta(minutes=3)  # longer than one request to a model may take
WAKE_AGAIN_AFTER: Final = timedelta(seconds=30)
BATCH: Final = 64  # texts of one request
MOST_BATCHES: Final = 20  # of one task: the next one goes on
TEXT_CHARS: Final = 6_000  # of an item that are read; models take some 8,000 tokens
LONGEST_BACK_OFF_S: Final = 3_600
MEND: Final = "run manage.py reindex_memory"


class EmbedError(Exception):
    """No vectors. `refused`: because of a text among them, so that others may do."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class _LostError(Exception):
    """Somebody else holds the index now."""


class _ChangedError(Exception):
    """The vectors that are there cannot be compared with those that the model gives now."""


@dataclass(frozen=True, slots=True)
class Embedder:
    """`embed` returns one vector for each text, or raises EmbedError. An item whose cosine is below `floor` is unrelated."""

    model: str
    embed: Callable[[Sequence[str]], Sequence[Sequence[float]]]
    floor: float = 0.0


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The unit vector of a query. An item less similar than `floor` (a cosine) is unrelated."""

    model: str
    values: np.ndarray
    floor: float = 0.0


@dataclass(frozen=True, slots=True)
class Status:
    """How the vectors fare, for health pages. `waiting` items are found by keyword meanwhile."""

    model: str = ""
    dimensions: int | None = None
    embedded: int = 0
    waiting: int = 0
    problem: str = ""


def query_vector(text: str, *, embedder: Embedder | None) -> QueryVector | None:
    """Return the vector to search with; None, for a search by keyword, if there is no model, no answer or nothing to compare with."""
    index = VectorIndex.objects.first()
    if embedder is None or index is None or index.model != embedder.model or not text.strip():
        return None
    try:
        [values] = _asked(embedder, [text[:TEXT_CHARS]])
    except EmbedError as error:
        logger.warning("memory is searched by keyword alone: %s", error)
        return None
    return (
        None
        if len(values) != index.dimensions
        else QueryVector(index.model, values, embedder.floor)
    )


def keep(model: str) -> None:
    """See to it that there is an index, and that it is awake while items wait. Another model's index is left as it is."""
    index, _ = VectorIndex.objects.get_or_create(pk=1, defaults={"model": model})
    if (
        index.model == model
        and index.wake_at is None
        and not index.error
        and _missing(index).exists()
    ):
        wake()


def wake() -> None:
    """Let a worker look for items without a vector. Where no model was ever configured there is no row, and nothing happens."""
    VectorIndex.objects.filter(wake_at=None, error="").update(wake_at=DbNow(), woken_at=None)


def wake_due() -> list[int]:
    """Mark the index as woken if it is due and nobody is at it; a lost wake-up is repeated after a while."""
    asleep = Q(woken_at=None) | Q(woken_at__lt=DbNow() - WAKE_AGAIN_AFTER)
    due = _free().filter(asleep)
    return [
        pk for pk in due.values_list("pk", flat=True) if due.filter(pk=pk).update(woken_at=DbNow())
    ]


def refresh(index_id: int, *, embedder: Embedder) -> bool:
    """Give vectors to items of all scopes that have none. True if there is more to do now."""
    token = uuid.uuid4()
    if not _free().filter(pk=index_id).update(token=token, lease_until=DbNow() + LEASE):
        return False
    mine = VectorIndex.objects.filter(pk=index_id, token=token)
    try:
        is_done = _fill(mine, embedder)
    except _LostError:
        return False
    except _ChangedError as error:
        mine.update(token=None, wake_at=None, woken_at=None, error=str(error))
        return False
    except EmbedError as error:
        _put_off(mine, error)
        return False
    return _let_go(mine, is_done=is_done)


def sleep(index_id: int) -> None:
    """End the wake-ups of an index for which no model is configured any more."""
    _free().filter(pk=index_id).update(wake_at=None, woken_at=None)


def reindex(model: str) -> VectorIndex:
    """Throw all vectors away and begin anew with `model`. Whoever is at work on the old ones may store nothing more."""
    with transaction.atomic():
        MemoryEmbedding.objects.all().delete()
        index, _ = VectorIndex.objects.update_or_create(
            pk=1,
            defaults={
                "model": model,
                "dimensions": None,
                "token": None,
                "wake_at": DbNow(),
                "woken_at": None,
                "failures": 0,
                "error": "",
            },
        )
        return index


def status(model: str) -> Status:
    """Return how the vectors fare when `model` ("": none) is configured. Three queries."""
    index = VectorIndex.objects.first()
    if not model or index is None:
        return Status(model=model)
    embedded = MemoryEmbedding.objects.filter(model=index.model, dimensions=index.dimensions or 0)
    return Status(
        index.model,
        index.dimensions,
        embedded.count(),
        _missing(index).count(),
        _changed(index, model) or index.error,
    )


def _changed(index: VectorIndex, model: str) -> str:
    if index.model == model:
        return ""
    return f"the vectors are of {index.model}, {model} is configured: {MEND}"


def _free() -> QuerySet[VectorIndex]:
    free = Q(token=None) | Q(lease_until__lt=DbNow())
    return VectorIndex.objects.filter(free, wake_at__lte=DbNow())


def _missing(index: VectorIndex) -> ItemQuerySet:
    """Select what may be recalled and has no vector that is compared with a query's. It has something to say."""
    there = MemoryEmbedding.objects.filter(item=OuterRef("pk"), model=index.model)
    if index.dimensions is not None:
        there = there.filter(dimensions=index.dimensions)
    return MemoryItem.objects.recallable().exclude(title="", content="").filter(~Exists(there))


def _fill(mine: QuerySet[VectorIndex], embedder: Embedder) -> bool:
    """Fill in vectors, oldest item first; False if time is up before all have one."""
    after = 0
    for _ in range(MOST_BATCHES):
        index = mine.first()
        if index is None:
            raise _LostError
        if index.model != embedder.model:
            raise _ChangedError  # `status` says so for as long as it is so
        items = list(_missing(index).filter(pk__gt=after).order_by("pk")[:BATCH])
        if not items:
            return True
        _store(mine, index, items, _vectors(mine, embedder, items))
        after = items[-1].pk
    return False


def _vectors(
    mine: QuerySet[VectorIndex], embedder: Embedder, items: Sequence[MemoryItem]
) -> list[np.ndarray | None]:
    """Return a vector for each item, None where the model refuses its text; somebody must have got one."""
    try:
        return [*_asked(embedder, [_text(item) for item in items])]
    except EmbedError as error:
        if not error.refused or len(items) == 1:
            raise
        refusal = error
    vectors: list[np.ndarray | None] = []
    for item in items:
        with _held(mine):
            pass  # one by one takes long
        try:
            vectors += _asked(embedder, [_text(item)])
        except EmbedError as error:
            if not error.refused:
                raise
            vectors.append(None)
    if all(vector is None for vector in vectors):
        raise refusal
    return vectors


def _asked(embedder: Embedder, texts: Sequence[str]) -> list[np.ndarray]:
    vectors = [np.asarray(vector, dtype=np.float64) for vector in embedder.embed(texts)]
    if len(vectors) != len(texts):
        raise EmbedError(f"{embedder.model} gave {len(vectors)} vectors for {len(texts)} texts")
    return [_unit(vector, embedder.model) for vector in vectors]


def _unit(vector: np.ndarray, model: str) -> np.ndarray:
    length = float(np.linalg.norm(vector)) if vector.ndim == 1 and vector.size else 0.0
    if not np.isfinite(length) or length == 0.0:
        raise EmbedError(f"{model} gave a vector without a direction")
    return (vector / length).astype("<f4")


def _text(item: MemoryItem) -> str:
    return f"{item.title}\n{item.content}".strip()[:TEXT_CHARS]


def _store(
    mine: QuerySet[VectorIndex],
    index: VectorIndex,
    items: Sequence[MemoryItem],
    vectors: Sequence[np.ndarray | None],
) -> None:
    size = next(len(vector) for vector in vectors if vector is not None)
    if index.dimensions not in (None, size):
        raise _ChangedError(
            f"the vectors of {index.model} had {index.dimensions} numbers and have {size} now: {MEND}"
        )
    with _held(mine):
        mine.update(dimensions=size, failures=0)
        # What was edited, moved away or forgotten meanwhile waits for a vector of its own.
        same = MemoryItem.objects.recallable().filter(pk__in=[item.pk for item in items])
        versions = dict(same.select_for_update().values_list("pk", "version"))
        nothing = np.zeros(size, dtype="<f4")  # nearest to nobody, and not asked for again
        MemoryEmbedding.objects.bulk_create(
            (
                MemoryEmbedding(
                    item=item,
                    model=index.model,
                    dimensions=size,
                    content_hash=item.content_hash,
                    vector=(nothing if vector is None else vector).tobytes(),
                )
                for item, vector in zip(items, vectors, strict=True)
                if versions.get(item.pk) == item.version
            ),
            update_conflicts=True,
            unique_fields=["item", "model"],
            update_fields=["dimensions", "content_hash", "vector", "created_at"],
        )


@contextmanager
def _held(mine: QuerySet[VectorIndex]) -> Iterator[None]:
    """Write as the holder of the token, or not at all; the lease begins anew."""
    with transaction.atomic():
        if not mine.update(lease_until=DbNow() + LEASE):
            raise _LostError
        yield


def _put_off(mine: QuerySet[VectorIndex], error: EmbedError) -> None:
    index = mine.first()
    if index is None:
        return
    pause = timedelta(seconds=min(5 * 2 ** min(index.failures, 12), LONGEST_BACK_OFF_S))
    logger.warning("items get no vectors, tried again in %s: %s", pause, error)
    mine.update(token=None, woken_at=None, wake_at=DbNow() + pause, failures=F("failures") + 1)


def _let_go(mine: QuerySet[VectorIndex], *, is_done: bool) -> bool:
    """Let the index sleep if nothing is missing. A row that comes after this look is found by `keep`."""
    index = mine.first()
    if index is None:
        return False
    if is_done and not _missing(index).exists():
        mine.update(token=None, wake_at=None, woken_at=None)
        return False
    mine.update(token=None, woken_at=None)
    return True
