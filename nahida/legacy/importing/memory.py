"""Memory items, their candidates and vectors: in the scope they had, and held where the old leak would go on."""

import json
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone

from channels_app.addresses import MAX_KEY_BYTES
from channels_app.messages import storable
from memory_app.items import content_hash
from memory_app.models import ItemStatus, MemoryCandidate, MemoryEmbedding, MemoryItem
from memory_app.scopes import CHAT_KINDS, GLOBAL_ID, GLOBAL_SCOPE
from memory_app.tokens import index_text
from nahida.legacy.importing.ledger import Ledger, Sessions
from nahida.legacy.importing.reader import OldFile, Row, instant, json_object
from nahida.legacy.importing.tally import Tally
from nahida.legacy.models import Source

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
    "parent_id",
    "root_id",
    "node_type",
    "path",
    "source_id",
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
BATCH = 1_000  # items a transaction
NO_SCOPE = "it has no scope"


def import_items(file: OldFile, source: Source, here: Sessions, tally: Tally) -> Ledger:
    count = tally.of("memory items")
    known = Ledger(source, "item")
    batch: list[tuple[str, MemoryItem]] = []
    for row in file.rows("memory_items", ITEM_COLUMNS):
        count.read += 1
        old_id = str(row["item_id"] or "")
        if old_id in known:
            count.there += 1
        elif reason := _unscoped(row):
            count.skip(reason, old_id)
        else:
            batch.append((old_id, _item(row, here)))
            count.imported += 1
        if len(batch) == BATCH:
            _store(batch, known)
            batch = []
    _store(batch, known)
    return known


def _store(batch: list[tuple[str, MemoryItem]], known: Ledger) -> None:
    with transaction.atomic():
        made = MemoryItem.objects.bulk_create([item for _, item in batch])
        known.note((old_id, item.pk) for (old_id, _), item in zip(batch, made, strict=True))


def _unscoped(row: Row) -> str:
    scope_id = str(row["scope_id"] or "")
    if not row["scope_type"] or not scope_id:
        return NO_SCOPE
    return "its scope is too long" if len(scope_id.encode()) > MAX_KEY_BYTES else ""


def _item(row: Row, here: Sessions) -> MemoryItem:
    _, kept = json_object(row["metadata_json"])
    evidence, raw = _evidence(row["evidence_json"])
    title, content = storable(str(row["title"] or "")), storable(str(row["content"] or ""))
    status = str(row["status"] or "")
    is_global = (row["scope_type"], row["scope_id"]) == (GLOBAL_SCOPE, GLOBAL_ID)
    return MemoryItem(
        scope_type=storable(str(row["scope_type"]))[:16],
        scope_id=storable(str(row["scope_id"])),
        kind=storable(str(row["kind"] or ""))[:32],
        title=title[:300],
        content=content,
        search_tokens=index_text(f"{title}\n{content}"),
        status=status if status in ItemStatus.values else ItemStatus.ARCHIVED,
        held=is_global and row["kind"] in CHAT_KINDS,
        confidence=_share(row["confidence"], 1.0),
        importance=_share(row["importance"], 0.5),
        sensitivity=storable(str(row["sensitivity"] or ""))[:16],
        source=storable(str(row["source"] or ""))[:64],
        evidence=evidence,
        content_hash=content_hash(content),
        source_session_id=here.get(_session_of(row)),
        imported={
            **_rest(row, ("item_id", "status", *ITEM_COLUMNS[15:])),
            **kept,
            **raw,
            **({"title": title} if len(title) > 300 else {}),
        },
        created_at=instant(row["created_at"]) or timezone.now(),
        updated_at=instant(row["updated_at"]) or timezone.now(),
    )


