"""The scripted model itself: a test that asks too much must fail."""

from __future__ import annotations

import contextlib
import json

import pytest

from nahida.agent.vocabulary import Message
from tests.agent.model_case import WEATHER, Asker
from tests.fakes.model import ScriptedModel, call


def test_it_says_what_was_written():
    """Text in pieces, tool calls, and answers made from the messages."""
    model = ScriptedModel(
        "Hello there", call("get_weather", city="Oslo"), lambda messages: messages[-1].text.upper()
    )
    asker = Asker()

    replies = [asker.ask(model, [Message("user", "loud")], tools=[WEATHER]) for _ in range(3)]

    assert [reply.text for reply in replies] == ["Hello there", "", "LOUD"]
    assert json.loads(replies[1].tool_calls[0].arguments) == {"city": "Oslo"}
    assert asker.shown[:3] == ["Hel", "Hello t", "Hello there"]
    assert asker.outcomes == ["stop", "tool_calls", "stop"]
    assert model.requests[0].tools == (WEATHER,)
    model.check()


def test_it_raises_what_was_written():
    """An exception among the replies is raised as it is."""
    error = RuntimeError("boom")
    model = ScriptedModel(error)

    with pytest.raises(RuntimeError) as caught:
        Asker().ask(model)

    assert caught.value is error


def test_it_remembers_an_unscripted_request():
    """Also when the code under test swallows the failure."""
    model = ScriptedModel()

    with contextlib.suppress(Exception):
        Asker().ask(model)

    with pytest.raises(AssertionError, match="What is up"):
        model.check()


def test_it_tells_of_a_reply_nobody_asked_for():
    """A turn that asked too little fails as well."""
    with pytest.raises(AssertionError, match="nobody asked"):
        ScriptedModel("Hello").check()
