"""A Milky protocol end on loopback, as strict as the protocol; nothing of it knows our client.

with MilkyEnd() as end:
    end.world.friend_says(10001, "hello")       # reported to every open stream, lost if there is none
    end.fail("send_group_message", faults.dropped(after_effect=True), times=2)
    end.world.seen("friend", 10001)             # what the account wrote, as a person sees it
"""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
import weakref
from collections import defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from tests.fakes.milky.account import Account, Refusal, answer
from tests.fakes.milky.events import Event
from tests.fakes.milky.faults import Fault
from tests.fakes.milky.params import TAKES
from tests.fakes.milky.serving import Handler
from tests.fakes.milky.streams import Stream
from tests.fakes.milky.versions import APIS_SINCE, Version, in_words_of
from tests.fakes.milky.world import World

PATIENCE_S = 20  # of tests; nothing that works takes long


@dataclass(frozen=True, slots=True)
class Call:
    """One request to an API. `params` is None if its body was never read; `retcode` is None without an envelope of ours."""

    api: str
    params: Any
    authorization: str | None
    status: int
    retcode: int | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """One request for events."""

    authorization: str | None
    token_in_query: bool
    status: int


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, end: MilkyEnd) -> None:
        super().__init__(("127.0.0.1", port), type("Bound", (Handler,), {"end": end}))
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    def get_request(self) -> tuple[socket.socket, Any]:
        accepted, address = super().get_request()
        self._sockets.add(accepted)
        return accepted, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client may leave in the middle of a stream

    def stop(self) -> None:
        """Listen no more, and hang up on everybody."""
        self.shutdown()
        self.server_close()
        self._thread.join()
        for accepted in list(self._sockets):
            with suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)


class MilkyEnd:
    """`token` "" asks nobody for one. `is_pretty`: an event's JSON is spread over many lines."""

    def __init__(
        self,
        *,
        token: str = "example-token",
        prefix: str = "",
        version: Version = "1.2",
        webhook_token: str = "",
        is_pretty: bool = True,
    ) -> None:
        self.token = token
        self.prefix = prefix
        self.webhook_token = webhook_token
        self.is_pretty = is_pretty
        self.calls: list[Call] = []
        self.opened: list[Opened] = []
        self.downloads: list[dict[str, str]] = []  # the headers of each
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._streams: list[Stream] = []
        self._changed = threading.Condition()
        self.stopping = threading.Event()
        self._server = _Server(0, self)
        self.port: int = self._server.server_address[1]
        self.world = World(self.emit, version=version, base_url=self.base_url)
        self.account = Account(self.world)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stopping.set()
        self._server.stop()

    def go_down(self) -> None:
        """Be unreachable, with all it knows, until it comes up at the same port."""
        self._server.stop()
        self.wait_for_no_stream()

    def come_up(self) -> None:
        self._server = _Server(self.port, self)

    # What it was asked

    def asked(self, api: str) -> list[Any]:
        """Return the parameters of every call of an API, oldest first."""
        return [call.params for call in list(self.calls) if call.api == api]

    def fail(self, api: str, fault: Fault, *, times: int = 1) -> None:
        """Let the next calls go wrong; "event" is the stream of events."""
        self._faults[api].extend([fault] * times)

    # What it reports

    def emit(self, event: Event) -> int:
        """Send an event down every open stream; returns how many there are."""
        spoken = in_words_of(self.world.version, event)
        text = json.dumps(spoken, ensure_ascii=False, indent=1 if self.is_pretty else None)
        lines = "".join(f"data: {line}\n" for line in text.split("\n"))
        return self.emit_raw(f"event: milky_event\n{lines}\n".encode())

    def emit_raw(self, piece: bytes) -> int:
        """Send bytes down every open stream: a comment, an event of another name, rubbish."""
        with self._changed:
            for stream in self._streams:
                stream.put(piece)
            return len(self._streams)

    def cut(self, *, cleanly: bool = False) -> None:
        """Break every stream, or close it as HTTP would have it."""
        with self._changed:
            for stream in self._streams:
                stream.ends_cleanly = cleanly
                stream.end()
            self._streams.clear()
            self._changed.notify_all()

    def go_silent(self) -> None:
        """Leave every stream that is open now without a word, for ever."""
        with self._changed:
            for stream in self._streams:
                stream.is_silent = True

    def wait_for_stream(self, *, opened: int = 1) -> None:
        """Wait until that many streams were ever opened, and one of them is still open."""
        self._wait(
            lambda: sum(one.status == 200 for one in self.opened) >= opened and self._streams
        )

    def wait_for_no_stream(self) -> None:
        self._wait(lambda: not self._streams)

    def wait_for_call(self, api: str, *, times: int = 1) -> None:
        """Wait until an API was called that often, whatever came of it."""
        self._wait(lambda: len(self.asked(api)) >= times)

    def _wait(self, is_so: Any) -> None:
        with self._changed:
            assert self._changed.wait_for(is_so, timeout=PATIENCE_S), "it never came to that"

    def webhook(self, event: Event) -> tuple[bytes, dict[str, str]]:
        """Return body and headers of the request that reports an event."""
        spoken = in_words_of(self.world.version, event)
        headers = {"Content-Type": "application/json"}
        if self.webhook_token:
            headers["Authorization"] = f"Bearer {self.webhook_token}"
        return json.dumps(spoken, ensure_ascii=False).encode(), headers

    def post(self, url: str, event: Event) -> int:
        """Report an event to a webhook, once; returns the HTTP status of its answer, HTTPError if it is none of 2xx."""
        body, headers = self.webhook(event)
        request = urllib.request.Request(url, data=body, headers=headers, method="POST")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answered:
            status: int = answered.status
        return status

    # How it serves

    def note_call(self, *call: Any) -> None:
        with self._changed:
            self.calls.append(Call(*call))
            self._changed.notify_all()

    def open(self, authorization: str | None, token_in_query: bool, status: int) -> Stream | None:
        """Note that someone asked for events, and open a stream if all is well."""
        stream = Stream() if status == 200 else None
        with self._changed:
            self.opened.append(Opened(authorization, token_in_query, status))
            if stream:
                self._streams.append(stream)
            self._changed.notify_all()
        return stream

    def close(self, stream: Stream) -> None:
        with self._changed:
            if stream in self._streams:
                self._streams.remove(stream)
            self._changed.notify_all()

    def next_fault(self, api: str) -> Fault | None:
        faults = self._faults[api]
        return faults.popleft() if faults else None

    def knows(self, api: str) -> bool:
        return api in TAKES and APIS_SINCE.get(api, "1.1") <= self.world.version

    def do(self, api: str, body: Any) -> dict[str, Any]:
        """Return the envelope."""
        try:
            if not self.world.is_logged_in:
                raise Refusal(-403, "Bot is not logged in")
            checked = TAKES[api].model_validate(body)
            data = answer(self.account, api, checked, self.world)
        except ValidationError as error:
            return _failed(-400, str(error))
        except Refusal as refusal:
            return _failed(refusal.retcode, str(refusal))
        return {"status": "ok", "retcode": 0, "data": data}


def _failed(retcode: int, message: str) -> dict[str, Any]:
    return {"status": "failed", "retcode": retcode, "message": message}
