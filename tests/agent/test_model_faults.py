"""llmock breaks the wire on purpose and judges how our client took it."""

from __future__ import annotations

import json

import pytest
from llmock.pytest_plugin import LLMock
from llmock.scenarios import Reply as Said
from llmock.scenarios import StreamFault, StreamFaultKind
from llmock.scenarios import ToolCall as SaidCall

from nahida.agent.vocabulary import Message, ModelError
from tests.agent.model_case import WEATHER, Asker, model_at

SOON = 0.05  # seconds of Retry-After, so that the SDK waits no longer than that


def test_it_streams_an_answer(llmock: LLMock):
    """The text grows on the way, and usage and record are the provider's own."""
    llmock.reply("All is well today")
    asker = Asker()

    reply = asker.ask(model_at(llmock.base_url(), price_in=2, price_out=10))

    assert reply.text == "All is well today"
    assert (reply.finish, reply.model) == ("stop", "main")
    assert not reply.usage.estimated
    assert asker.shown[0] == "All "
    assert asker.shown[-1] == reply.text
    [record] = asker.records
    assert (record.model, record.outcome) == ("main", "stop")
    assert record.cost is not None
    assert record.cost * 1_000_000 == 2 * record.tokens_in + 10 * record.tokens_out
    llmock.assert_resilient(strict=True)


def test_it_waits_as_long_as_the_rate_limit_asks(llmock: LLMock):
    """A 429 is tried again after Retry-After; each request is recorded."""
    llmock.rate_limit(times=2, retry_after=0.3)
    llmock.reply("Here I am")
    asker = Asker()

    reply = asker.ask(model_at(llmock.base_url()))

    assert reply.text == "Here I am"
    assert asker.outcomes == ["rate_limited", "rate_limited", "stop"]
    llmock.assert_resilient(strict=True)


def test_it_gives_up_with_what_the_rate_limit_asked(llmock: LLMock):
    """The caller learns when to come back."""
    llmock.rate_limit(times=None, retry_after=0.2)
    asker = Asker()

    with pytest.raises(ModelError) as caught:
        asker.ask(model_at(llmock.base_url(), max_retries=1))

    assert (caught.value.kind, caught.value.retryable) == ("rate_limited", True)
    assert caught.value.retry_after == 0.2
    assert asker.outcomes == ["rate_limited"] * 2
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("wait", [30, 600])
def test_it_does_not_wait_beyond_the_deadline(llmock: LLMock, wait: int):
    """A Retry-After that the turn cannot afford is the caller's to keep."""
    llmock.rate_limit(retry_after=wait)
    asker = Asker()

    with pytest.raises(ModelError) as caught:
        asker.ask(model_at(llmock.base_url()), seconds=10)

    assert caught.value.retry_after == wait
    assert len(llmock.requests) == 1


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 529])
def test_it_tries_again_when_the_server_fails(llmock: LLMock, status: int):
    """What may pass is tried again."""
    llmock.fail(status, retry_after=SOON)
    llmock.reply("Back again")
    asker = Asker()

    reply = asker.ask(model_at(llmock.base_url()))

    assert reply.text == "Back again"
    assert asker.outcomes == ["unavailable", "stop"]
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, None, "refused"),
        (400, "context_length_exceeded", "too_long"),
        (400, "content_filter", "refused"),
        (401, "invalid_api_key", "misconfigured"),
        (402, None, "misconfigured"),
        (403, None, "misconfigured"),
        (404, "model_not_found", "misconfigured"),
        (413, None, "too_long"),
        (422, None, "refused"),
        (429, "insufficient_quota", "misconfigured"),
        (429, "credit_balance_exhausted", "misconfigured"),
    ],
)
def test_it_asks_once_what_will_not_pass(llmock: LLMock, status: int, code: str, kind: str):
    """A request that must fail again is not repeated, an empty account included."""
    llmock.fail(status, times=None, code=code, message="No.")
    asker = Asker()

    with pytest.raises(ModelError, match="No") as caught:
        asker.ask(model_at(llmock.base_url()))

    assert (caught.value.kind, caught.value.retryable) == (kind, False)
    assert asker.outcomes == [kind]
    assert len(llmock.requests) == 1


