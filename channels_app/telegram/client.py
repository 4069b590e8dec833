"""Calls of the Bot API. Source: protocols/telegram.md, sections 1, 4 and 6.

The token is in every URL, so neither a URL nor the words of httpx, which may show one, leave this file as they are.
"""

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from channels_app.channels import FetchError, ListenError, SendError
from channels_app.http import ANSWER_S, async_client, download, reading, sending
from channels_app.media import spoken_size
from channels_app.telegram.errors import (
    RefusalError,
    StrangeAnswerError,
    listen_error,
    result_of,
    send_error,
)

SHOWN_TOKEN = "<token>"  # noqa: S105 - what stands where the token was

Ask = Callable[..., Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that goes along with a call: in which parameter, and what people see of it."""

    parameter: str
    content: bytes
    name: str
    mime: str = "application/octet-stream"


class TelegramClient:
    """One bot's line to the Bot API. A parameter that is None is left out."""

    def __init__(self, channel: str, *, token: str, base_url: str) -> None:
        self._channel = channel
        self._token = token
        self._base_url = base_url

    def call(self, method: str, /, *, upload: Upload | None = None, **params: Any) -> Any:
        """Call a method from a worker and return its result. Raises `SendError`."""
        given = _given(params)
        with self._redacted(), sending() as http:
            if upload is None:
                response = http.post(self._url(method), json=given)
            else:
                file = (upload.name, upload.content, upload.mime)
                response = http.post(
                    self._url(method), data=_as_form(given), files={upload.parameter: file}
                )
        try:
            return result_of(response.status_code, self._clean(response.content))
        except (RefusalError, StrangeAnswerError) as error:
            raise send_error(error, channel=self._channel) from error

    @asynccontextmanager
    async def listening(self, *, answer_s: float = ANSWER_S) -> AsyncIterator[Ask]:
        """Lend a listener `ask(method, **params)`, which returns the result or raises `ListenError`.

        `answer_s` is for how long the server may be silent: longer than a long poll.
        """
        async with async_client(answer_s=answer_s) as http:

            async def ask(method: str, /, **params: Any) -> Any:
                with self._redacted(), reading():
                    response = await http.post(self._url(method), json=_given(params))
                try:
                    return result_of(response.status_code, self._clean(response.content))
                except (RefusalError, StrangeAnswerError) as error:
                    raise listen_error(error) from error

            yield ask

    def fetch(self, file_id: str, *, limit: int) -> bytes:
        """Download a file of at most `limit` bytes. Raises `FetchError`."""
        try:
            file = self.call("getFile", file_id=file_id)
        except SendError as error:
            raise FetchError(_no_file(error), permanent=error.permanent) from error
        path, size = file.get("file_path"), file.get("file_size")
        if not path:
            raise FetchError("Telegram does not say where the file is", permanent=True)
        if size is not None and size > limit:
            raise FetchError(f"larger than {spoken_size(limit)}", permanent=True)
        return download(f"{self._base_url}/file/bot{self._token}/{quote(path)}", limit=limit)

    def _url(self, method: str) -> str:
        return f"{self._base_url}/bot{self._token}/{method}"

    @contextmanager
    def _redacted(self) -> Iterator[None]:
        """Cut the cause off and the token out of what httpx says."""
        try:
            yield
        except SendError as error:
            raise SendError(self._without_token(error), not_sent=error.not_sent) from None
        except ListenError as error:
            raise ListenError(
                self._without_token(error), status=error.status, wait_s=error.wait_s
            ) from None

    def _without_token(self, error: Exception) -> str:
        return str(error).replace(self._token, SHOWN_TOKEN)

    def _clean(self, content: bytes) -> bytes:
        """What stands between us and the server may repeat the URL in its error."""
        return content.replace(self._token.encode(), SHOWN_TOKEN.encode())


def _no_file(error: SendError) -> str:
    if "file is too big" in str(error):
        return "larger than the 20 MB that Telegram gives to bots"
    return f"Telegram does not give it ({error})"


def _given(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def _as_form(params: dict[str, Any]) -> dict[str, str]:
    """A form knows text only: whatever is none travels as JSON."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in params.items()
    }
