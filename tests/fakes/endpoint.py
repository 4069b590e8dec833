"""A chat-completions server on loopback that misbehaves as told; nothing of it knows our client."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, written piece by piece.

    ends: "clean", "dropped" (the connection breaks), or "silent" (open, nothing more comes;
    "chatty": comments only) until the client hangs up or the server stops.
    """

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    ends: Literal["clean", "dropped", "silent", "chatty"] = "clean"


def sse(
    *chunks: dict[str, Any] | str,
    done: bool = True,
    ends: Literal["clean", "dropped", "silent", "chatty"] = "clean",
) -> Answer:
    """Return a stream of `chunks`; a str is written as it is."""
    pieces = [
        chunk.encode() if isinstance(chunk, str) else f"data: {json.dumps(chunk)}\n\n".encode()
        for chunk in chunks
    ]
    if done and ends == "clean":
        pieces.append(b"data: [DONE]\n\n")
    return Answer(tuple(pieces), headers={"Content-Type": "text/event-stream"}, ends=ends)


def error(status: int, body: Any, **headers: str) -> Answer:
    """Return an error; a str body is written as it is, anything else as JSON."""
    text = body if isinstance(body, str) else json.dumps(body)
    kind = "text/html" if text.startswith("<") else "application/json"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer((text.encode(),), status=status, headers={"Content-Type": kind} | named)


def delta(content: Any = None, **fields: Any) -> dict[str, Any]:
    """Return a chunk with one delta."""
    fields = fields if content is None else {"content": content} | fields
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def finish(reason: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]} | fields


def usage(tokens_in: int, tokens_out: int, **fields: Any) -> dict[str, Any]:
    """Return the chunk that `include_usage` adds."""
    counted = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out} | fields
    return {"choices": [], "usage": counted}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client may leave in the middle of a stream


class Endpoint:
    """Gives the enqueued answers in order, and 599 beyond them."""

    def __init__(self, *answers: Answer) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.hung_up = threading.Event()  # a client left a silent stream
        self._answers = list(answers)
        self._stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def enqueue(self, *answers: Answer) -> None:
        self._answers.extend(answers)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.bodies.append(json.loads(body))
                endpoint.headers.append({k.lower(): v for k, v in self.headers.items()})
                answers = endpoint._answers
                answer = answers.pop(0) if answers else error(599, "unscripted request")
                try:
                    self.send_response(answer.status)
                    for name, value in answer.headers.items():
                        self.send_header(name, value)
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for piece in answer.pieces:
                        self._write(piece)
                    self._end(answer.ends)
                except OSError:
                    endpoint.hung_up.set()
                    self.close_connection = True

            def _write(self, piece: bytes) -> None:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()

            def _end(self, ends: str) -> None:
                if ends == "clean":
                    self.wfile.write(b"0\r\n\r\n")
                    return
                self.close_connection = True
                while ends in ("silent", "chatty") and not endpoint._stopping.wait(0.01):
                    if ends == "chatty":
                        self._write(b": keep-alive\n\n")
                    elif self._client_has_left():
                        raise ConnectionResetError

            def _client_has_left(self) -> bool:
                self.connection.settimeout(0.01)
                try:
                    return not self.connection.recv(1)
                except TimeoutError:
                    return False

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