@pytest.mark.parametrize("fault", ["disconnect", "truncate", "malformed"])
def test_it_opens_a_stream_again_that_broke_before_any_text(llmock: LLMock, fault: StreamFaultKind):
    """Nobody has seen anything, so the whole answer can be asked for again."""
    llmock.add(StreamFault(fault, after_chunks=1))
    llmock.reply("Second try", times=2)
    asker = Asker()

    reply = asker.ask(model_at(llmock.base_url()))

    assert reply.text == "Second try"
    assert asker.outcomes == ["unavailable", "stop"]
    llmock.assert_resilient()


@pytest.mark.parametrize("fault", ["disconnect", "truncate", "malformed"])
def test_it_keeps_the_text_of_a_stream_cut_later(llmock: LLMock, fault: StreamFaultKind):
    """Shown text is never repeated: it stays, marked as cut."""
    llmock.add(StreamFault(fault, after_chunks=3))
    llmock.reply("One two three four")
    asker = Asker()

    reply = asker.ask(model_at(llmock.base_url()))

    assert (reply.text, reply.finish) == ("One two", "cut")
    assert reply.usage.estimated
    assert asker.outcomes == ["cut"]
    assert len(llmock.requests) == 1


def test_it_gives_up_on_a_stream_that_breaks_twice(llmock: LLMock):
    """A server that never ends an answer is down."""
    llmock.truncate(after_chunks=1, times=None)
    asker = Asker()

    with pytest.raises(ModelError, match="without a finish reason") as caught:
        asker.ask(model_at(llmock.base_url()))

    assert caught.value.retryable
    assert asker.outcomes == ["unavailable"] * 2


def test_it_does_not_sit_through_a_stall(llmock: LLMock):
    """A silent stream ends at the read time-out."""
    llmock.stall(after_chunks=2, seconds=5)
    llmock.reply("One two three")
    asker = Asker()

    reply = asker.ask(model_at(llmock.base_url(), read_s=0.2))

    assert (reply.text, reply.finish) == ("One", "cut")
    llmock.assert_resilient(strict=True)


def test_it_puts_tool_calls_together(llmock: LLMock):
    """Arguments come in fragments, several calls in one answer."""
    cities = ["Reykjavík", "São Tomé and Príncipe"]
    said = tuple(SaidCall("get_weather", {"city": city}) for city in cities)
    llmock.add(Said(text="Let me look.", tool_calls=said))
    asker = Asker()

    reply = asker.ask(model_at(llmock.base_url()), tools=[WEATHER])

    assert (reply.text, reply.finish) == ("Let me look.", "tool_calls")
    assert [call.name for call in reply.tool_calls] == ["get_weather"] * 2
    assert [json.loads(call.arguments)["city"] for call in reply.tool_calls] == cities
    assert len({call.id for call in reply.tool_calls}) == 2
    assert asker.outcomes == ["tool_calls"]


def test_it_hands_over_a_broken_tool_call_as_it_came(llmock: LLMock):
    """The loop tells the model what is wrong, so it must see the text."""
    llmock.break_tool_call("malformed_arguments")
    asker = Asker()

    reply = asker.ask(model_at(llmock.base_url()), tools=[WEATHER])

    [call] = reply.tool_calls
    assert call.name == "get_weather"
    with pytest.raises(ValueError, match=r".+"):
        json.loads(call.arguments)


def test_it_never_returns_the_tool_calls_of_a_cut_stream(llmock: LLMock):
    """Half a call must not run."""
    llmock.call_tool("get_weather", {"city": "A city with a long name"}, text="Wait.")
    llmock.truncate(after_chunks=5)
    asker = Asker()

    reply = asker.ask(model_at(llmock.base_url()), tools=[WEATHER])

    assert (reply.text, reply.finish, reply.tool_calls) == ("Wait.", "cut", ())


def test_it_stops_the_stream_when_the_listener_raises(llmock: LLMock):
    """The exception comes back as it was, and the request is recorded as stopped."""
    llmock.reply("One two three four")
    asker = Asker()
    stop = KeyError("stop")

    def listener(text: str) -> None:
        raise stop

    with pytest.raises(KeyError) as caught:
        model_at(llmock.base_url()).ask(
            [Message("user", "Hi")],
            on_text=listener,
            record=asker.records.append,
            deadline=float("inf"),
        )

    assert caught.value is stop
    assert asker.outcomes == ["stopped"]
    assert asker.records[0].estimated
