"""A model in a process of its own: it names every `m1`, `m2` ... of the lines it answers, in a stream.

POST /v1/chat/completions    GET /open  who is asking now    POST /delay {"seconds"}
"""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

from bench.loopback import Exchange, Open, serve

NUMBER = re.compile(r"\bm\d+\b")

asking = Open()
delay = {"seconds": 0.0}


def question(messages: list[dict[str, Any]]) -> str:
    """Return what was said since the last answer."""
    said: list[str] = []
    for message in reversed(messages):
        if message["role"] != "user":
            break
        said.insert(0, str(message["content"]))
    return "\n".join(said)


def chunks(text: str) -> Iterator[dict[str, Any]]:
    for word in re.findall(r"\S+\s*", text):
        yield {"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    yield {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 5}}


def complete(exchange: Exchange) -> None:
    with asking.during(exchange.port):
        numbers = NUMBER.findall(question(exchange.body["messages"]))
        time.sleep(delay["seconds"])
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks(f"re: {' '.join(numbers)}")]
        data = "".join([*lines, "data: [DONE]\n\n"]).encode()
        exchange.send_response(200)
        exchange.send_header("Content-Type", "text/event-stream")
        exchange.send_header("Content-Length", str(len(data)))
        exchange.end_headers()
        exchange.wfile.write(data)


def set_delay(exchange: Exchange) -> None:
    delay.update(exchange.body)
    exchange.answer({})


class Model(Exchange):
    routes = {
        "/v1/chat/completions": complete,
        "/delay": set_delay,
        "/open": lambda exchange: exchange.answer(asking.list()),
    }


if __name__ == "__main__":
    serve(Model)
