"""A memory with the items of the fixed list, and strangers who hold the same words."""

from memory_app import embedding
from memory_app.embedding import Embedder
from memory_app.scopes import GLOBAL
from tests.memory_app.cast import ALICE, ALICE_ELSEWHERE, GROUP, remember, scope
from tests.memory_app.queries import REMEMBERED

BEFORE = (scope(GROUP), scope(ALICE_ELSEWHERE))


def fill() -> dict[str, int]:
    """Store the fixed list for alice, and for strangers before and after her; return which item is which."""
    items = {}
    for name, content in REMEMBERED.items():
        for stranger in BEFORE:
            remember(stranger, content)
        items[name] = remember(ALICE, content).item.pk
        remember(GLOBAL, content)
    return items


def give_vectors(embedder: Embedder) -> None:
    """Give every item its vector, as the workers would."""
    embedding.keep(embedder.model)
    embedding.wake()
    for pk in embedding.wake_due():
        while embedding.refresh(pk, embedder=embedder):
            pass
