"""Which model answers a turn, what stands in when it fails, and what a turn may use up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.conf import settings

from nahida.agent.openai import OpenAIModel
from nahida.agent.vocabulary import CallRecord, Message, Model, ModelError, Reply, ToolSpec
from nahida.config import Config

logger = logging.getLogger(__name__)

MOVES_ON = frozenset({"unavailable", "rate_limited", "misconfigured"})


@dataclass(frozen=True, slots=True)
class Budget:
    """What one turn may use; its seconds are the deadline given to `ask`."""

    requests: int
    tokens: int  # in and out


class Chain:
    """A model with its fallbacks and budget, made for one turn.

    A model that fails before it has shown any text hands over to the next, which stays for the
    rest of the turn. The budget is looked at before each model is asked: the retries inside one
    `ask` count, but are not cut short.
    """

    def __init__(self, models: Sequence[Model], *, budget: Budget) -> None:
        assert models, "a chain without a model cannot answer"
        self._models = tuple(models)
        self._budget = budget
        self._at = 0
        self.requests = 0
        self.tokens = 0

    @property
    def name(self) -> str:
        return self._models[self._at].name

    @property
    def context_tokens(self) -> int:
        return self._models[self._at].context_tokens

    @property
    def sees_images(self) -> bool:
        return self._models[self._at].sees_images

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

        When every model failed, a failure that may pass is raised before one that will not.
        """
        shown = False

        def showing(text: str) -> None:
            nonlocal shown
            shown = True
            on_text(text)

        def counting(call: CallRecord) -> None:
            self.requests += 1
            self.tokens += call.tokens_in + call.tokens_out
            record(call)

        failures: list[ModelError] = []
        for at in range(self._at, len(self._models)):
            self._at = at
            self._check_budget(deadline=deadline)
            try:
                return self._models[at].ask(
                    messages, tools=tools, on_text=showing, record=counting, deadline=deadline
                )
            except ModelError as error:
                if shown or error.kind not in MOVES_ON:
                    raise
                failures.append(error)
                self._log(error, at=at)
        self._at = 0
        raise next((error for error in failures if error.retryable), failures[0])

    def _check_budget(self, *, deadline: float) -> None:
        if self.requests >= self._budget.requests:
            used = f"{self.requests} model requests of this turn (agent.max_requests)"
        elif self.tokens >= self._budget.tokens:
            used = f"{self.tokens} tokens of this turn (agent.max_tokens_per_turn)"
        elif time.monotonic() >= deadline:
            used = "seconds of this turn"
        else:
            return
        raise ModelError(f"the {used} are used up", kind="budget")

    def _log(self, error: ModelError, *, at: int) -> None:
        following = self._models[at + 1].name if at + 1 < len(self._models) else "none"
        level = logging.ERROR if error.kind == "misconfigured" else logging.WARNING
        logger.log(level, "%s; next model: %s", error, following)


def chain_for(chat_model: str = "") -> Chain:
    """Return the chain of a new turn in a chat that chose `chat_model` ("": the default)."""
    config: Config = settings.NAHIDA
    agent = config.agent
    if chat_model and chat_model not in config.models:
        logger.warning(
            'no model "%s": write one of %s; answering with "%s"',
            chat_model,
            ", ".join(model_names()),
            agent.model,
        )
        chat_model = ""
    names = dict.fromkeys([chat_model or agent.model, *agent.fallbacks])
    return Chain(
        [_model(name, config=config) for name in names],
        budget=Budget(requests=agent.max_requests, tokens=agent.max_tokens_per_turn),
    )


def model_names() -> tuple[str, ...]:
    """Return the configured models, the default first."""
    config: Config = settings.NAHIDA
    return tuple(dict.fromkeys([config.agent.model, *config.models]))


# One client, and its open connections, for each configured model of a process.
_models: dict[str, OpenAIModel] = {}


def _model(name: str, *, config: Config) -> OpenAIModel:
    model = _models.get(name)
    if model is None or model.config != config.models[name]:
        model = _models[name] = OpenAIModel(name, config.models[name])
    return model
