"""The one module that knows httpx: clients with time-outs, and what a failed request means for a message (D4)."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from channels_app.channels import SendError

CONNECT_S = 10.0
ANSWER_S = 30.0  # with CONNECT_S, shorter than the 60 s lease of a delivery that is being sent
# A server that closes an idle connection just as we use it leaves us not knowing whether it read the request.
KEEP_IDLE_S = 3.0

_NEVER_LEFT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

_kept = threading.local()


@contextmanager
def sending() -> Iterator[httpx.Client]:
    """Lend this thread's client for one request. What httpx raises inside becomes a SendError."""
    try:
        yield _client()
    except httpx.TransportError as error:
        raise SendError(
            f"{type(error).__name__}: {error}", not_sent=isinstance(error, _NEVER_LEFT)
        ) from error


def async_client(*, answer_s: float = ANSWER_S) -> httpx.AsyncClient:
    """Return a client for one listener: made, used and closed in one event loop."""
    return httpx.AsyncClient(timeout=_timeout(answer_s), limits=_limits())


def _client() -> httpx.Client:
    # A fork copies the client of the thread that forked, and two processes would share its sockets.
    if getattr(_kept, "pid", None) != os.getpid():
        _kept.pid = os.getpid()
        _kept.client = httpx.Client(timeout=_timeout(ANSWER_S), limits=_limits())
    client: httpx.Client = _kept.client
    return client


def _timeout(answer_s: float) -> httpx.Timeout:
    return httpx.Timeout(answer_s, connect=CONNECT_S)


def _limits() -> httpx.Limits:
    return httpx.Limits(keepalive_expiry=KEEP_IDLE_S)
