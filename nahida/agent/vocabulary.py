"""What the turn and a model say to each other, whichever SDK carries it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]
Finish = Literal["stop", "length", "tool_calls", "content_filter", "cut"]
ErrorKind = Literal["unavailable", "rate_limited", "refused", "too_long", "budget", "misconfigured"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is the model's raw text: it may be empty or no JSON at all."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One line of the conversation; `images` are data: URLs.

    `reasoning_field` is the name under which the provider sent `reasoning`, and wants it back.
    """

    role: Role
    text: str = ""
    images: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    reasoning: str = ""
    reasoning_field: str = ""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """`parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    tokens_in: int
    tokens_out: int
    cached: int = 0
    estimated: bool = False


IMAGE_TOKENS = 1_000  # what an image counts in an estimate


def estimated_tokens(text: str) -> int:
    """Guess high rather than low: a CJK character is about one token, three letters of Latin too."""
    return (len(text.encode("utf-8", "replace")) + 2) // 3


@dataclass(frozen=True, slots=True)
class Reply:
    """`finish == "cut"` marks a stream that broke off: partial `text`, no tool calls."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    finish: Finish
    model: str
    reasoning: str = ""
    reasoning_field: str = ""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One HTTP request to a model, failed ones included.

    `model` is the configured name, `cost` in the currency of the configured prices (None: no
    prices), `outcome` the finish of the reply, "stopped" or the kind of the error.
    """

    model: str
    tokens_in: int
    tokens_out: int
    cost: Decimal | None
    ms: int
    outcome: str
    estimated: bool


class ModelError(Exception):
    """No reply. `retry_after` is in seconds, as the provider asked.

    unavailable    connect error, time-out, 5xx, a broken answer
    rate_limited   429
    refused        the provider will not answer this request
    too_long       the context does not fit: shrink the history
    budget         the turn's requests, tokens or seconds are used up
    misconfigured  key, money, model name or URL: a person must act
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind,
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after
        self.retryable = kind in ("unavailable", "rate_limited") if retryable is None else retryable


class Model(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def context_tokens(self) -> int: ...

    @property
    def sees_images(self) -> bool: ...

    def ask(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        on_text: Callable[[str], None],
        record: Callable[[CallRecord], None],
        deadline: float,
    ) -> Reply:
        """Answer `messages`; raise ModelError when there is no reply.

        `on_text` gets the whole visible text so far; what it raises closes the stream and
        propagates unchanged. `deadline` is a `time.monotonic()` value.
        """
        ...
