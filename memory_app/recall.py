"""What a session is reminded of, and the record of what it was shown (DESIGN 6)."""

from collections.abc import Iterable, Sequence

from django.db.models import Q, QuerySet

from channels_app.addresses import SessionKey
from memory_app.embedding import QueryVector
from memory_app.items import content_hash
from memory_app.models import ItemStatus, MemoryItem, MemoryTurn, RecallReceipt
from memory_app.scopes import Scope, readable
from memory_app.search import Hit, Mode, search


def recall(query: str, *, key: SessionKey, budget: int, vector: QueryVector | None) -> list[Hit]:
    """Return at most `budget` items, those of the session's own chat before shared ones, best match first.

    What both hold in the same words comes once. An untyped key sees shared items only. `vector` is of the same query, None: by
    keyword alone.
    """
    hits: dict[str, Hit] = {}
    for scope in readable(key):
        for hit in search(query, scope=scope, limit=budget, mode=Mode.HYBRID, vector=vector):
            hits.setdefault(hit.item.content_hash or content_hash(hit.item.content), hit)
    return list(hits.values())[: max(budget, 0)]


def keep_receipts(hits: Sequence[Hit], *, turn: MemoryTurn) -> None:
    """Record which items an answer was given with, best match first. What was forgotten meanwhile leaves no record."""
    if not hits:
        return
    shown = MemoryItem.objects.filter(pk__in=[hit.item.pk for hit in hits])
    left = set(shown.exclude(status=ItemStatus.FORGOTTEN).values_list("pk", flat=True))
    RecallReceipt.objects.bulk_create(
        RecallReceipt(
            turn=turn,
            item=hit.item,
            scope_type=hit.item.scope_type,
            score=hit.score,
            mode=hit.mode,
        )
        for hit in hits
        if hit.item.pk in left
    )


def receipts_of(turn: MemoryTurn, *, key: SessionKey) -> QuerySet[RecallReceipt]:
    """Return what an answer was given with, best match first: of that, what the session may still read."""
    receipts = RecallReceipt.objects.filter(_in_one_of(readable(key)), turn=turn)
    shown = receipts.exclude(item__status=ItemStatus.FORGOTTEN)
    return shown.select_related("item__source_turn").order_by("pk")


def _in_one_of(scopes: Iterable[Scope]) -> Q:
    condition = Q()
    for scope in scopes:
        condition |= Q(item__scope_type=scope.scope_type, item__scope_id=scope.scope_id)
    return condition
