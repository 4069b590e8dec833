"""The HTTP half of the fake protocol end: paths, statuses, envelopes and the event stream."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from tests.fakes.milky.faults import Fault
from tests.fakes.milky.streams import LOOK_EVERY_S, Stream

if TYPE_CHECKING:  # it hands itself in
    from tests.fakes.milky.end import MilkyEnd


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    end: ClassVar[MilkyEnd]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        api = self._below("/api/")
        if api is None:
            self._answer(404)
        elif not self._is_allowed():
            self._refuse(api, 401)
        elif not self.end.knows(api):
            self._refuse(api, 404)
        else:
            self._call(api, body)

    def do_GET(self) -> None:
        download = self._below("/download/")
        if urlsplit(self.path).path == f"{self.end.prefix}/event":
            self._stream()
        elif download is not None:
            self._download(download)
        elif self._below("/api/") is None:
            self._answer(404)
        else:
            self._answer(405 if self._is_allowed() else 401)

    do_OPTIONS = do_PUT = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _below(self, folder: str) -> str | None:
        """Return the rest of the path, None if it is another one."""
        path = urlsplit(self.path).path
        start = f"{self.end.prefix}{folder}"
        return path.removeprefix(start) if path.startswith(start) else None

    def _is_allowed(self) -> bool:
        token = self.end.token
        given = self.headers.get("Authorization")
        return not token or given == f"Bearer {token}" or self._token_in_query() == token

    def _token_in_query(self) -> str:
        return parse_qs(urlsplit(self.path).query).get("access_token", [""])[0]

    # An API

    def _call(self, api: str, raw: bytes) -> None:
        params = _parsed(raw)
        fault = self.end.next_fault(api)
        if fault and not fault.after_effect and self._obeys(fault, api, params):
            return
        if self.end.world.is_logged_in and not self._is_json():
            self._refuse(api, 415)
            return
        envelope = self.end.do(api, params)
        if fault and fault.after_effect and self._obeys(fault, api, params):
            return
        self._note(api, params, 200, envelope["retcode"])
        self._answer(200, envelope)

    def _is_json(self) -> bool:
        return self.headers.get_content_type() == "application/json"

    def _obeys(self, fault: Fault, api: str, params: Any) -> bool:
        """Do as a fault says; False if the call then goes on as if nothing were."""
        fault.reached.set()
        while not fault.waits.wait(LOOK_EVERY_S) and not self.end.stopping.is_set():
            pass
        if fault.goes_on:
            return False
        self._note(api, params, fault.status)
        if fault.answer is None:
            self.close_connection = True
        else:
            self._answer(fault.status, fault.answer)
        return True

    def _note(self, api: str, params: Any, status: int, retcode: int | None = None) -> None:
        self.end.note_call(api, params, self.headers.get("Authorization"), status, retcode)

    def _refuse(self, api: str, status: int) -> None:
        self._note(api, None, status)
        self._answer(status)

    def _answer(self, status: int, body: bytes | dict[str, Any] = b"") -> None:
        kind = "text/html"
        if isinstance(body, dict):
            kind, body = "application/json", json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        if body:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    # Events

    def _stream(self) -> None:
        fault = self.end.next_fault("event")
        status = fault.status if fault else 200 if self._is_allowed() else 401
        if fault and fault.answer is None:
            status = 0
        given = self.headers.get("Authorization")
        stream = self.end.open(given, bool(self._token_in_query()), status)
        if status == 0:
            self.close_connection = True
        elif stream is None or (fault and fault.answer is not None):
            self._answer(status, (fault and fault.answer) or b"")
        else:
            self._serve(stream)

    def _serve(self, stream: Stream) -> None:
        self.close_connection = True
        try:
            self._begin_chunks(
                {
                    "Content-Type": "text/event-stream",
                    "Cache-Control": "no-store",
                    "X-Accel-Buffering": "no",
                }
            )
            self._pass_on(stream)
        except OSError:
            pass  # the client left
        finally:
            self.end.close(stream)

    def _pass_on(self, stream: Stream) -> None:
        while (piece := stream.next_piece()) is not None:
            if piece:
                self._chunk(piece)
            elif self.end.stopping.is_set() or self._client_has_left():
                return
        if stream.ends_cleanly:
            self._end_chunks()

    def _begin_chunks(self, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()

    def _end_chunks(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def _client_has_left(self) -> bool:
        self.connection.settimeout(LOOK_EVERY_S)
        try:
            return not self.connection.recv(1)
        except TimeoutError:
            return False
        finally:
            self.connection.settimeout(None)

    # Files

    def _download(self, name: str) -> None:
        generation, _, resource_id = name.partition("/")
        self.end.downloads.append({key.lower(): value for key, value in self.headers.items()})
        resource = self.end.world.download(generation, resource_id)
        if resource is None:
            self._answer(404)
        elif resource.is_chunked:
            self._begin_chunks({})
            self._chunk(resource.content)
            self._end_chunks()
        else:
            self._answer(200, resource.content)


def _parsed(raw: bytes) -> Any:
    """Return the JSON of a body, None if it is none."""
    try:
        return json.loads(raw)
    except ValueError:
        return None