def _evidence(raw: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the evidence as a list, and as it was where it is neither object nor list."""
    try:
        found = json.loads(raw) if isinstance(raw, str) else None
    except ValueError:
        return [], {"raw_evidence": raw}
    if isinstance(found, dict):
        return [found], {}
    if isinstance(found, list):
        return found, {}
    return [], {} if found is None else {"raw_evidence": raw}


def _session_of(row: Row) -> str:
    """Return the session that an item names as its own, "" if none."""
    for column in ("evidence_json", "metadata_json"):
        named = json_object(row[column])[0].get("session_id")
        if isinstance(named, str) and named:
            return named
    return ""


def _share(value: Any, default: float) -> float:
    return float(value) if isinstance(value, int | float) and value == value else default


def _rest(row: Row, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in names if row[name] is not None}


def import_candidates(file: OldFile, source: Source, here: Sessions, tally: Tally) -> None:
    count = tally.of("candidates")
    known = Ledger(source, "candidate")
    for row in file.rows("memory_candidates", CANDIDATE_COLUMNS):
        count.read += 1
        old_id = str(row["candidate_id"] or "")
        if old_id in known:
            count.there += 1
        elif reason := _unscoped(row):
            count.skip(reason, old_id)
        else:
            with transaction.atomic():
                candidate = MemoryCandidate.objects.create(**_candidate(row, here))
                known.note([(old_id, candidate.pk)])
            count.imported += 1


def _candidate(row: Row, here: Sessions) -> dict[str, Any]:
    _, kept = json_object(row["metadata_json"])
    evidence, raw = _evidence(row["evidence_json"])
    kind = storable(str(row["kind"] or ""))[:32]
    return {
        "scope_type": storable(str(row["scope_type"]))[:16],
        "scope_id": storable(str(row["scope_id"])),
        "kind": kind,
        "action": "archive" if kind == "archive" else "add",
        "title": storable(str(row["title"] or ""))[:300],
        "content": storable(str(row["content"] or "")),
        "status": storable(str(row["status"] or ""))[:24],
        "confidence": _share(row["confidence"], 1.0),
        "evidence": evidence,
        "content_hash": content_hash(str(row["content"] or "")),
        "source_session_id": here.get(_session_of(row)),
        "imported": {"candidate_id": row["candidate_id"], **kept, **raw},
        "created_at": instant(row["created_at"]) or timezone.now(),
        "decided_at": instant(row["updated_at"]),
    }


def import_embeddings(file: OldFile, source: Source, items: Ledger, tally: Tally) -> None:
    """Bring the newest vector of each item and model, as a unit vector."""
    count = tally.of("embeddings")
    known = Ledger(source, "embedding")
    made: dict[tuple[int, str], str] = {}
    for row in file.rows("memory_embeddings", EMBEDDING_COLUMNS):
        count.read += 1
        old_id = str(row["embedding_id"] or "")
        if old_id in known:
            count.there += 1
            continue
        pk, vector = items.get(row["item_id"]), _vector(row["embedding_json"])
        if pk is None:
            count.skip("its item is not here", old_id)
        elif vector is None:
            count.skip("it is no vector", old_id)
        else:
            place = pk, storable(str(row["model"] or ""))[:200]
            with transaction.atomic():
                _keep(row, *place, vector)
                known.note([(old_id, pk)])
            if (older := made.get(place)) is not None:
                count.imported -= 1
                count.skip("a newer one of the same item and model took its place", older)
            made[place] = old_id
            count.imported += 1


def _keep(row: Row, pk: int, model: str, vector: np.ndarray) -> None:
    MemoryEmbedding.objects.update_or_create(
        item_id=pk,
        model=model,
        defaults={
            "dimensions": len(vector),
            "content_hash": storable(str(row["content_hash"] or ""))[:64],
            "vector": vector.astype("<f4").tobytes(),
            "created_at": instant(row["created_at"]) or timezone.now(),
        },
    )


def _vector(raw: Any) -> np.ndarray | None:
    try:
        numbers = np.array(json.loads(raw), dtype=np.float64)
    except (TypeError, ValueError):
        return None
    length = float(np.linalg.norm(numbers)) if numbers.ndim == 1 and len(numbers) else 0.0
    return numbers / length if np.isfinite(length) and length else None
