"""What compatible servers do with a stream, beyond what llmock can."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nahida.agent.vocabulary import ModelError, ToolCall
from tests.agent.model_case import WEATHER, Asker, model_at
from tests.fakes.endpoint import Answer, Endpoint, delta, error, finish, sse, usage


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def asker() -> Asker:
    return Asker()


def call(*fragments: dict[str, object]) -> dict[str, object]:
    return delta(tool_calls=list(fragments))


def function(name: str | None = None, arguments: object = None) -> dict[str, object]:
    return {"function": {"name": name, "arguments": arguments}}


def test_it_skips_comments_blank_lines_and_empty_choices(endpoint: Endpoint, asker: Asker):
    """Servers keep a queued request alive, and send chunks without a choice."""
    endpoint.enqueue(
        sse(
            ": OPENROUTER PROCESSING\n\n",
            "\r\n\r\n",
            {"choices": [], "prompt_filter_results": []},
            delta(content=None, role="assistant") | {"usage": None},
            delta("Hel"),
            ": keep-alive\n",
            delta("lo"),
            finish("stop"),
            usage(12, 3, prompt_tokens_details={"cached_tokens": 8}),
        )
    )

    reply = asker.ask(model_at(endpoint.base_url))

    assert (reply.text, reply.finish) == ("Hello", "stop")
    assert (reply.usage.tokens_in, reply.usage.tokens_out, reply.usage.cached) == (12, 3, 8)
    assert not reply.usage.estimated
    assert asker.shown == ["Hel", "Hello"]


def test_it_estimates_a_missing_usage(endpoint: Endpoint, asker: Asker):
    """Cost must not vanish because a server does not count."""
    endpoint.enqueue(sse(delta("Hello"), finish("stop")))

    reply = asker.ask(model_at(endpoint.base_url))

    assert reply.usage.estimated
    assert reply.usage.tokens_in > 5
    assert reply.usage.tokens_out == 2
    assert asker.records[0].estimated


def test_it_finds_tool_calls_behind_a_stop(endpoint: Endpoint, asker: Asker):
    """The finish reason of some servers is wrong; the calls are not."""
    whole = {"index": 0, "id": "a", "type": "function"} | function(
        "get_weather", '{"city": "Oslo"}'
    )
    endpoint.enqueue(sse(call(whole), finish("stop")))

    reply = asker.ask(model_at(endpoint.base_url), tools=[WEATHER])

    assert reply.finish == "tool_calls"
    assert reply.tool_calls == (ToolCall("a", "get_weather", '{"city": "Oslo"}'),)


def test_it_puts_calls_together_without_index(endpoint: Endpoint, asker: Asker):
    """Pieces without index or id belong to the call begun last."""
    endpoint.enqueue(
        sse(
            call({"id": "a"} | function("get_weather", "")),
            call(function(arguments='{"city":')),
            call(function(arguments='"Oslo"}')),
            call({"id": "b"} | function("get_weather", '{"city":"Rome"}')),
            finish("tool_calls"),
        )
    )

    reply = asker.ask(model_at(endpoint.base_url), tools=[WEATHER])

    assert [(c.id, c.arguments) for c in reply.tool_calls] == [
        ("a", '{"city":"Oslo"}'),
        ("b", '{"city":"Rome"}'),
    ]


def test_it_tells_calls_apart_that_share_an_index(endpoint: Endpoint, asker: Asker):
    """Some servers number every call 0."""
    endpoint.enqueue(
        sse(
            call({"index": 0, "id": "a"} | function("get_weather", '{"city":"Oslo"}')),
            call({"index": 0, "id": "b"} | function("get_weather", '{"city":"Rome"}')),
            finish("tool_calls"),
        )
    )

    reply = asker.ask(model_at(endpoint.base_url), tools=[WEATHER])

    assert [c.arguments for c in reply.tool_calls] == ['{"city":"Oslo"}', '{"city":"Rome"}']


def test_it_names_calls_that_have_no_id(endpoint: Endpoint, asker: Asker):
    """Each answer to a call needs an id to answer to; arguments may come as an object."""
    endpoint.enqueue(
        sse(
            call({"index": 0} | function("get_weather", {"city": "Oslo"})),
            call({"index": 1, "id": ""} | function("get_weather", None)),
            finish("tool_calls"),
        )
    )

    reply = asker.ask(model_at(endpoint.base_url), tools=[WEATHER])

    first, second = reply.tool_calls
    assert first.id
    assert second.id
    assert first.id != second.id
    assert (first.arguments, second.arguments) == ('{"city": "Oslo"}', "")


def test_it_keeps_one_name_that_comes_with_each_piece(endpoint: Endpoint, asker: Asker):
    """Repeated names are not joined."""
    endpoint.enqueue(
        sse(
            call({"index": 0, "id": "a"} | function("get_weather", '{"city"')),
            call({"index": 0, "id": "a"} | function("get_weather", ': "Oslo"}')),
            finish("tool_calls"),
        )
    )

    reply = asker.ask(model_at(endpoint.base_url), tools=[WEATHER])

    assert reply.tool_calls == (ToolCall("a", "get_weather", '{"city": "Oslo"}'),)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_it_drops_the_calls_of_a_reply_cut_short(endpoint: Endpoint, asker: Asker, reason: str):
    """At the token limit the last call may be half of one."""
    endpoint.enqueue(
        sse(
            delta("I will"),
            call({"index": 0, "id": "a"} | function("get_weather", '{"city": "O')),
            finish(reason),
        )
    )

    reply = asker.ask(model_at(endpoint.base_url), tools=[WEATHER])

    assert (reply.text, reply.finish, reply.tool_calls) == ("I will", reason, ())


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"message": "Overloaded", "code": 503}, "unavailable"),
        ({"message": "try later", "type": "server_error", "code": None}, "unavailable"),
        ({"message": "slow down", "code": 429}, "rate_limited"),
        ({"message": "slow down", "code": "rate_limit_exceeded"}, "rate_limited"),
        ({"message": "no money", "code": "insufficient_quota"}, "misconfigured"),
        ({"message": "n_prompt_tokens", "type": "exceed_context_size_error"}, "too_long"),
        ({"message": "bad", "code": 400}, "refused"),
        ("something broke", "unavailable"),
    ],
)
def test_it_takes_an_error_inside_a_stream(
    endpoint: Endpoint, asker: Asker, said: object, kind: str
):
    """Under a 200 an error is still an error; its code may be a number or nothing."""
    endpoint.enqueue(sse(delta(content=None, role="assistant"), {"error": said}))

    with pytest.raises(ModelError) as caught:
        asker.ask(model_at(endpoint.base_url, max_retries=0))

    assert caught.value.kind == kind
    assert asker.outcomes == [kind]


def test_it_keeps_the_text_before_an_error_in_the_stream(endpoint: Endpoint, asker: Asker):
    """Shown text stays, marked."""
    endpoint.enqueue(sse(delta("So far"), {"error": {"message": "boom", "code": 500}}))

    reply = asker.ask(model_at(endpoint.base_url))

    assert (reply.text, reply.finish) == ("So far", "cut")


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource", None, ""])
def test_it_takes_no_finish_for_whole_that_is_none(
    endpoint: Endpoint, asker: Asker, reason: str | None
):
    """A stream without a real finish reason is broken, [DONE] or not."""
    endpoint.enqueue(sse(delta("So far"), finish(reason)))

    reply = asker.ask(model_at(endpoint.base_url))

    assert (reply.text, reply.finish) == ("So far", "cut")


def test_it_accepts_what_was_finished_before_the_break(endpoint: Endpoint, asker: Asker):
    """After the finish reason only the usage is missing."""
    endpoint.enqueue(sse(delta("All of it"), finish("stop"), ends="dropped"))

    reply = asker.ask(model_at(endpoint.base_url))

    assert (reply.text, reply.finish, reply.usage.estimated) == ("All of it", "stop", True)


def test_it_shows_a_refusal(endpoint: Endpoint, asker: Asker):
    """A refusal is the answer."""
    endpoint.enqueue(sse(delta(refusal="I cannot"), delta(refusal=" do that."), finish("stop")))

    reply = asker.ask(model_at(endpoint.base_url))

    assert reply.text == "I cannot do that."
    assert asker.shown[-1] == reply.text


def test_it_replaces_what_no_database_takes(endpoint: Endpoint, asker: Asker):
    """Halves of a pair are joined over chunks; a lone one and NUL are replaced."""
    half, other = "\ud83d", "\ude00"
    endpoint.enqueue(
        sse(
            delta(f"a{half}"),
            delta(f"{other} b\x00 c{other} d{half}"),
            call({"index": 0, "id": "a"} | function("get_weather", f'{{"city": "{half}"}}')),
            finish("tool_calls"),
        )
    )

    reply = asker.ask(model_at(endpoint.base_url), tools=[WEATHER])

    assert reply.text == "a😀 b\ufffd c\ufffd d\ufffd"
    assert reply.tool_calls[0].arguments == '{"city": "\ufffd"}'
    for text in asker.shown:
        text.encode()


def test_it_treats_bytes_that_are_no_utf8_as_a_break(endpoint: Endpoint, asker: Asker):
    """Text may be missing there, and nobody can say which."""
    headers = {"Content-Type": "text/event-stream"}
    endpoint.enqueue(Answer((b'data: {"choices": "\xff"}\n\n',), headers=headers))
    endpoint.enqueue(sse(delta("Fine"), finish()))

    reply = asker.ask(model_at(endpoint.base_url))

    assert reply.text == "Fine"
    assert asker.outcomes == ["unavailable", "stop"]


def test_it_takes_a_whole_answer_from_a_server_that_does_not_stream(
    endpoint: Endpoint, asker: Asker
):
    """Then the text comes at once."""
    whole = {
        "choices": [
            {"message": {"role": "assistant", "content": "Whole"}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 1},
    }
    endpoint.enqueue(error(200, whole))

    reply = asker.ask(model_at(endpoint.base_url))

    assert (reply.text, reply.usage.tokens_in) == ("Whole", 7)
    assert asker.shown == ["Whole"]


def test_it_says_that_a_web_page_is_no_answer(endpoint: Endpoint, asker: Asker):
    """A wrong base_url often leads to a page under a 200."""
    endpoint.enqueue(error(200, "<html>Welcome</html>"))

    with pytest.raises(ModelError, match="base_url is wrong") as caught:
        asker.ask(model_at(endpoint.base_url))

    assert caught.value.kind == "misconfigured"


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (400, {"error": {"message": "bad", "code": 400}}, "refused", "bad"),
        (400, {"error": {"code": 400, "type": "exceed_context_size_error"}}, "too_long", "400"),
        (400, {"message": "maximum context length is 8192"}, "too_long", "8192"),
        (400, {"error": {"message": "Your credit balance is too low"}}, "misconfigured", "low"),
        (404, {"error": "model 'x' not found"}, "misconfigured", "model 'x' not found"),
        (401, "<html>\n<b>Who</b></html>", "misconfigured", "<b>Who</b>"),
        (403, "", "misconfigured", "nothing"),
        (422, {"detail": [{"loc": ["body"]}]}, "refused", '"loc"'),
        (503, {"error": {"message": "Loading model", "code": 503}}, "unavailable", "Loading"),
        (500, "<html>oops</html>", "unavailable", "oops"),
    ],
)
def test_it_reads_every_form_of_error(
    endpoint: Endpoint, asker: Asker, status: int, body: object, kind: str, said: str
):
    """Whatever the form, the kind is right and an excerpt is kept."""
    endpoint.enqueue(error(status, body))

    with pytest.raises(ModelError) as caught:
        asker.ask(model_at(endpoint.base_url, max_retries=0))

    assert caught.value.kind == kind
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after": "7", "retry_after_ms": "1500"}, 1.5),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
def test_it_reads_every_form_of_retry_after(
    endpoint: Endpoint, asker: Asker, headers: dict[str, str], seconds: float | None
):
    """Seconds, milliseconds, a date."""
    endpoint.enqueue(error(429, {"error": {"message": "slow down"}}, **headers))

    with pytest.raises(ModelError) as caught:
        asker.ask(model_at(endpoint.base_url, max_retries=0))

    assert caught.value.retry_after == seconds


def test_it_does_without_stream_options_where_they_are_unknown(endpoint: Endpoint, asker: Asker):
    """An old server refuses them once; then they are left out."""
    endpoint.enqueue(
        error(422, {"detail": "stream_options: extra fields not permitted"}),
        sse(delta("One"), finish()),
        sse(delta("Two"), finish()),
    )
    model = model_at(endpoint.base_url)

    texts = [asker.ask(model).text, asker.ask(model).text]

    assert texts == ["One", "Two"]
    assert ["stream_options" in body for body in endpoint.bodies] == [True, False, False]
    assert asker.outcomes == ["refused", "stop", "stop"]


@pytest.mark.parametrize("ends", ["silent", "chatty"])
def test_it_ends_a_stream_at_the_deadline(endpoint: Endpoint, asker: Asker, ends):
    """Neither silence nor endless comments hold a turn beyond its time."""
    endpoint.enqueue(sse(delta(content=None, role="assistant"), ends=ends))

    with pytest.raises(ModelError) as caught:
        asker.ask(model_at(endpoint.base_url), seconds=0.2)

    assert (caught.value.kind, caught.value.retryable) == ("budget", False)
    assert asker.outcomes == ["budget"]
    assert endpoint.hung_up.wait(5)


def test_it_keeps_what_was_shown_at_the_deadline(endpoint: Endpoint, asker: Asker):
    """Half an answer is better than none."""
    endpoint.enqueue(sse(delta("So far"), ends="silent"))

    reply = asker.ask(model_at(endpoint.base_url), seconds=0.2)

    assert (reply.text, reply.finish) == ("So far", "cut")


def test_it_sends_nothing_after_the_deadline(endpoint: Endpoint, asker: Asker):
    """A turn whose time is up asks nobody."""
    with pytest.raises(ModelError) as caught:
        asker.ask(model_at(endpoint.base_url), seconds=0)

    assert caught.value.kind == "budget"
    assert (endpoint.bodies, asker.records) == ([], [])


def test_it_hangs_up_when_the_listener_raises(endpoint: Endpoint):
    """A stopped turn costs no more tokens: the server sees the connection close."""
    endpoint.enqueue(sse(delta("One"), ends="silent"))

    def listener(text: str) -> None:
        raise ModelError("stop", kind="refused")

    with pytest.raises(ModelError, match=r"^stop$"):
        model_at(endpoint.base_url).ask(
            [], on_text=listener, record=lambda record: None, deadline=float("inf")
        )

    assert endpoint.hung_up.wait(5)


def test_it_says_when_nobody_listens(asker: Asker):
    """A connect error is tried again, recorded each time, and names the address."""
    with Endpoint() as endpoint:
        base_url = endpoint.base_url

    with pytest.raises(ModelError, match=base_url) as caught:
        asker.ask(model_at(base_url, max_retries=1))

    assert caught.value.retryable
    assert asker.outcomes == ["unavailable"] * 2
