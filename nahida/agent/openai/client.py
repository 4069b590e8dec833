"""What an OpenAI-compatible server is asked, and how, through the official SDK."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from nahida.agent.openai.errors import (
    BrokenStreamError,
    StreamOptionsError,
    provider_error,
    retry_after,
)
from nahida.agent.openai.stream import Draft, Watchdog
from nahida.agent.openai.thoughts import clean
from nahida.agent.vocabulary import (
    IMAGE_TOKENS,
    CallRecord,
    Message,
    ModelError,
    Reply,
    ToolCall,
    ToolSpec,
    Usage,
    estimated_tokens,
)
from nahida.config import Model as ModelConfig

logger = logging.getLogger(__name__)


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
            except BrokenStreamError:
                if not may_reopen:
                    raise
                may_reopen = False
            except StreamOptionsError:
                self._takes_stream_options = False
                del body["stream_options"]

    def _answer(
        self, body: dict[str, Any], *, attempts: _Attempts, on_text: Callable[[str], None]
    ) -> Reply:
        stream = self._opened(body, attempts=attempts)
        draft = Draft(self.name)
        shown = False
        watchdog = Watchdog(stream.response, deadline=attempts.deadline)
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
        error = provider_error(
            self.name,
            _json_or_text(response.text),
            status=response.status_code,
            retry_after=retry_after(response.headers),
            hint=self._hint(response.status_code),
            request_id=response.headers.get("x-request-id", ""),
        )
        if error.kind == "refused" and "stream_options" in body and "stream_options" in str(error):
            return StreamOptionsError(str(error), kind="refused")
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
        text = clean(message.text)
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


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _out_of_time(name: str) -> ModelError:
    return ModelError(f'the turn\'s time was up before model "{name}" had answered', kind="budget")


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
