"""A small HTTP server on loopback, and how to run one as a process of its own."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

Query = Mapping[str, str]
Route = Callable[["Exchange"], None]


class Exchange(BaseHTTPRequestHandler):
    """One request. Subclasses name their `routes`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes: the second would wait for 40 ms
    routes: Mapping[str, Route] = {}

    def do_GET(self) -> None:
        self._dispatch()

    def do_POST(self) -> None:
        self._dispatch()

    def read(self) -> None:
        self.query: Query = dict(parse_qsl(urlsplit(self.path).query))
        length = int(self.headers.get("Content-Length") or 0)
        self.body: Any = json.loads(self.rfile.read(length)) if length else None

    def _dispatch(self) -> None:
        self.read()
        try:
            self.routes[urlsplit(self.path).path](self)
        except OSError:  # the client was killed
            self.close_connection = True

    def answer(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    @property
    def port(self) -> int:
        """The client's port: it tells which process asks."""
        port: int = self.client_address[1]
        return port

    def client_has_left(self) -> bool:
        self.connection.settimeout(0.001)
        try:
            return not self.connection.recv(1)
        except TimeoutError:
            return False
        finally:
            self.connection.settimeout(None)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Open:
    """The clients' ports of the requests that are being answered."""

    def __init__(self) -> None:
        self._ports: set[int] = set()
        self._lock = threading.Lock()

    @contextmanager
    def during(self, port: int) -> Iterator[None]:
        with self._lock:
            self._ports.add(port)
        try:
            yield
        finally:
            with self._lock:
                self._ports.discard(port)

    def list(self) -> list[int]:
        with self._lock:
            return sorted(self._ports)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients are killed all the time."""


def serve(exchange: type[Exchange]) -> None:
    """Print the port, then serve until stdin closes: so nobody outlives who started it."""
    server = _Server(("127.0.0.1", 0), exchange)
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


class Remote:
    """A module of ours that serves, run as a process."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        self._open = build_opener(ProxyHandler({})).open

    def get(self, path: str) -> Any:
        with self._open(self.url + path, timeout=30) as response:
            return json.load(response)

    def post(self, path: str, body: object) -> Any:
        request = Request(self.url + path, json.dumps(body).encode(), method="POST")
        with self._open(request, timeout=30) as response:
            return json.load(response)

    def stop(self) -> None:
        self._process.communicate()
