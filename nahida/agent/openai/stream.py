"""A reply read from its stream, which no two servers send alike."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai

from nahida.agent.openai.errors import BrokenStreamError, provider_error
from nahida.agent.openai.thoughts import Visible, clean
from nahida.agent.vocabulary import Finish, ModelError, Reply, ToolCall, Usage, estimated_tokens

BROKEN_FINISHES = frozenset({"error", "insufficient_system_resource"})
FINISHES: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
}


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


class _Calls:
    """Tool calls put together from their fragments."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def add(self, fragment: object) -> None:
        if not isinstance(fragment, dict):
            return
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        id_, name = _text(fragment.get("id")), _text(function.get("name"))
        call = self._call(fragment.get("index"), id_=id_, name=name)
        call.id = call.id or id_
        if name != call.name:  # some servers send the whole name with each piece
            call.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        call.arguments += _text(arguments)

    def _call(self, index: object, *, id_: str, name: str) -> _Call:
        if isinstance(index, int):
            call = self._by_index.get(index)
        else:
            same_id = (call for call in self._calls if id_ and call.id == id_)
            last = self._calls[-1] if self._calls and not name else None
            call = next(same_id, last)
        # Some servers number every call 0: a new name under a new id is a new call.
        if call is None or (name and id_ and call.id and call.id != id_):
            call = _Call()
            self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def whole(self) -> tuple[ToolCall, ...]:
        """Return the calls, each with an id of its own."""
        seen: set[str] = set()
        calls = []
        for call in self._calls:
            if not call.name and not call.arguments:
                continue
            id_ = clean(call.id)
            if not id_ or id_ in seen:
                id_ = f"call_{uuid.uuid4().hex[:24]}"
            seen.add(id_)
            calls.append(ToolCall(id_, clean(call.name), clean(call.arguments)))
        return tuple(calls)

    def letters(self) -> str:
        return "".join(call.name + call.arguments for call in self._calls)


@dataclass(slots=True)
class Draft:
    """A reply as far as its stream has come."""

    name: str
    finish: str = ""
    _visible: Visible = field(default_factory=Visible)
    _calls: _Calls = field(default_factory=_Calls)
    _reasoning: str = ""
    _reasoning_field: str = ""
    _usage: Usage | None = None
    _error: ModelError | None = None

    def read(self, stream: openai.Stream[object]) -> Iterator[str]:
        """Yield the visible text each time it has grown; what breaks the stream is kept."""
        shown = ""
        try:
            for chunk in _chunks(stream):
                self._add(chunk)
                if self._visible.text != shown:
                    shown = self._visible.text
                    yield shown
        except ModelError as error:
            self._error = error
        except openai.APIConnectionError as error:
            self._break(f"was cut: {error.__cause__ or error.message}")
        except openai.APIError as error:
            self._error = provider_error(self.name, error.body or error.message)
        except (httpx2.RequestError, ValueError) as error:  # ValueError: no JSON, no UTF-8
            self._break(f"was cut: {error}")
        self._visible.end(whole=bool(self.finish))
        if self._visible.text.strip() and self._visible.text != shown:
            yield self._visible.text

    def fault(self) -> ModelError | None:
        """Return why this is no whole reply. What goes wrong after the finish does not count."""
        if self.finish in BROKEN_FINISHES:
            self._break(f"ended with {self.finish}")
        elif self.finish:
            return None
        elif self._error is None:
            self._break("ended without a finish reason")
        return self._error

    def reply(self, *, cut: bool, usage: Usage) -> Reply:
        calls = self._calls.whole()
        finish: Finish = "cut" if cut else FINISHES.get(self.finish, "stop")
        if finish == "stop" and calls:  # some servers say "stop" with calls present
            finish = "tool_calls"
        return Reply(
            text=self._visible.text.rstrip(),
            # In every other case the last call may be half of one.
            tool_calls=calls if finish == "tool_calls" else (),
            usage=usage,
            finish=finish,
            model=self.name,
            reasoning=clean(self._reasoning) or self._visible.thoughts.strip(),
            reasoning_field=self._reasoning_field,
        )

    def usage_for(self, tokens_in: int) -> Usage:
        """Return what the provider counted, else an estimate."""
        if self._usage:
            return self._usage
        visible = self._visible
        letters = visible.text + visible.thoughts + self._reasoning + self._calls.letters()
        return Usage(tokens_in, estimated_tokens(letters), estimated=True)

    def _break(self, how: str) -> None:
        text = f'the answer of model "{self.name}" {how}'
        self._error = BrokenStreamError(text, kind="unavailable")

    def _add(self, chunk: object) -> None:
        if not isinstance(chunk, dict):
            return
        choices = chunk.get("choices")
        if not isinstance(choices, list) and any(
            chunk.get(k) for k in ("error", "message", "detail")
        ):
            raise provider_error(self.name, chunk)
        self._usage = _usage(chunk.get("usage")) or self._usage
        for choice in choices or []:
            if isinstance(choice, dict) and not choice.get("index"):
                self._add_choice(choice)

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._add_reasoning(delta)
            content, thoughts = _content(delta.get("content"))
            self._reasoning += thoughts
            if text := content + _text(delta.get("refusal")):
                self._visible.feed(text)
            for fragment in delta.get("tool_calls") or []:
                self._calls.add(fragment)
        self.finish = _text(choice.get("finish_reason")).lower() or self.finish

    def _add_reasoning(self, delta: Mapping[str, Any]) -> None:
        for key in ("reasoning_content", "reasoning"):
            if reasoning := _text(delta.get(key)):
                self._reasoning += reasoning
                self._reasoning_field = self._reasoning_field or key
                return


def _chunks(stream: openai.Stream[object]) -> Iterator[object]:
    response = stream.response
    kind = response.headers.get("content-type", "")
    if "text/html" in kind:
        raise ModelError(
            f"{response.url} answered with a web page: base_url is wrong, it usually ends in /v1",
            kind="misconfigured",
        )
    if "application/json" in kind:  # a server that does not stream, or an error under a 200
        yield json.loads(response.read())
    else:
        yield from stream


def _content(value: object) -> tuple[str, str]:
    """Return text and thoughts of a content, which some servers send in parts."""
    if not isinstance(value, list):
        return _text(value), ""
    text = thoughts = ""
    for part in value:
        if isinstance(part, dict):
            text += _text(part.get("text"))
            thoughts += _content(part.get("thinking"))[0]
    return text, thoughts


def _usage(value: object) -> Usage | None:
    if not isinstance(value, dict) or not _count(value.get("prompt_tokens")):
        return None
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        _count(value["prompt_tokens"]),
        _count(value.get("completion_tokens")),
        cached=_count(cached) or _count(value.get("prompt_cache_hit_tokens")),
    )


def _count(value: object) -> int:
    return max(0, int(value)) if isinstance(value, int | float) and math.isfinite(value) else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class Watchdog:
    """Ends a stream at the deadline, also one that is silent or sends comments only."""

    def __init__(self, response: httpx2.Response, *, deadline: float) -> None:
        self._response = response
        seconds = min(max(0.0, deadline - time.monotonic()), threading.TIMEOUT_MAX)
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()

    def _cut(self) -> None:
        network = self._response.extensions.get("network_stream")
        peer = network.get_extra_info("socket") if network else None
        if isinstance(peer, socket.socket):
            with contextlib.suppress(OSError):
                # Not SSLSocket's own, which is not made for two threads.
                socket.socket.shutdown(peer, socket.SHUT_RDWR)
