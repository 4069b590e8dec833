"""The chat-completions wire, through the official SDK; the facts are in protocols/llm.md."""

from __future__ import annotations

import contextlib
import email.utils
import functools
import json
import logging
import math
import os
import re
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
import openai

from nahida.agent.vocabulary import (
    CallRecord,
    ErrorKind,
    Finish,
    Message,
    ModelError,
    Reply,
    ToolCall,
    ToolSpec,
    Usage,
)
from nahida.config import Model as ModelConfig

logger = logging.getLogger(__name__)

IMAGE_TOKENS = 1_000  # what an image counts in an estimate
EXCERPT = 300  # characters of a provider's error text that we keep

TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
TOO_LONG = re.compile(
    r"context.?(length|window|size)|maximum context|(prompt|input) is too long|too many tokens",
    re.IGNORECASE,
)
NO_MONEY_CODES = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "billing_hard_limit_reached",
        "billing_error",
        "insufficient_balance",
    }
)
NO_MONEY = re.compile(r"credit balance|insufficient (balance|quota)", re.IGNORECASE)
MODERATED_CODES = frozenset({"content_filter", "content_policy_violation"})
MISCONFIGURED = frozenset({401, 402, 403, 404, 405, 410})
UNAVAILABLE = frozenset({408, 409, 425})

BROKEN_FINISHES = frozenset({"error", "insufficient_system_resource"})
FINISHES: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
}

TAG = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
TAGS = ("<think>", "</think>", "<thinking>", "</thinking>")


