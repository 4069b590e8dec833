"""An embedder without a model: texts that share words are near one another."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from memory_app.embedding import Embedder
from memory_app.tokens import index_text


class FakeEmbedder:
    """Counts what it was asked; `fails` is raised instead of an answer."""

    def __init__(self, *, model: str = "fake-embedder", dimensions: int = 64) -> None:
        self.model = model
        self.dimensions = dimensions
        self.asked: list[str] = []
        self.fails: Exception | None = None

    def as_embedder(self, *, floor: float = 0.0) -> Embedder:
        return Embedder(self.model, self.embed, floor)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        if self.fails is not None:
            raise self.fails
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = np.full(self.dimensions, 1e-3)  # a text without words has a direction too
        for token in index_text(text).split():
            place = crc32(token.encode())
            vector[place % self.dimensions] += 1.0 if place & 1024 else -1.0
        return [float(value) for value in vector]
