"""Memory items, their candidates and vectors: in the scope they had, and held where the old leak would go on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone

from memory_app.items import content_hash
from memory_app.models import ItemStatus, MemoryCandidate, MemoryEmbedding, MemoryItem
from memory_app.scopes import CHAT_KINDS, GLOBAL_ID, GLOBAL_SCOPE
from memory_app.tokens import index_text
from nahida.legacy.importing.ledger import Ledger, batched, unfit
from nahida.legacy.importing.reader import (
    OldFile,
    Row,
    instant,
    json_object,
    json_value,
    kept,
    text,
)
from nahida.legacy.importing.tally import Count, Progress, Tally
from nahida.legacy.models import Source

LATER_COLUMNS = ("parent_id", "root_id", "node_type", "path", "source_id")
ITEM_COLUMNS = (
    "item_id",
    "scope_type",
    "scope_id",
    "kind",
    "title",
    "content",
    "status",
    "confidence",
    "importance",
    "sensitivity",
    "source",
    "evidence_json",
    "metadata_json",
    "created_at",
    "updated_at",
    *LATER_COLUMNS,
)
CANDIDATE_COLUMNS = (
    "candidate_id",
    "scope_type",
    "scope_id",
    "kind",
    "title",
    "content",
    "status",
    "confidence",
    "evidence_json",
    "metadata_json",
    "created_at",
    "updated_at",
)
EMBEDDING_COLUMNS = (
    "embedding_id",
    "item_id",
    "provider_id",
    "model",
    "dimensions",
    "content_hash",
    "embedding_json",
    "created_at",
)
TITLE_LENGTH, KIND_LENGTH, SCOPE_LENGTH, SOURCE_LENGTH = 300, 32, 16, 64
LENGTHS = {
    "title": TITLE_LENGTH,
    "kind": KIND_LENGTH,
    "scope_type": SCOPE_LENGTH,
    "source": SOURCE_LENGTH,
}
LONG_AGO = datetime.min.replace(tzinfo=UTC)
BATCH = 1_000  # rows a transaction


def import_items(
    file: OldFile, source: Source, here: Ledger, tally: Tally, progress: Progress
) -> Ledger:
    count = tally.of("memory items")
    total = file.count("memory_items")
    known = Ledger(source, "item")
    rows = known.missing(file.rows("memory_items", ITEM_COLUMNS), id_in="item_id", count=count)
    for batch in batched(_in_a_scope(rows, count), BATCH):
        items = [_item(row, here) for _, row in batch]
        with transaction.atomic():
            made = MemoryItem.objects.bulk_create(items)
            known.note((old_id, item.pk) for (old_id, _), item in zip(batch, made, strict=True))
        count.imported += len(batch)
        progress("memory items", count.read, total)
    return known


def _in_a_scope(rows: Iterable[tuple[str, Row]], count: Count) -> Iterator[tuple[str, Row]]:
    for old_id, row in rows:
        if not text(row["scope_type"]) or not row["scope_id"]:
            count.skip("it has no scope", old_id)
        elif reason := unfit(str(row["scope_id"])):
            count.skip(f"its scope {reason}", old_id)
        else:
            yield old_id, row


def _item(row: Row, here: Ledger) -> MemoryItem:
    evidence, more = _evidence(row)
    title, content = text(row["title"]), text(row["content"])
    status = row["status"]
    is_global = (row["scope_type"], row["scope_id"]) == (GLOBAL_SCOPE, GLOBAL_ID)
    return MemoryItem(
        scope_type=text(row["scope_type"], SCOPE_LENGTH),
        scope_id=row["scope_id"],
        kind=text(row["kind"], KIND_LENGTH),
        title=text(title, TITLE_LENGTH),
        content=content,
        search_tokens=index_text(f"{title}\n{content}"),
        status=status if status in ItemStatus.values else ItemStatus.ARCHIVED,
        held=is_global and row["kind"] in CHAT_KINDS,
        confidence=_share(row["confidence"], 1.0),
        importance=_share(row["importance"], 0.5),
        sensitivity=text(row["sensitivity"], 16),
        source=text(row["source"], SOURCE_LENGTH),
        evidence=evidence,
        content_hash=content_hash(content),
        source_session_id=here.get(_session_of(row)),
        imported=_imported(row, ("item_id", "status", *LATER_COLUMNS)) | more,
        created_at=instant(row["created_at"]) or timezone.now(),
        updated_at=instant(row["updated_at"]) or timezone.now(),
    )


def _imported(row: Row, names: tuple[str, ...]) -> dict[str, Any]:
    """Return what has no column here, and what is longer than its column."""
    _, as_it_was = json_object(row["metadata_json"])
    found = {name: row[name] for name in names if row[name] is not None}
    for name, length in LENGTHS.items():
        if len(text(row.get(name))) > length:
            found[name] = row[name]
    return {name: kept(value) for name, value in found.items()} | as_it_was


def _evidence(row: Row) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the evidence as a list of objects, and beside it as it was where it is something else."""
    raw = row["evidence_json"]
    found = json_value(raw)
    listed = found if isinstance(found, list) else [found]
    objects = [each for each in listed if isinstance(each, dict)]
    is_all = len(objects) == len(listed) or raw in (None, "null")
    return objects, {} if is_all else {"raw_evidence": text(raw)}


def _session_of(row: Row) -> str:
    """Return the session that an item names as its own, "" if none."""
    for column in ("evidence_json", "metadata_json"):
        named = json_object(row[column])[0].get("session_id")
        if isinstance(named, str) and named:
            return named
    return ""