class OpenAIModel:
    """One configured model of any OpenAI-compatible server."""

    def __init__(self, name: str, config: ModelConfig) -> None:
        self.name = name
        self.config = config
        self._client: openai.OpenAI | None = None
        self._client_pid = 0
        self._takes_stream_options = True

    @property
    def context_tokens(self) -> int:
        return self.config.context_tokens

    @property
    def sees_images(self) -> bool:
        return self.config.vision

    def ask(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        on_text: Callable[[str], None],
        record: Callable[[CallRecord], None],
        deadline: float,
    ) -> Reply:
        """Answer `messages`, as `Model.ask` says.

        The SDK retries what fails before the stream opens; a stream that breaks before anything
        was shown is opened once more.
        """
        body = self._body(messages, tools=tools)
        attempts = _Attempts(self, record=record, deadline=deadline, tokens_in=_size(body))
        may_reopen = self.config.max_retries > 0
        while True:
            try:
                return self._answer(body, attempts=attempts, on_text=on_text)
            except _BrokenStreamError:
                if not may_reopen:
                    raise
                may_reopen = False
            except _StreamOptionsError:
                self._takes_stream_options = False
                del body["stream_options"]

    def _answer(
        self, body: dict[str, Any], *, attempts: _Attempts, on_text: Callable[[str], None]
    ) -> Reply:
        stream = self._opened(body, attempts=attempts)
        draft = _Draft(self.name)
        shown = False
        watchdog = _Watchdog(stream.response, deadline=attempts.deadline)
        try:
            for text in draft.read(stream):
                shown = True
                on_text(text)
        except BaseException:
            attempts.close("stopped", usage=draft.usage_for(attempts.tokens_in))
            raise
        finally:
            watchdog.cancel()
            stream.close()
        usage = draft.usage_for(attempts.tokens_in)
        fault = draft.fault()
        if fault and attempts.seconds_left() <= 0:
            fault = _out_of_time(self.name)
        if fault and not shown:
            attempts.close(fault.kind, usage=usage)
            raise fault
        if fault:  # a second try would repeat what somebody has read
            logger.warning("%s; the text so far is kept", fault)
        reply = draft.reply(cut=bool(fault), usage=usage)
        attempts.close(reply.finish, usage=usage)
        return reply

    def _opened(self, body: dict[str, Any], *, attempts: _Attempts) -> openai.Stream[object]:
        config = self.config
        timeout = openai.Timeout(
            config.read_s,
            connect=config.connect_s,
            read=max(0.001, min(config.read_s, attempts.seconds_left())),
        )
        token = _attempts.set(attempts)
        try:
            # Plain JSON, since compatible servers do not keep to the SDK's types.
            return self._connected().post(
                "/chat/completions",
                cast_to=object,
                body=body,
                options={"timeout": timeout},
                stream=True,
                stream_cls=openai.Stream[object],
            )
        except openai.APIStatusError as error:
            raise self._refusal(error.response, body=body) from error
        except openai.APIConnectionError as error:
            attempts.close("unavailable")
            if attempts.seconds_left() <= 0:
                raise _out_of_time(self.name) from error
            raise ModelError(
                f'model "{self.name}" cannot be reached at {config.base_url}:'
                f" {error.__cause__ or error.message}",
                kind="unavailable",
            ) from error
        finally:
            _attempts.reset(token)

    def _connected(self) -> openai.OpenAI:
        # Sockets must not be shared with the process we were forked from.
        if self._client is None or self._client_pid != os.getpid():
            loopback = urlsplit(self.config.base_url).hostname in ("127.0.0.1", "::1", "localhost")
            self._client = openai.OpenAI(
                base_url=self.config.base_url,
                api_key=self.config.api_key.get_secret_value() or "none",  # local servers want one
                max_retries=self.config.max_retries,
                http_client=openai.DefaultHttpxClient(
                    event_hooks={"request": [self._sending], "response": [self._answered]},
                    trust_env=not loopback,  # no proxy to one's own machine
                    verify=_certificates(),
                ),
            )
            self._client_pid = os.getpid()
        return self._client

    def _sending(self, request: httpx2.Request) -> None:
        attempts = _attempts.get()
        attempts.close("unavailable")  # the one before, if it had no answer
        if attempts.seconds_left() <= 0:
            raise _out_of_time(self.name)
        attempts.open()

    def _answered(self, response: httpx2.Response) -> None:
        """Record a failed request, and end the SDK's retries where they can do no good."""
        if response.status_code < 400:
            return
        attempts = _attempts.get()
        response.read()
        error = self._refusal(response, body=json.loads(response.request.content))
        attempts.close(error.kind)
        if not error.retryable or (error.retry_after or 0) > attempts.seconds_left():
            raise error

    def _refusal(self, response: httpx2.Response, *, body: Mapping[str, Any]) -> ModelError:
        error = _error(
            self.name,
            _json_or_text(response.text),
            status=response.status_code,
            retry_after=_retry_after(response.headers),
            hint=self._hint(response.status_code),
            request_id=response.headers.get("x-request-id", ""),
        )
        if error.kind == "refused" and "stream_options" in body and "stream_options" in str(error):
            return _StreamOptionsError(str(error), kind="refused")
        return error

    def _hint(self, status: int) -> str:
        if status in (401, 403):
            variable = self.config.api_key_env
            return f"check the key in {variable}" if variable else "set api_key_env"
        if status in (404, 405):
            return f'check base_url {self.config.base_url} and model "{self.config.model}"'
        return ""

    def _body(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec]) -> dict[str, Any]:
        config = self.config
        body: dict[str, Any] = {
            "model": config.model,
            "messages": [self._wire(message) for message in messages],
            "stream": True,
            config.max_tokens_field: config.max_output_tokens,
        }
        if self._takes_stream_options:
            body["stream_options"] = {"include_usage": True}
        if config.temperature is not None:
            body["temperature"] = config.temperature
        if tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in tools
            ]
        return body | config.extra_body

    def _wire(self, message: Message) -> dict[str, Any]:
        wire: dict[str, Any] = {"role": message.role, "content": self._content(message)}
        if message.role == "tool":
            wire["tool_call_id"] = message.tool_call_id
        if message.tool_calls:
            wire["content"] = wire["content"] or None  # some servers refuse an empty text here
            wire["tool_calls"] = [_wire_call(call) for call in message.tool_calls]
            if self.config.reasoning_back and message.reasoning_field:
                wire[message.reasoning_field] = message.reasoning
        return wire

    def _content(self, message: Message) -> str | list[dict[str, Any]]:
        # A plain string wherever it will do: many servers take nothing else.
        text = _clean(message.text)
        if not message.images:
            return text
        if not self.sees_images:
            note = f"[{len(message.images)} image(s), which this model cannot see]"
            return f"{text}\n{note}".strip()
        parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        return parts + [{"type": "image_url", "image_url": {"url": url}} for url in message.images]


