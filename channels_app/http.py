"""The one module that knows httpx: clients with time-outs, and what a failed request means for a message (D4)."""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx

from channels_app.channels import FetchError, ListenError, SendError
from channels_app.media import spoken_size

CONNECT_S = 10.0
ANSWER_S = 30.0  # with CONNECT_S, shorter than the 60 s lease of a delivery that is being sent
# A server that closes an idle connection just as we use it leaves us not knowing whether it read the request.
KEEP_IDLE_S = 3.0
DOWNLOAD_S = 60.0  # for a whole file, however steadily its server drips

AsyncClient = httpx.AsyncClient

_LATER = (408, 425, 429)

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


@contextmanager
def reading() -> Iterator[None]:
    """What httpx raises inside, where a listener asks its platform, becomes a ListenError."""
    try:
        yield
    except httpx.RequestError as error:
        raise ListenError(
            f"the platform did not answer as it should ({type(error).__name__}: {error})",
            status="unreachable",
        ) from error


def download(url: str, *, limit: int, headers: Mapping[str, str] | None = None) -> bytes:
    """Return the file behind a URL, of at most `limit` bytes.

    Raises `FetchError`, whose words never show the URL: it may hold a token.
    """
    plain = {"Accept-Encoding": "identity", **(headers or {})}  # what is packed small may be huge
    try:
        with _client().stream("GET", url, headers=plain, follow_redirects=True) as response:
            return _content(response, limit=limit)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise FetchError("its address is not a web address", permanent=True) from error
    except httpx.RequestError as error:
        kind = type(error).__name__
        raise FetchError(f"the server that has it did not answer as it should ({kind})") from error


def _content(response: httpx.Response, *, limit: int) -> bytes:
    status = response.status_code
    if not response.is_success:
        passing = status >= 500 or status in _LATER
        raise FetchError(f"the server that has it answered {status}", permanent=not passing)
    ends = time.monotonic() + DOWNLOAD_S
    announced = response.headers.get("Content-Length", "")
    content = bytearray()
    if announced.isdecimal() and int(announced) > limit:
        raise _too_large(limit)
    for piece in response.iter_bytes():
        content += piece
        if len(content) > limit:
            raise _too_large(limit)
        if time.monotonic() > ends:
            raise FetchError(f"it took longer than {DOWNLOAD_S:.0f} seconds")
    return bytes(content)


def _too_large(limit: int) -> FetchError:
    return FetchError(f"larger than {spoken_size(limit)}", permanent=True)


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
