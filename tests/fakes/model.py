"""A model that says what the test wrote for it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from nahida.agent.vocabulary import CallRecord, Message, Reply, ToolCall, ToolSpec, Usage

Answer = str | Reply | BaseException
Script = Answer | Callable[[Sequence[Message]], Answer]

PIECES = 3  # in which a text is streamed


@dataclass(frozen=True, slots=True)
class Request:
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    deadline: float

    @property
    def last(self) -> str:
        """The text of the last message."""
        return self.messages[-1].text


class ScriptedModel:
    """Gives `replies` one after the other; a request beyond them fails the test.

    Should the code under test swallow that failure, `check()` raises it at the end.
    """

    def __init__(
        self,
        *replies: Script,
        name: str = "scripted",
        context_tokens: int = 32_000,
        sees_images: bool = False,
    ) -> None:
        self.name = name
        self.context_tokens = context_tokens
        self.sees_images = sees_images
        self.requests: list[Request] = []
        self.unscripted: list[str] = []
        self._replies = list(replies)

    def enqueue(self, *replies: Script) -> None:
        self._replies.extend(replies)

    def check(self) -> None:
        """Raise AssertionError for a request nobody scripted, or a reply nobody asked for."""
        assert not self.unscripted, f"unscripted model calls: {self.unscripted}"
        assert not self._replies, f"replies nobody asked for: {self._replies}"

    def ask(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        on_text: Callable[[str], None],
        record: Callable[[CallRecord], None],
        deadline: float,
    ) -> Reply:
        request = Request(tuple(messages), tuple(tools), deadline)
        self.requests.append(request)
        if not self._replies:
            self.unscripted.append(request.last)
            raise AssertionError(f"unscripted model call: {request.last!r}")
        started = time.monotonic()
        reply = self._reply(self._replies.pop(0), request=request)
        if isinstance(reply, BaseException):
            kind = getattr(reply, "kind", type(reply).__name__)
            record(self._record(Usage(0, 0), outcome=kind, started=started))
            raise reply
        try:
            for end in _ends(len(reply.text)):
                on_text(reply.text[:end])
        except BaseException:
            record(self._record(reply.usage, outcome="stopped", started=started))
            raise
        record(self._record(reply.usage, outcome=reply.finish, started=started))
        return reply

    def _reply(self, script: Script, *, request: Request) -> Reply | BaseException:
        if callable(script):
            script = script(request.messages)
        return self._said(script) if isinstance(script, str) else script

    def _said(self, text: str) -> Reply:
        return Reply(text, (), Usage(10, 5), "stop", self.name)

    def _record(self, usage: Usage, *, outcome: str, started: float) -> CallRecord:
        ms = round((time.monotonic() - started) * 1000)
        cost = Decimal(usage.tokens_in + usage.tokens_out) / 1_000_000
        return CallRecord(
            self.name, usage.tokens_in, usage.tokens_out, cost, ms, outcome, usage.estimated
        )


def call(name: str, /, *, say: str = "", id_: str = "", **args: Any) -> Reply:
    """Return a Reply that calls the tool `name` with `args`, after the text `say`."""
    return calls(ToolCall(id_ or f"call_{name}", name, json.dumps(args)), say=say)


def calls(*tool_calls: ToolCall, say: str = "") -> Reply:
    """Return a Reply that calls several tools, or one with arguments that are no JSON."""
    return Reply(say, tool_calls, Usage(10, 5), "tool_calls", "scripted")


def _ends(length: int) -> list[int]:
    """Return where each piece of a text ends, the whole last."""
    return sorted({length * piece // PIECES for piece in range(1, PIECES + 1)} - {0})