def _share(value: Any, default: float) -> float:
    return float(value) if isinstance(value, int | float) and value == value else default


def import_candidates(
    file: OldFile, source: Source, here: Ledger, tally: Tally, progress: Progress
) -> None:
    count = tally.of("candidates")
    total = file.count("memory_candidates")
    known = Ledger(source, "candidate")
    rows = known.missing(
        file.rows("memory_candidates", CANDIDATE_COLUMNS), id_in="candidate_id", count=count
    )
    for batch in batched(_in_a_scope(rows, count), BATCH):
        candidates = [_candidate(row, here) for _, row in batch]
        with transaction.atomic():
            made = MemoryCandidate.objects.bulk_create(candidates)
            known.note((old_id, one.pk) for (old_id, _), one in zip(batch, made, strict=True))
        count.imported += len(batch)
        progress("candidates", count.read, total)


def _candidate(row: Row, here: Ledger) -> MemoryCandidate:
    evidence, more = _evidence(row)
    kind, content = text(row["kind"], KIND_LENGTH), text(row["content"])
    return MemoryCandidate(
        scope_type=text(row["scope_type"], SCOPE_LENGTH),
        scope_id=row["scope_id"],
        kind=kind,
        action="archive" if kind == "archive" else "add",
        title=text(row["title"], TITLE_LENGTH),
        content=content,
        status=text(row["status"], 24),
        confidence=_share(row["confidence"], 1.0),
        evidence=evidence,
        content_hash=content_hash(content),
        source_session_id=here.get(_session_of(row)),
        imported=_imported(row, ("candidate_id",)) | more,
        created_at=instant(row["created_at"]) or timezone.now(),
        decided_at=instant(row["updated_at"]),
    )


@dataclass(frozen=True, slots=True)
class _Vector:
    old_id: str
    item: int
    model: str
    content_hash: str
    created_at: datetime | None
    numbers: np.ndarray

    @property
    def age(self) -> datetime:
        return self.created_at or LONG_AGO


def import_embeddings(
    file: OldFile, source: Source, items: Ledger, tally: Tally, progress: Progress
) -> None:
    """Bring the newest vector of each item and model, as a unit vector. One that an item has here already stays."""
    count = tally.of("embeddings")
    total = file.count("memory_embeddings")
    known = Ledger(source, "embedding")
    rows = file.rows("memory_embeddings", EMBEDDING_COLUMNS, by="item_id")
    by_item = groupby(rows, key=itemgetter("item_id"))
    newest = (vector for _, its in by_item for vector in _newest(its, items, count))
    for batch in batched(_to_come(newest, known, count), BATCH):
        _store(batch, known, count)
        progress("embeddings", count.read, total)


def _newest(rows: Iterable[Row], items: Ledger, count: Count) -> Iterable[_Vector]:
    """Return the newest vector of each model of one item."""
    newest: dict[str, _Vector] = {}
    for row in rows:
        count.read += 1
        vector = _vector(row, items, count)
        if vector is None:
            continue
        older, newer = sorted((newest.get(vector.model, vector), vector), key=attrgetter("age"))
        if older is not newer:
            count.skip("a newer one of the same item and model took its place", older.old_id)
        newest[vector.model] = newer
    return newest.values()


def _vector(row: Row, items: Ledger, count: Count) -> _Vector | None:
    old_id = "" if row["embedding_id"] is None else str(row["embedding_id"])
    item, numbers = items.get(row["item_id"]), _numbers(row["embedding_json"])
    if reason := unfit(old_id):
        count.skip(f"its id {reason}", old_id)
    elif item is None:
        count.skip("its item is not here", old_id)
    elif numbers is None:
        count.skip("it is no vector", old_id)
    else:
        return _Vector(
            old_id=old_id,
            item=item,
            model=text(row["model"], 200),
            content_hash=text(row["content_hash"], 64),
            created_at=instant(row["created_at"]),
            numbers=numbers,
        )
    return None


def _to_come(vectors: Iterable[_Vector], known: Ledger, count: Count) -> Iterator[_Vector]:
    for vector in vectors:
        if vector.old_id in known:
            count.there += 1
        else:
            yield vector


def _store(vectors: list[_Vector], known: Ledger, count: Count) -> None:
    there = MemoryEmbedding.objects.filter(item__in={vector.item for vector in vectors})
    with transaction.atomic():
        have = set(there.values_list("item_id", "model"))
        made = [vector for vector in vectors if (vector.item, vector.model) not in have]
        MemoryEmbedding.objects.bulk_create(map(_embedding, made))
        known.note((vector.old_id, vector.item) for vector in made)
    count.imported += len(made)
    for vector in vectors:
        if (vector.item, vector.model) in have:
            count.skip("its item has one of this model here", vector.old_id)


def _embedding(vector: _Vector) -> MemoryEmbedding:
    return MemoryEmbedding(
        item_id=vector.item,
        model=vector.model,
        dimensions=len(vector.numbers),
        content_hash=vector.content_hash,
        vector=vector.numbers.astype("<f4").tobytes(),
        created_at=vector.created_at or timezone.now(),
    )


def _numbers(raw: Any) -> np.ndarray | None:
    """Return a unit vector; None for what has no direction."""
    try:
        numbers = np.array(json_value(raw), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    largest = float(np.abs(numbers).max()) if numbers.ndim == 1 and len(numbers) else 0.0
    if not np.isfinite(largest) or not largest:
        return None
    return numbers / largest / np.linalg.norm(numbers / largest)
