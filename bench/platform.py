"""A chat platform that lives in a process of its own and forgets nothing it was sent.

POST /inbound  [{"address", "text"}, ...]  people write
GET  /updates?offset=N&wait=S              long polling; an offset confirms everything before it
POST /send     {"address", "text"}         the bot writes
GET  /sent     GET /open                   for the bench: what arrived in order; who is sending now
GET  /waiting  GET /stored                 updates not confirmed; how long each took to be confirmed
POST /delay    {"before", "after"}         seconds around the moment at which a send counts
"""

import threading
import time
from typing import Any

from bench.loopback import Exchange, Open, serve


class _Inbox:
    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.confirmed = 0
        self.came: list[float] = []
        self.took: list[float] = []
        self.changed = threading.Condition()

    def put(self, messages: list[dict[str, Any]]) -> None:
        with self.changed:
            for message in messages:
                self.updates.append({"id": len(self.updates) + 1, **message})
                self.came.append(time.monotonic())
            self.changed.notify_all()

    def confirm(self, offset: int) -> None:
        """Forget what came before `offset`: the listener says that it is stored."""
        now = time.monotonic()
        with self.changed:
            while self.confirmed < min(offset - 1, len(self.updates)):
                self.took.append(now - self.came[self.confirmed])
                self.confirmed += 1

    def next(self, *, wait: float) -> list[dict[str, Any]]:
        with self.changed:
            self.changed.wait_for(lambda: len(self.updates) > self.confirmed, timeout=wait)
            return self.updates[self.confirmed : self.confirmed + 100]


class _Outbox:
    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.delay = {"before": 0.0, "after": 0.0}
        self.lock = threading.Lock()
        self.open = Open()

    def keep(self, message: dict[str, Any]) -> int:
        with self.lock:
            self.sent.append({**message, "at": time.monotonic()})
            return len(self.sent)


inbox, outbox = _Inbox(), _Outbox()


def take_inbound(exchange: Exchange) -> None:
    inbox.put(exchange.body)
    exchange.answer({})


def hand_updates(exchange: Exchange) -> None:
    inbox.confirm(int(exchange.query["offset"]))
    exchange.answer(inbox.next(wait=float(exchange.query["wait"])))


def take_send(exchange: Exchange) -> None:
    if number := take_text(exchange, exchange.body):
        exchange.answer({"message_id": str(number)})


def take_text(exchange: Exchange, message: dict[str, Any]) -> int | None:
    """Keep what the bot writes, and return its number; None if the bot died before it was wholly there."""
    with outbox.open.during(exchange.port):
        time.sleep(outbox.delay["before"])
        if exchange.client_has_left():  # as if the request had never been whole
            exchange.close_connection = True
            return None
        number = outbox.keep(message)
        time.sleep(outbox.delay["after"])
    return number


def set_delay(exchange: Exchange) -> None:
    outbox.delay = exchange.body
    exchange.answer({})


class Platform(Exchange):
    routes = {
        "/inbound": take_inbound,
        "/updates": hand_updates,
        "/send": take_send,
        "/delay": set_delay,
        "/sent": lambda exchange: exchange.answer(outbox.sent),
        "/open": lambda exchange: exchange.answer(outbox.open.list()),
        "/waiting": lambda exchange: exchange.answer(len(inbox.updates) - inbox.confirmed),
        "/stored": lambda exchange: exchange.answer(inbox.took),
    }


if __name__ == "__main__":
    serve(Platform)
