"""The platform of bench/platform.py as a Milky protocol end: what chaos needs of it, and no more.

An event goes down the stream that is open, once and never again; what was said stays in the history. Only where the bot never wrote, the
first line is said again to each new stream: lost in an interruption, nobody could know of the chat.
"""

import itertools
import json
import threading
import time
from collections import defaultdict
from typing import Any

from bench.loopback import Exchange, serve
from bench.platform import Platform, take_text

SELF = 1234567890
LOOK_EVERY_S = 0.02  # whether the client is still there
SCENES = {"private": "friend", "group": "group"}

Talk = tuple[str, int]


class _World:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.history: defaultdict[Talk, list[dict[str, Any]]] = defaultdict(list)
        self.numbers: defaultdict[Talk, itertools.count[int]] = defaultdict(
            lambda: itertools.count(1)
        )
        self.known: set[Talk] = set()
        self.stream: list[dict[str, Any]] | None = None  # what is to go down it

    def say(self, address: str, text: str) -> None:
        _, chat_type, number = address.split(":")
        talk = SCENES[chat_type], int(number)
        with self.changed:
            message = _message(talk, next(self.numbers[talk]), text)
            self.history[talk].append(message)
            if self.stream is not None:
                self.stream.append(message)
            self.changed.notify_all()

    def unknown(self) -> list[Talk]:
        with self.changed:
            return [talk for talk in self.history if talk not in self.known]

    def open(self) -> list[dict[str, Any]]:
        """Open a stream in place of the one before."""
        with self.changed:
            self.stream = [self.history[talk][0] for talk in self.unknown()]
            return self.stream

    def take(self, stream: list[dict[str, Any]]) -> list[dict[str, Any]]:
        with self.changed:
            taken, stream[:] = list(stream), []
            return taken

    def close(self, stream: list[dict[str, Any]]) -> None:
        with self.changed:
            if self.stream is stream:
                self.stream = None


def _message(talk: Talk, seq: int, text: str) -> dict[str, Any]:
    scene, peer = talk
    mention = {"type": "mention", "data": {"user_id": SELF, "name": "Bench"}}
    said = {"type": "text", "data": {"text": f" {text}"}}
    return {
        "message_scene": scene,
        "peer_id": peer,
        "message_seq": seq,
        "sender_id": 10001 if scene == "group" else peer,
        "time": int(time.time()),
        "segments": [mention, said] if scene == "group" else [said],
    }


world = _World()


def take_inbound(exchange: Exchange) -> None:
    for message in exchange.body:
        world.say(message["address"], message["text"])
    exchange.answer({})


def hold_stream(exchange: Exchange) -> None:
    """Tell what happens until the client is gone."""
    exchange.send_response(200)
    exchange.send_header("Content-Type", "text/event-stream")
    exchange.end_headers()
    exchange.close_connection = True
    stream = world.open()
    try:
        while not exchange.client_has_left():
            for message in world.take(stream):
                exchange.wfile.write(_event(message))
            with world.changed:
                world.changed.wait_for(lambda: bool(stream), timeout=LOOK_EVERY_S)
    finally:
        world.close(stream)


def _event(message: dict[str, Any]) -> bytes:
    event = {
        "time": message["time"],
        "self_id": SELF,
        "event_type": "message_receive",
        "data": message,
    }
    return f"event: milky_event\ndata: {json.dumps(event)}\n\n".encode()


def history(asked: dict[str, Any]) -> dict[str, Any]:
    messages = world.history[asked["message_scene"], asked["peer_id"]]
    start = asked.get("start_message_seq")
    older = [each for each in messages if start is None or each["message_seq"] <= start]
    page, rest = older[-asked["limit"] :], older[: -asked["limit"]]
    return {"messages": page, "next_message_seq": rest[-1]["message_seq"] if rest else None}


def take_message(exchange: Exchange, chat_type: str, number: int) -> dict[str, Any] | None:
    segments = exchange.body["message"]
    text = "".join(each["data"]["text"] for each in segments if each["type"] == "text")
    sent = {"address": f"bench:{chat_type}:{number}", "text": text}
    talk = SCENES[chat_type], number
    world.known.add(talk)
    if take_text(exchange, sent) is None:
        return None
    return {"message_seq": next(world.numbers[talk]), "time": int(time.time())}


class Milky(Platform):
    routes = {
        **Platform.routes,
        "/inbound": take_inbound,
        "/event": hold_stream,
        "/waiting": lambda exchange: exchange.answer(len(world.unknown())),
    }

    def _dispatch(self) -> None:
        if not self.path.startswith("/api/"):
            super()._dispatch()
            return
        self.read()
        try:
            data = self._data(self.path.removeprefix("/api/"))
            if data is not None:
                self.answer({"status": "ok", "retcode": 0, "data": data})
        except OSError:  # the client was killed
            self.close_connection = True

    def _data(self, api: str) -> dict[str, Any] | None:
        match api:
            case "get_login_info":
                return {"uin": SELF, "nickname": "Bench"}
            case "get_group_member_info":
                return {"member": {"user_id": SELF, "role": "member"}}
            case "get_history_messages":
                return history(self.body)
            case "send_private_message":
                return take_message(self, "private", self.body["user_id"])
            case "send_group_message":
                return take_message(self, "group", self.body["group_id"])
        return {}


if __name__ == "__main__":
    serve(Milky)
