"""Watch a turn until it is answered, from the database alone: so it works whichever machine runs the turn."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Literal

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connection

from memory_app.models import MemoryTurn, TurnState
from sessions_app.models import Draft

LOOK_EVERY_S = 0.25

Kind = Literal["draft", "reset", "done", "silent", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Update:
    """What became of a turn. `draft` has the whole text so far, `failed` what the chat was told; `reset` voids the drafts.

    Every other kind is the last one. `turn_id` is the turn that was asked about.
    """

    kind: Kind
    text: str
    turn_id: int

    @property
    def is_last(self) -> bool:
        return self.kind not in ("draft", "reset")


@dataclass(frozen=True, slots=True)
class _Glance:
    """A turn as one look at the database finds it; `end` None while it is unfinished."""

    end: Update | None = None
    token: str = ""
    text: str = ""


async def follow(turn_id: int, *, stopping: Callable[[], bool]) -> AsyncGenerator[Update, None]:
    """Yield a turn's updates up to the last one, or until this process is `stopping`.

    Raises `MemoryTurn.DoesNotExist` if there is no such turn, or no longer. Two queries a look.
    """
    token = text = ""
    while not stopping():
        glance = await sync_to_async(_look)(turn_id)
        if glance.end is not None:
            yield glance.end
            return
        if token and glance.token and glance.token != token:
            text = ""
            yield Update("reset", "", turn_id)
        token = glance.token or token
        if glance.text and glance.text != text:
            text = glance.text
            yield Update("draft", text, turn_id)
        await asyncio.sleep(LOOK_EVERY_S)


def end_of(turn: MemoryTurn) -> Update | None:
    """Return the last update of a turn, None while it is unfinished. One query unless `answered_by` is loaded."""
    text = turn.answered_by.content if turn.answered_by else ""
    match turn.state:
        case TurnState.PENDING | TurnState.RUNNING:
            return None
        case TurnState.FAILED:
            return Update("failed", text, turn.pk)
        case TurnState.STOPPED:
            return Update("stopped", text, turn.pk)
        case TurnState.DONE if turn.answered_by:
            return Update("done", text, turn.pk)
    return Update("silent", "", turn.pk)


def _look(turn_id: int) -> _Glance:
    try:
        turn = MemoryTurn.objects.select_related("answered_by").get(pk=turn_id)
        if end := end_of(turn):
            return _Glance(end)
        draft = Draft.objects.filter(lane=turn.lane_id or 0, turn=turn.batch or turn.pk).first()
        return _Glance(None, str(draft.token), draft.text) if draft else _Glance()
    finally:
        # A watcher may stay for minutes: between looks it keeps no connection from others.
        if not connection.in_atomic_block:
            close_old_connections()
