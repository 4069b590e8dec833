"""What is sent to a model, and what of its thoughts comes back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nahida.agent.vocabulary import Message, ToolCall
from tests.agent.model_case import QUESTION, WEATHER, Asker, model_at
from tests.fakes.endpoint import Endpoint, delta, finish, sse

PIXEL = "data:image/png;base64,AAAA"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(sse(delta("Yes"), finish())) as endpoint:
        yield endpoint


@pytest.fixture
def asker() -> Asker:
    return Asker()


def test_it_sends_only_what_is_set(endpoint: Endpoint, asker: Asker):
    """Strict servers answer 400 to a field they do not know."""
    asker.ask(model_at(endpoint.base_url, max_output_tokens=100))

    assert endpoint.bodies == [
        {
            "model": "gpt-4o",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "What is up?"},
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_completion_tokens": 100,
        }
    ]


def test_it_sends_what_the_owner_configured(endpoint: Endpoint, asker: Asker):
    """Names and extras differ between servers."""
    model = model_at(
        endpoint.base_url,
        api_key="sk-1",
        max_tokens_field="max_tokens",
        temperature=0,
        extra_body={"thinking": {"type": "disabled"}},
    )

    asker.ask(model, tools=[WEATHER])

    [body] = endpoint.bodies
    assert body["max_tokens"] == 4096
    assert "max_completion_tokens" not in body
    assert body["temperature"] == 0
    assert body["thinking"] == {"type": "disabled"}
    assert body["tools"][0]["type"] == "function"
    assert body["tools"][0]["function"]["name"] == "get_weather"
    assert endpoint.headers[0]["authorization"] == "Bearer sk-1"


def test_it_sends_images_to_a_model_that_sees(endpoint: Endpoint, asker: Asker):
    """Parts only where there is an image."""
    message = Message("user", "What is this?", images=(PIXEL,))

    asker.ask(model_at(endpoint.base_url, vision=True), [*QUESTION, message])

    sent = endpoint.bodies[0]["messages"]
    assert isinstance(sent[1]["content"], str)
    assert sent[2]["content"] == [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": PIXEL}},
    ]


def test_it_tells_a_blind_model_of_an_image(endpoint: Endpoint, asker: Asker):
    """A fallback that sees nothing must not fail because of it."""
    asker.ask(model_at(endpoint.base_url), [Message("user", "Look", images=(PIXEL,))])

    sent = endpoint.bodies[0]["messages"][0]["content"]
    assert sent.startswith("Look\n[1 image")


def test_it_sends_calls_and_their_answers_back(endpoint: Endpoint, asker: Asker):
    """What the model garbled is mended: servers that parse the history refuse it."""
    calls = (
        ToolCall("a", "get_weather", '{"city": "Oslo"}'),
        ToolCall("b", "get weather!", '{"city'),
        ToolCall("c", "", ""),
    )
    answers = [Message("tool", "no", tool_call_id=call.id) for call in calls]

    asker.ask(model_at(endpoint.base_url), [Message("assistant", tool_calls=calls), *answers])

    first, *rest = endpoint.bodies[0]["messages"]
    assert first["content"] is None
    assert [call["function"] for call in first["tool_calls"]] == [
        {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
        {"name": "get_weather_", "arguments": "{}"},
        {"name": "unknown", "arguments": "{}"},
    ]
    assert rest[0] == {"role": "tool", "content": "no", "tool_call_id": "a"}


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_it_keeps_reasoning_beside_the_answer(endpoint: Endpoint, asker: Asker, name: str):
    """It is never shown, and keeps the name it came under."""
    thinking = Endpoint(
        sse(delta(**{name: "Let me "}), delta(**{name: "see."}), delta("42"), finish())
    )

    with thinking:
        reply = asker.ask(model_at(thinking.base_url))

    assert (reply.text, reply.reasoning) == ("42", "Let me see.")
    assert reply.reasoning_field == name
    assert asker.shown == ["42"]


def test_it_ignores_reasoning_that_is_no_text(asker: Asker):
    """Some servers put an object there."""
    with Endpoint(sse(delta("42", reasoning={"effort": "low"}), finish())) as endpoint:
        reply = asker.ask(model_at(endpoint.base_url))

    assert (reply.text, reply.reasoning, reply.reasoning_field) == ("42", "", "")


@pytest.mark.parametrize("back", [True, False])
def test_it_sends_reasoning_back_only_where_asked_to(endpoint: Endpoint, asker: Asker, back: bool):
    """DeepSeek wants it for turns with tool calls; others refuse the field."""
    call = ToolCall("a", "get_weather", "{}")
    history = [
        Message("assistant", "Hi", reasoning="Greet.", reasoning_field="reasoning_content"),
        Message(
            "assistant",
            tool_calls=(call,),
            reasoning="Look.",
            reasoning_field="reasoning_content",
        ),
        Message("tool", "Rain", tool_call_id="a"),
    ]

    asker.ask(model_at(endpoint.base_url, reasoning_back=back), history)

    plain, with_call, _ = endpoint.bodies[0]["messages"]
    assert "reasoning_content" not in plain
    assert with_call.get("reasoning_content") == ("Look." if back else None)


@pytest.mark.parametrize(
    ("pieces", "text", "thoughts"),
    [
        (["<think>Hm.</think>\n\nYes"], "Yes", "Hm."),
        (["<thi", "nk>", "H", "m.</", "thi", "nk", ">\nY", "es"], "Yes", "Hm."),
        (["\n<THINK>\nHm.\n</THINK>\nYes"], "Yes", "Hm."),
        (["Hm.\n</think>\n\nYes"], "Yes", "Hm."),  # the template wrote the opening tag
        (["Hm.</thi", "nk>Yes"], "Yes", "Hm."),
        (["Yes<think>Hm.</think>, sure"], "Yes, sure", "Hm."),
        (["<thinking>Hm.</thinking>Yes"], "Yes", "Hm."),
        (["<think></think>Yes"], "Yes", ""),
        (["<think>Hm."], "", "Hm."),
        (["Write `<think>` there"], "Write `<think>` there", ""),
        (["```\n<think>a</think>\n```"], "```\n<think>a</think>\n```", ""),
        (["The tag <think> opens it"], "The tag <think> opens it", ""),
        (["1 <", " 2 <", "th"], "1 < 2 <th", ""),
    ],
)
def test_it_takes_thoughts_out_of_the_text(
    asker: Asker, pieces: list[str], text: str, thoughts: str
):
    """Whole, split over chunks, or without their opening; not where the tag is spoken of."""
    with Endpoint(sse(*map(delta, pieces), finish())) as endpoint:
        reply = asker.ask(model_at(endpoint.base_url))

    assert (reply.text, reply.reasoning) == (text, thoughts)
    assert reply.reasoning_field == ""
    if text:
        assert asker.shown[-1] == text


def test_it_never_shows_a_thought_on_the_way(asker: Asker):
    """Nor a tag that is still growing."""
    with Endpoint(sse(*map(delta, "<think>Hm.</think>\nYes, I do"), finish())) as endpoint:
        asker.ask(model_at(endpoint.base_url))

    assert asker.shown == ["Yes, I do"[:end] for end in range(1, 10)]


def test_it_takes_content_in_parts(asker: Asker):
    """Mistral's thinking models send text and thoughts as parts."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    parts = [thinking, {"type": "text", "text": "Yes"}]

    with Endpoint(sse(delta(parts), finish())) as endpoint:
        reply = asker.ask(model_at(endpoint.base_url))

    assert (reply.text, reply.reasoning) == ("Yes", "Hm.")