@functools.cache
def _certificates() -> ssl.SSLContext:
    return httpx2.create_ssl_context()  # a tenth of a second: once for all models


def estimated_tokens(text: str) -> int:
    """Guess the tokens of `text`: four ASCII letters or 1.3 Chinese characters to a token."""
    return (len(text.encode("utf-8", "replace")) + 3) // 4


def _size(body: Mapping[str, Any]) -> int:
    """Guess the tokens of a request, whose images must not count by their letters."""
    images = 0

    def shortened(value: Any) -> Any:
        nonlocal images
        if isinstance(value, dict):
            if value.get("type") == "image_url":
                images += 1
                return ""
            return {key: shortened(inner) for key, inner in value.items()}
        return [shortened(inner) for inner in value] if isinstance(value, list) else value

    asked = shortened([body["messages"], body.get("tools", [])])
    return estimated_tokens(json.dumps(asked, ensure_ascii=False)) + images * IMAGE_TOKENS


def _wire_call(call: ToolCall) -> dict[str, Any]:
    # What the model wrote may be no JSON, or no name: servers that parse the history refuse it.
    arguments = call.arguments if isinstance(_json_or_text(call.arguments), dict) else "{}"
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:64] or "unknown"
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


class _BrokenStreamError(ModelError):
    """The stream broke, and nobody has seen anything of it."""


class _StreamOptionsError(ModelError):
    """The server does not know `stream_options`."""


class _Attempts:
    """The HTTP requests of one `ask`, each recorded once."""

    def __init__(
        self,
        model: OpenAIModel,
        *,
        record: Callable[[CallRecord], None],
        deadline: float,
        tokens_in: int,
    ) -> None:
        self.model = model
        self.record = record
        self.deadline = deadline
        self.tokens_in = tokens_in  # estimated
        self._started: float | None = None

    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def open(self) -> None:
        self._started = time.monotonic()

    def close(self, outcome: str, *, usage: Usage | None = None) -> None:
        """Record the open request; do nothing if there is none."""
        if self._started is None:
            return
        started, self._started = self._started, None
        usage = usage or Usage(0, 0)
        self.record(
            CallRecord(
                model=self.model.name,
                tokens_in=usage.tokens_in,
                tokens_out=usage.tokens_out,
                cost=_cost(usage, config=self.model.config),
                ms=round((time.monotonic() - started) * 1000),
                outcome=outcome,
                estimated=usage.estimated,
            )
        )


# The client's hooks are told of a request, not whose it is.
_attempts: ContextVar[_Attempts] = ContextVar("_attempts")


def _cost(usage: Usage, *, config: ModelConfig) -> Decimal | None:
    if config.price_in is None or config.price_out is None:
        return None
    return (config.price_in * usage.tokens_in + config.price_out * usage.tokens_out) / 1_000_000


class _Watchdog:
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
            id_ = _clean(call.id)
            if not id_ or id_ in seen:
                id_ = f"call_{uuid.uuid4().hex[:24]}"
            seen.add(id_)
            calls.append(ToolCall(id_, _clean(call.name), _clean(call.arguments)))
        return tuple(calls)

    def letters(self) -> str:
        return "".join(call.name + call.arguments for call in self._calls)


class _Visible:
    """Splits a model's text, as it grows, into what may be shown and its thoughts.

    The opening tag may be missing, because the server's template wrote it. Tags in code are text.
    """

    def __init__(self) -> None:
        self.text = ""
        self.thoughts = ""
        self._opening = ""  # the tag of the block we are in
        self._block = ""
        self._tail = ""  # held back: it may become a tag, or half a character

    def feed(self, piece: str) -> None:
        data = self._tail + piece
        keep = _held_back(data)
        self._tail, data = data[keep:], _clean(data[:keep])
        while match := TAG.search(data):
            self._put(data[: match.start()])
            self._turn(match[0])
            data = data[match.end() :]
        self._put(data)

    def end(self, *, whole: bool) -> None:
        """Take what was held back; `whole` if the model came to its own end."""
        self._put(_clean(self._tail))
        self._tail = ""
        if self._opening and whole and self.text.strip():
            self.text += self._opening + self._block  # it was speaking of the tag
        else:
            self.thoughts += self._block
        self._opening = self._block = ""

    def _put(self, data: str) -> None:
        if self._opening:
            self._block += data
        else:
            self.text = self.text + data if self.text else data.lstrip()

    def _turn(self, tag: str) -> None:
        closing = tag.startswith("</")
        if self._opening:
            if closing:
                self.thoughts += self._block
                self._opening = self._block = ""
        elif _in_code(self.text):
            self.text += tag
        elif not closing:
            self._opening = tag
        elif not self.thoughts:
            self.thoughts, self.text = self.text, ""


