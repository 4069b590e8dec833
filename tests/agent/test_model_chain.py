"""Fallbacks, budgets and the choice of the model."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest
from pytest_django import Settings

from nahida.agent.model import Budget, Chain, chain_for, model_names
from nahida.agent.vocabulary import ErrorKind, ModelError
from nahida.config import Agent, Config
from nahida.config import Model as ModelConfig
from tests.agent.model_case import QUESTION, Asker
from tests.fakes.endpoint import Endpoint, delta, error, finish, sse
from tests.fakes.model import ScriptedModel, call

ROOMY = Budget(requests=10, tokens=1_000)


def failure(kind: ErrorKind, **fields: Any) -> ModelError:
    return ModelError(f"it is {kind}", kind=kind, **fields)


@pytest.fixture
def asker() -> Asker:
    return Asker()


@pytest.mark.parametrize("kind", ["unavailable", "rate_limited", "misconfigured"])
def test_it_moves_on_to_the_fallback(
    asker: Asker, kind: ErrorKind, caplog: pytest.LogCaptureFixture
):
    """A failed model hands over, and both calls are recorded."""
    main = ScriptedModel(failure(kind), name="main")
    spare = ScriptedModel("Hello", name="spare", context_tokens=8_000)
    chain = Chain([main, spare], budget=ROOMY)

    reply = asker.ask(chain)

    assert (reply.text, reply.model) == ("Hello", "spare")
    assert asker.outcomes == [kind, "stop"]
    assert f"it is {kind}; next model: spare" in caplog.text
    assert (chain.name, chain.context_tokens) == ("spare", 8_000)


def test_it_stays_with_the_fallback_for_the_turn(asker: Asker):
    """A tool loop does not wait for the dead model on each round."""
    main = ScriptedModel(failure("unavailable"), name="main")
    spare = ScriptedModel(call("get_weather"), "Rain", name="spare")
    chain = Chain([main, spare], budget=ROOMY)

    replies = [asker.ask(chain), asker.ask(chain)]

    assert [reply.finish for reply in replies] == ["tool_calls", "stop"]
    assert len(main.requests) == 1


@pytest.mark.parametrize("kind", ["too_long", "refused", "budget"])
def test_it_leaves_other_failures_to_the_caller(asker: Asker, kind: ErrorKind):
    """The caller shrinks the history; a refusal is no outage."""
    spare = ScriptedModel(name="spare")
    chain = Chain([ScriptedModel(failure(kind)), spare], budget=ROOMY)

    with pytest.raises(ModelError) as caught:
        asker.ask(chain)

    assert caught.value.kind == kind
    assert spare.requests == []


def test_it_asks_no_second_model_once_text_was_shown(asker: Asker):
    """It would repeat what somebody has read."""

    class Breaking(ScriptedModel):
        def ask(self, *args: Any, on_text: Any, **options: Any) -> Any:
            on_text("So f")
            raise failure("unavailable")

    spare = ScriptedModel(name="spare")

    with pytest.raises(ModelError):
        asker.ask(Chain([Breaking(), spare], budget=ROOMY))

    assert asker.shown == ["So f"]
    assert spare.requests == []


def test_it_raises_the_failure_that_may_pass(asker: Asker):
    """With every model down the turn is tried again, as late as the provider asks."""
    main = ScriptedModel(failure("misconfigured"), failure("misconfigured"), name="main")
    spare = ScriptedModel(
        failure("rate_limited", retry_after=9), failure("unavailable"), name="spare"
    )
    chain = Chain([main, spare], budget=ROOMY)

    with pytest.raises(ModelError) as first:
        asker.ask(chain)
    with pytest.raises(ModelError) as second:
        asker.ask(chain)

    assert (first.value.kind, first.value.retry_after) == ("rate_limited", 9)
    assert second.value.kind == "unavailable"
    assert len(main.requests) == 2


@pytest.mark.parametrize(
    ("budget", "word"),
    [
        (Budget(requests=1, tokens=1_000), "agent.max_requests"),
        (Budget(requests=10, tokens=15), "agent.max_tokens_per_turn"),
    ],
)
def test_it_stops_at_the_budget(asker: Asker, budget: Budget, word: str):
    """Looked at before each request, over all requests of the turn."""
    model = ScriptedModel(call("get_weather"))
    chain = Chain([model], budget=budget)
    asker.ask(chain)

    with pytest.raises(ModelError, match=word) as caught:
        asker.ask(chain)

    assert (caught.value.kind, caught.value.retryable) == ("budget", False)
    assert len(model.requests) == 1


def test_it_counts_failed_requests_too(asker: Asker):
    """A fallback needs a request of the budget as well."""
    spare = ScriptedModel(name="spare")
    chain = Chain(
        [ScriptedModel(failure("unavailable")), spare], budget=Budget(requests=1, tokens=1_000)
    )

    with pytest.raises(ModelError) as caught:
        asker.ask(chain)

    assert caught.value.kind == "budget"
    assert spare.requests == []


def test_it_asks_nobody_after_the_deadline(asker: Asker):
    """The seconds of a turn are a budget as well."""
    model = ScriptedModel()

    with pytest.raises(ModelError, match="seconds") as caught:
        Chain([model], budget=ROOMY).ask(
            QUESTION,
            on_text=asker.shown.append,
            record=asker.records.append,
            deadline=time.monotonic() - 1,
        )

    assert caught.value.kind == "budget"
    assert model.requests == []


def model_config(**fields: Any) -> ModelConfig:
    return ModelConfig(base_url="http://127.0.0.1:9/v1", model="m", **fields)


@pytest.fixture
def configured(settings: Settings) -> None:
    settings.NAHIDA = Config(
        agent=Agent(model="main", fallbacks=("spare",), max_requests=3, max_tokens_per_turn=1_000),
        models={
            "big": model_config(context_tokens=100_000, vision=True),
            "main": model_config(),
            "spare": model_config(context_tokens=9_000),
        },
    )


@pytest.mark.usefixtures("configured")
def test_it_takes_the_model_of_the_chat():
    """The chat's choice goes first, the default when there is none."""
    chosen = chain_for("big")

    assert (chosen.name, chosen.context_tokens, chosen.sees_images) == ("big", 100_000, True)
    assert chain_for().name == "main"


@pytest.mark.usefixtures("configured")
def test_it_answers_with_the_default_for_a_model_that_is_gone(
    caplog: pytest.LogCaptureFixture,
):
    """A chat that chose a model of last year still gets an answer, and the log says why."""
    with caplog.at_level(logging.WARNING):
        chain = chain_for("gone")

    assert chain.name == "main"
    assert 'no model "gone"' in caplog.text


@pytest.mark.usefixtures("configured")
def test_it_lists_the_models_default_first():
    """For `/model`."""
    assert model_names() == ("main", "big", "spare")


def test_it_falls_back_as_configured(settings: Settings, asker: Asker):
    """From the configuration to the wire: the key of `main` is refused, `spare` answers."""
    refused = Endpoint(error(401, {"error": {"message": "Who are you?"}}))
    willing = Endpoint(sse(delta("Hello"), finish()))
    with refused, willing:
        settings.NAHIDA = Config(
            agent=Agent(model="main", fallbacks=("spare",)),
            models={
                "main": ModelConfig(base_url=refused.base_url, model="m"),
                "spare": ModelConfig(base_url=willing.base_url, model="m"),
            },
        )

        reply = asker.ask(chain_for())

    assert (reply.text, reply.model) == ("Hello", "spare")
    assert asker.outcomes == ["misconfigured", "stop"]
