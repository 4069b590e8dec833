"""Calls of a protocol end and its stream of events. Source: protocols/milky.md, sections 2 to 4.

The token travels in a header only: URLs end up in logs.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from httpx_sse import EventSource, ServerSentEvent, aconnect_sse

from channels_app.channels import FetchError, ListenError, SendError
from channels_app.http import (
    ANSWER_S,
    CONNECT_S,
    AsyncClient,
    async_client,
    download,
    reading,
    sending,
)
from channels_app.milky.errors import (
    RefusalError,
    StrangeAnswerError,
    data_of,
    listen_error,
    send_error,
)

logger = logging.getLogger(__name__)

Event = dict[str, Any]

EVENT_NAME = "milky_event"
# Connect, read, write, pool: nothing need happen on a stream, for however long.
_STREAM_S = (CONNECT_S, None, ANSWER_S, CONNECT_S)


@dataclass(frozen=True, slots=True)
class End:
    """Where a protocol end is, and what it wants to see. `base_url` keeps its path; "" is no token."""

    base_url: str
    token: str = field(repr=False)

    def api(self, name: str) -> str:
        return f"{self.base_url.rstrip('/')}/api/{name}"

    @property
    def events(self) -> str:
        return f"{self.base_url.rstrip('/')}/event"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


class MilkyClient:
    """The line to one account's protocol end. A parameter that is None is left out."""

    def __init__(self, *, base_url: str, token: str) -> None:
        self._end = End(base_url, token)

    def call(self, api: str, /, **params: Any) -> dict[str, Any]:
        """Call an API from a worker and return its data.

        Raises `SendError`; if the end refused, its cause is the `RefusalError` that has the code.
        """
        with sending() as http:
            response = http.post(self._end.api(api), json=_given(params), headers=self._end.headers)
        try:
            return data_of(response.status_code, response.content)
        except (RefusalError, StrangeAnswerError) as error:
            raise send_error(error) from error

    def fetch(self, api: str, /, *, limit: int, **params: Any) -> bytes:
        """Ask an API where a file is and download it, at most `limit` bytes. Raises `FetchError`.

        Others than the protocol end hand it out, so the token does not go along.
        """
        try:
            data = self.call(api, **params)
        except SendError as error:
            raise FetchError(
                f"the protocol end does not say where it is ({error})", permanent=error.permanent
            ) from error
        url = data.get("url") or data.get("download_url")
        if not isinstance(url, str):  # an end gives "" for what it cannot resolve
            raise FetchError("the protocol end does not know where it is", permanent=True)
        return download(url, limit=limit)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Line"]:
        """Lend a listener its line, to be used in one event loop."""
        async with async_client() as http:
            yield Line(self._end, http)


class Line:
    """What a listener asks and hears. All of it raises `ListenError`."""

    def __init__(self, end: End, http: AsyncClient) -> None:
        self._end = end
        self._http = http

    async def ask(self, api: str, /, **params: Any) -> dict[str, Any]:
        """Call an API and return its data."""
        with reading():
            response = await self._http.post(
                self._end.api(api), json=_given(params), headers=self._end.headers
            )
        try:
            return data_of(response.status_code, response.content)
        except (RefusalError, StrangeAnswerError) as error:
            raise listen_error(error) from error

    @asynccontextmanager
    async def events(self, *, silence_s: float) -> AsyncIterator[AsyncIterator[Event | None]]:
        """Open the stream of events: what happens from now on is not missed.

        It yields events for ever, and None whenever there was none for `silence_s`: nothing in the protocol tells a quiet stream
        from a dead one.
        """
        async with AsyncExitStack() as stack:
            with reading():
                source = await stack.enter_async_context(
                    aconnect_sse(
                        self._http,
                        "GET",
                        self._end.events,
                        headers=self._end.headers,
                        timeout=_STREAM_S,
                    )
                )
            if source.response.status_code != 200:
                raise listen_error(StrangeAnswerError(source.response.status_code))
            heard = await stack.enter_async_context(aclosing(_heard(source)))
            yield await stack.enter_async_context(aclosing(_or_silence(heard, silence_s)))


async def _heard(source: EventSource) -> AsyncGenerator[Event]:
    with reading():
        async for told in source.aiter_sse():
            event = _event(told)
            if event is not None:
                yield event
    raise ListenError("the protocol end closed the stream of events", status="unreachable")


def _event(told: ServerSentEvent) -> Event | None:
    if told.event != EVENT_NAME:
        return None
    try:
        event = json.loads(told.data)
    except (ValueError, RecursionError):
        event = None
    if isinstance(event, dict):
        return event
    logger.warning("an event of %d characters cannot be read", len(told.data))
    return None


async def _or_silence(
    heard: AsyncGenerator[Event], silence_s: float
) -> AsyncGenerator[Event | None]:
    while True:
        coming = asyncio.ensure_future(anext(heard))
        try:
            while not (await asyncio.wait({coming}, timeout=silence_s))[0]:
                yield None
        finally:
            if not coming.done():
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
        yield coming.result()


def _given(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
