"""What the tests of the model client share: one question, and a place for all that comes back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from nahida.agent.openai import OpenAIModel
from nahida.agent.vocabulary import CallRecord, Message, Model, Reply, ToolSpec
from nahida.config import Model as ModelConfig

QUESTION = (Message("system", "Be brief."), Message("user", "What is up?"))
WEATHER = ToolSpec(
    "get_weather",
    "Say the weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def model_at(base_url: str, name: str = "main", **fields: Any) -> OpenAIModel:
    return OpenAIModel(name, ModelConfig(base_url=base_url, model="gpt-4o", **fields))


class Asker:
    """Asks a model and keeps what it showed and recorded."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.records: list[CallRecord] = []

    @property
    def outcomes(self) -> list[str]:
        return [record.outcome for record in self.records]

    def ask(
        self,
        model: Model,
        messages: Sequence[Message] = QUESTION,
        *,
        tools: Sequence[ToolSpec] = (),
        seconds: float = 20,
    ) -> Reply:
        return model.ask(
            messages,
            tools=tools,
            on_text=self.shown.append,
            record=self.records.append,
            deadline=time.monotonic() + seconds,
        )
