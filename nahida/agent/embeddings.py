"""The embedding endpoint of the configuration: any server that speaks OpenAI's embeddings, or none."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

import openai
from django.conf import settings

from memory_app import embedding
from memory_app.embedding import Embedder, EmbedError, QueryVector
from nahida.agent.openai.errors import provider_error
from nahida.config import Memory

QUERY_S = 5.0  # somebody waits for an answer, and there is the search by keyword
ITEMS_S = 60.0


def embedder(*, within_s: float) -> Embedder | None:
    """Return the configured embedder, whose requests may take so long each; None if there is none."""
    memory: Memory = settings.NAHIDA.memory
    if not memory.embedding_model:
        return None

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return _embed(memory, texts, within_s=within_s)

    return Embedder(memory.embedding_model, embed, memory.embedding_floor)


def query_vector(text: str) -> QueryVector | None:
    """Return the vector of a query, None for a search by keyword. Asks the endpoint: no transaction may be open."""
    return embedding.query_vector(text, embedder=embedder(within_s=QUERY_S))


def refresh(index_id: int) -> bool:
    """Give vectors to items that have none; True if there is more to do now."""
    configured = embedder(within_s=ITEMS_S)
    if configured is None:
        embedding.sleep(index_id)
        return False
    return embedding.refresh(index_id, embedder=configured)


def keep() -> None:
    """Once a minute: see to it that every item gets its vector."""
    memory: Memory = settings.NAHIDA.memory
    if memory.embedding_model:
        embedding.keep(memory.embedding_model)


def status() -> embedding.Status:
    memory: Memory = settings.NAHIDA.memory
    return embedding.status(memory.embedding_model)


def _embed(memory: Memory, texts: Sequence[str], *, within_s: float) -> list[list[float]]:
    client = _client(memory, os.getpid())
    try:
        # The SDK asks for base64 by itself, which not every server knows.
        answer = client.with_options(timeout=within_s).embeddings.create(
            model=memory.embedding_model, input=list(texts), encoding_format="float"
        )
        in_order = sorted(answer.data, key=lambda entry: getattr(entry, "index", None) or 0)
        return [list(map(float, entry.embedding)) for entry in in_order]
    except openai.APIStatusError as error:
        raise _refusal(memory, error) from error
    except openai.OpenAIError as error:
        cause = error.__cause__ or error
        raise EmbedError(f"{memory.embedding_url} cannot be reached: {cause}") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise EmbedError(f"{memory.embedding_url} gave no vectors: {error!r}") from error


def _refusal(memory: Memory, error: openai.APIStatusError) -> EmbedError:
    try:
        body = json.loads(error.response.text)
    except ValueError:
        body = error.response.text
    found = provider_error(memory.embedding_model, body, status=error.status_code)
    return EmbedError(str(found), refused=found.kind in ("refused", "too_long"))


@lru_cache(maxsize=2)
def _client(memory: Memory, pid: int) -> openai.OpenAI:
    """Return the client of this process: sockets must not be shared with the one it was forked from."""
    loopback = urlsplit(memory.embedding_url).hostname in ("127.0.0.1", "::1", "localhost")
    return openai.OpenAI(
        base_url=memory.embedding_url,
        api_key=memory.embedding_api_key.get_secret_value() or "none",  # local servers want one
        max_retries=1,
        http_client=openai.DefaultHttpxClient(
            trust_env=not loopback
        ),  # no proxy to one's own machine
    )
