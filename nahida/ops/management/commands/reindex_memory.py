"""The vectors anew, and the words as well."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory_app import embedding, items
from memory_app.embedding import Status
from nahida.agent import embeddings


class Command(BaseCommand):
    help = (
        "Write the search words of all items anew, throw their vectors away and make new ones. For after a change of the "
        "embedding model, or of its size. Searches go by keyword meanwhile."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"words of {items.rewrite_words()} items written anew")
        embedder = embeddings.embedder(within_s=embeddings.ITEMS_S)
        if embedder is None:
            self.stdout.write("no embedding model is configured: memory is searched by keyword")
            return
        index = embedding.reindex(embedder.model)
        while embedding.refresh(index.pk, embedder=embedder):
            self._tell(embeddings.status())
        status = embeddings.status()
        self._tell(status)
        if status.problem or status.waiting:
            raise CommandError(status.problem or "the endpoint failed; it is asked again by itself")

    def _tell(self, status: Status) -> None:
        self.stdout.write(f"{status.embedded} vectors of {status.model}, {status.waiting} wait")
