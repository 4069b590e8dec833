"""The HTTP half of the server: who calls what, in which body, and what goes wrong on the way."""

import re
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from tests.fakes.telegram import bodies
from tests.fakes.telegram.answers import HUNG_UP, Answer, ApiError, success
from tests.fakes.telegram.bot import Bot, Call
from tests.fakes.telegram.methods import METHODS, Request, chat_id_of

_PATH = re.compile(r"/(?P<file>file/)?bot(?P<token>[^/]+)/(?P<rest>.+)")
_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]+")

NOT_FOUND = ApiError(404, "Not Found")
UNAUTHORIZED = ApiError(401, "Unauthorized")

DOWNLOAD = "download"  # the name of a file's download among calls and faults


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client may leave while it is answered


class TelegramServer:
    """`with TelegramServer() as server: bot = server.add_bot(...)`.

    `go_down` breaks every connection and refuses new ones until `come_up`, which is at the same address and forgets nothing.
    """

    def __init__(self, *, loopback_webhooks: bool = False) -> None:
        self.bots: dict[str, Bot] = {}
        self._loopback_webhooks = loopback_webhooks
        self._listener = _Listener(0, self._handler())
        self._port = self._listener.server_address[1]
        self._thread = threading.Thread()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def add_bot(
        self, token: str = "42000001:AAtest-token", *, username: str = "nahida_bot", **me: Any
    ) -> Bot:
        """Make a bot. `me` are further fields of getMe, such as `can_read_all_group_messages`."""
        bot = self.bots[token] = Bot(token, username, **me)
        return bot

    def remove_bot(self, bot: Bot) -> None:
        """Revoke its token."""
        del self.bots[bot.token]

    def go_down(self) -> None:
        for bot in self.bots.values():
            bot.go_down()
        self._listener.shutdown()
        self._listener.server_close()
        for connection in list(self._listener.connections):
            _break(connection)
        self._thread.join()

    def come_up(self) -> None:
        for bot in self.bots.values():
            bot.is_down = False
        self._listener = _Listener(self._port, self._handler())
        self._start()

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.go_down()

    def _start(self) -> None:
        self._thread = threading.Thread(
            target=self._listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    def answer(self, verb: str, target: str, content_type: str, body: bytes) -> Answer:
        path = _PATH.fullmatch(unquote(urlsplit(target).path))
        if path is None or _TOKEN.fullmatch(path["token"]) is None:
            return NOT_FOUND.answer()
        bot = self.bots.get(path["token"])
        if bot is None:
            return UNAUTHORIZED.answer()
        if path["file"]:
            return _with_faults(bot, Call(DOWNLOAD, {"file_path": path["rest"]}), _download)
        try:
            call = _read_call(verb, target, path["rest"], content_type, body)
        except ApiError as error:
            return error.answer()
        return _with_faults(bot, call, self._perform)

    def _perform(self, bot: Bot, call: Call) -> Answer:
        try:
            params = bodies.checked(call.method, _with_uploads(call))
            request = Request(bot, params, call.uploads, self._loopback_webhooks)
            with bot.changed:
                result = METHODS[call.method.lower()](request)
                bot.changed.notify_all()
        except ApiError as error:
            return error.answer()
        return result if isinstance(result, Answer) else success(result)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each answer waits for the client's late ACK

            def do_POST(self) -> None:
                body = self._body()
                kind = self.headers.get("Content-Type", "")
                self._write(server.answer(self.command, self.path, kind, body))

            do_GET = do_POST

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                pieces = []
                while size := int(self.rfile.readline(), 16):
                    pieces.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(pieces)

            def _write(self, answer: Answer) -> None:
                if answer.ends != "whole":
                    self.close_connection = True
                if answer.ends == "none":
                    return
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.kind)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                half = len(answer.body) // 2
                self.wfile.write(answer.body[:half] if answer.ends == "half" else answer.body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def _read_call(verb: str, target: str, name: str, content_type: str, body: bytes) -> Call:
    typed = bodies.TYPED.get(name.lower())
    if typed is None:
        raise NOT_FOUND
    if name.lower() not in METHODS:
        raise ApiError(501, f"Not Implemented: the fake server knows no {name}")
    return Call(typed.__api_method__, *bodies.read(verb, target, content_type, body))


def _with_uploads(call: Call) -> dict[str, Any]:
    """A file may be given in the place of its parameter."""
    typed = bodies.TYPED[call.method.lower()]
    here = [name for name in call.uploads if name in typed.model_fields]
    return call.params | {name: f"attach://{name}" for name in here}


def _with_faults(bot: Bot, call: Call, perform: Any) -> Answer:
    with bot.changed:
        bot.calls.append(call)
        bot.changed.notify_all()
        fault = bot.faults.take(call.method, chat_id_of(call.params))
    answer = fault.meet() if fault and not fault.after else None
    answer = answer or perform(bot, call)
    if fault and fault.after:
        answer = fault.meet() or answer
    if bot.is_down:
        answer = HUNG_UP
    with bot.changed:
        call.status = 0 if answer.ends == "none" else answer.status
        bot.changed.notify_all()
    return answer


def _download(bot: Bot, call: Call) -> Answer:
    for file in bot.files.values():
        if file.path == call.params["file_path"]:
            return Answer(200, file.content, "application/octet-stream")
    return NOT_FOUND.answer()


def _break(connection: socket.socket) -> None:
    with suppress(OSError):  # it may be closed already
        connection.shutdown(socket.SHUT_RDWR)
