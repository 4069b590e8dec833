"""Downloading: at most what is wanted, and never a word about the URL, which may hold a token."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.test import SimpleTestCase

from channels_app import http
from channels_app.channels import FetchError


class _Server(BaseHTTPRequestHandler):
    """Serves /N as N bytes, /chunked/N without saying how many, /status/N, /moved, and /cut, which ends too early."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        match self.path.strip("/").split("/"):
            case ["status", status]:
                self.answer(int(status), {"Content-Length": "0"})
            case ["moved"]:
                self.answer(302, {"Location": "/5", "Content-Length": "0"})
            case ["cut"]:
                self.answer(200, {"Content-Length": "10"}, b"half")
            case ["chunked", size]:
                chunk = f"{int(size):x}\r\n".encode() + b"x" * int(size) + b"\r\n0\r\n\r\n"
                self.answer(200, {"Transfer-Encoding": "chunked"}, chunk)
            case [size]:
                self.answer(200, {"Content-Length": size}, b"x" * int(size))

    def answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class DownloadTests(SimpleTestCase):
    def refusal(self, path: str, *, limit: int = 10) -> FetchError:
        with serving() as base, self.assertRaises(FetchError) as caught:
            http.download(base + path, limit=limit)
        return caught.exception

    def test_it_returns_the_file(self):
        with serving() as base:
            self.assertEqual(http.download(base + "/10", limit=10), b"x" * 10)
            self.assertEqual(http.download(base + "/chunked/10", limit=10), b"x" * 10)

    def test_it_follows_a_file_that_moved(self):
        with serving() as base:
            self.assertEqual(http.download(base + "/moved", limit=10), b"xxxxx")

    def test_it_takes_no_more_than_the_limit_whatever_was_announced(self):
        for path in ("/11", "/chunked/11"):
            error = self.refusal(path)

            self.assertEqual(str(error), "larger than 10 bytes")
            self.assertTrue(error.permanent)

    def test_it_says_which_failures_may_pass(self):
        for status, permanent in ((404, True), (403, True), (429, False), (502, False)):
            error = self.refusal(f"/status/{status}")

            self.assertIn(str(status), str(error))
            self.assertEqual(error.permanent, permanent)

    def test_it_takes_half_a_file_for_none(self):
        self.assertFalse(self.refusal("/cut").permanent)

    def test_it_never_shows_the_url(self):
        for url in ("http://127.0.0.1:9/bot-token", "gopher://bot-token", "http://[bot-token/"):
            with self.assertRaises(FetchError) as caught:
                http.download(url, limit=10)

            self.assertNotIn("token", str(caught.exception))