def _held_back(data: str) -> int:
    """Return the place from which `data` may be the beginning of something."""
    if data and "\ud800" <= data[-1] <= "\udbff":  # a pair cut in two
        return len(data) - 1
    start = data.rfind("<")
    begun = start >= 0 and any(tag.startswith(data[start:].lower()) for tag in TAGS)
    return start if begun else len(data)


def _in_code(text: str) -> bool:
    if text.count("```") % 2:
        return True
    line = text[text.rfind("\n") + 1 :].replace("```", "")
    return line.count("`") % 2 == 1


@dataclass(slots=True)
class _Draft:
    """A reply as far as its stream has come."""

    name: str
    finish: str = ""
    _visible: _Visible = field(default_factory=_Visible)
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
            self._error = _error(self.name, error.body or error.message)
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
            reasoning=_clean(self._reasoning) or self._visible.thoughts.strip(),
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
        self._error = _BrokenStreamError(text, kind="unavailable")

    def _add(self, chunk: object) -> None:
        if not isinstance(chunk, dict):
            return
        choices = chunk.get("choices")
        if not isinstance(choices, list) and any(
            chunk.get(k) for k in ("error", "message", "detail")
        ):
            raise _error(self.name, chunk)
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


def _clean(text: str) -> str:
    """Replace what no database takes: lone surrogates and NUL."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "\ufffd")


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _out_of_time(name: str) -> ModelError:
    return ModelError(f'the turn\'s time was up before model "{name}" had answered', kind="budget")


def _error(
    name: str,
    body: object,
    *,
    status: int | None = None,
    retry_after: float | None = None,
    hint: str = "",
    request_id: str = "",
) -> ModelError:
    """Judge an error body: `{"error": {...}}` with a code of any type, `{"error": "text"}`,
    `{"message"}`, `{"detail"}`, HTML or nothing; without `status` it came inside a stream."""
    error = body.get("error") or body if isinstance(body, dict) else body
    fields = cast("dict[str, object]", error) if isinstance(error, dict) else {}
    said = fields.get("message") or fields.get("detail") or error
    excerpt = " ".join((said if isinstance(said, str) else json.dumps(said)).split())[:EXCERPT]
    code = fields.get("code")
    if status is None and isinstance(code, int | str) and str(code).isdigit():
        status = int(code)
    words = {str(fields.get(key) or "").lower() for key in ("code", "type")}
    kind = _kind(status, words=words, excerpt=excerpt)
    text = f'model "{name}" answered {status or "with an error"}: {_clean(excerpt) or "nothing"}'
    text += f" (request {request_id})" if request_id else ""
    text += f"; {hint}" if hint and kind == "misconfigured" else ""
    return ModelError(text, kind=kind, retry_after=retry_after)


def _kind(status: int | None, *, words: set[str], excerpt: str) -> ErrorKind:
    if words & NO_MONEY_CODES or (status in (400, 402, 429) and NO_MONEY.search(excerpt)):
        return "misconfigured"
    if words & TOO_LONG_CODES or status == 413:
        return "too_long"
    if status in (None, 400, 422) and TOO_LONG.search(excerpt):
        return "too_long"
    if words & MODERATED_CODES:
        return "refused"
    if status == 429 or any("rate_limit" in word for word in words):
        return "rate_limited"
    if status in MISCONFIGURED:
        return "misconfigured"
    if status is None or status in UNAVAILABLE or not 400 <= status < 500:
        return "unavailable"
    return "refused"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        when = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, when.timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
