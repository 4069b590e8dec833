"""What a tool is, and how a call of one is checked, limited and run once (DESIGN 5, R8)."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ValidationError

from memory_app import toolcalls
from memory_app.turns import Outgoing
from nahida.agent.policy import RefusedError, Rights, require
from nahida.agent.vocabulary import ToolCall, ToolSpec
from sessions_app.models import Chat, Session

RESULT_LIMIT = 16_000  # characters of a tool's answer that the model is shown


class ToolError(Exception):
    """A call that cannot be done as asked; the model is told what is wrong and the way out."""


class Effect(StrEnum):
    """What a tool touches, and so how often it may run for one batch."""

    READ = "read"  # as often as it is asked
    STAGED = "staged"  # leaves with the answer, in its transaction
    ROWS = "rows"  # writes rows, in one transaction with its result
    OUTSIDE = "outside"  # cannot be taken back: never run again when its end is unknown


@dataclass(slots=True)
class TurnScope:
    """The one chat and batch that a tool works for. Nothing in it can be chosen by the model."""

    chat: Chat
    session: Session
    thread: str
    lane_id: int
    token: uuid.UUID
    batch: int
    rights: Rights
    staged: list[Outgoing] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Tool:
    """`name` is also its line in the table of rights; `run` gets its checked arguments."""

    name: str
    description: str
    arguments: type[BaseModel]
    effect: Effect
    run: Callable[[Any, TurnScope], str]

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, self.arguments.model_json_schema())


class Toolbox:
    """The tools offered for one batch."""

    def __init__(self, tools: Sequence[Tool], scope: TurnScope) -> None:
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}
        self._scope = scope
        self._staged: dict[str, str] = {}

    @property
    def specs(self) -> list[ToolSpec]:
        return [tool.spec for tool in self._tools.values()]

    def run(self, call: ToolCall) -> str:
        """Do what the model asked and return what it is told; a bad call is told what is wrong."""
        try:
            tool, arguments = self._checked(call)
            return self._run_once(tool, arguments)[:RESULT_LIMIT]
        except (ToolError, RefusedError) as error:
            return f"error: {error}"

    def _checked(self, call: ToolCall) -> tuple[Tool, BaseModel]:
        tool = self._tools.get(call.name)
        if tool is None:
            offered = ", ".join(self._tools) or "none"
            raise ToolError(f'there is no tool "{call.name}" here; offered: {offered}')
        require(tool.name, self._scope.rights)
        try:
            arguments = json.loads(call.arguments or "{}")
        except ValueError as error:
            raise ToolError(f"the arguments are not JSON ({error})") from error
        try:
            return tool, tool.arguments.model_validate(arguments)
        except ValidationError as error:
            raise ToolError(_problems(error)) from error

    def _run_once(self, tool: Tool, arguments: BaseModel) -> str:
        def act() -> str:
            return tool.run(arguments, self._scope)

        if tool.effect == Effect.READ:
            return act()
        call = toolcalls.digest(tool.name, arguments.model_dump(mode="json"))
        if tool.effect == Effect.STAGED:
            if call not in self._staged:
                self._staged[call] = act()
            return self._staged[call]
        scope = self._scope
        stored = toolcalls.stored_result(scope.batch, call)
        if stored is not None:
            return stored
        batch, name = scope.batch, tool.name
        if tool.effect == Effect.ROWS:
            return toolcalls.run_inside(
                scope.lane_id, scope.token, batch=batch, name=name, call=call, act=act
            )
        return toolcalls.run_outside(
            scope.lane_id, scope.token, batch=batch, name=name, call=call, act=_told(act)
        )


def _told(act: Callable[[], str]) -> Callable[[], str]:
    """Let a tool that says why it cannot end with that as its result: nobody has to wonder how it ended."""

    def act_or_tell() -> str:
        try:
            return act()
        except (ToolError, RefusedError) as error:
            return f"error: {error}"

    return act_or_tell


def _problems(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}"
        for problem in error.errors(include_url=False)
    )
