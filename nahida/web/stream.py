"""What happens in a session while somebody looks at it, as server-sent events.

The database is looked at again and again, so it does not matter which process or machine runs the turn. Each event says what
changed since the last one; its id is a cursor from which a connection that was lost goes on.
"""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from memory_app.models import MemoryTurn, TurnState
from nahida.ops.stopping import stopping
from nahida.web import history
from sessions_app.models import Draft, Session

BUSY_S = 0.25  # between two looks while an answer is on its way
IDLE_S = 1.0
COMMENT_S = 15.0  # the longest silence: proxies close what says nothing
LIFE_S = 300.0  # then the browser comes back, and its right to look is checked again


@dataclass(slots=True)
class Watch:
    """One browser tab's view of one session, and what it has been told already.

    Without a session it waits for the first one: another tab may begin it.
    """

    user_pk: int
    session_pk: int | None
    after: int = 0
    states: dict[int, tuple[str, str]] = field(default_factory=dict)
    draft: tuple[UUID, str] | None = None
    active_id: int | None = None
    is_busy: bool = False
    is_fresh: bool = True

    def look(self) -> dict[str, Any]:
        """Return what changed since the last look; {} for nothing. Four queries at most."""
        mine = history.own(self.user_pk)
        if self.session_pk is None:
            return {"active": mine.active_id} if mine.active_id is not None else {}
        session = mine.sessions.filter(pk=self.session_pk).first()
        if session is None:
            return {"gone": True} if self.is_fresh else {}
        turns = list(history.shown_turns(session).filter(pk__gt=self.after).order_by("pk"))
        changes: dict[str, Any] = {}
        if changed := [turn for turn in turns if self._is_news(turn)]:
            changes["turns"] = history.as_json(changed)
        if self._lost(turns):
            changes["moved"] = True
        changes |= self._draft_changes(session, turns)
        if self.is_fresh or mine.active_id != self.active_id:
            changes["active"] = self.active_id = mine.active_id
        self.after = history.cursor(turns, after=self.after)
        self.is_busy = any(turn.state not in history.FINAL for turn in turns)
        self.is_fresh = False
        return changes

    def _is_news(self, turn: MemoryTurn) -> bool:
        seen = (turn.state, turn.content)
        if self.states.get(turn.pk) == seen:
            return False
        self.states[turn.pk] = seen
        return True

    def _lost(self, turns: list[MemoryTurn]) -> bool:
        """A turn that waited here may have been moved to the session that `/new` began."""
        here = {turn.pk for turn in turns}
        lost = [pk for pk in self.states if pk > self.after and pk not in here]
        for pk in lost:
            del self.states[pk]
        return bool(lost)

    def _draft_changes(self, session: Session, turns: list[MemoryTurn]) -> dict[str, Any]:
        draft = _draft_of(turns)
        if draft is None:
            was_there, self.draft = self.draft is not None, None
            return {"draft": None} if was_there or self.is_fresh else {}
        token, text = self.draft or (None, "")
        self.draft = (draft.token, draft.text)
        if draft.token == token and draft.text == text:
            return {}
        if draft.token == token and draft.text.startswith(text):
            return {"draft": {"at": len(text), "text": draft.text[len(text) :]}}
        return {"draft": {"at": 0, "text": draft.text}}


def _draft_of(turns: list[MemoryTurn]) -> Draft | None:
    running = next((turn for turn in turns if turn.state == TurnState.RUNNING), None)
    if running is None:
        return None
    return Draft.objects.filter(lane=running.lane_id, turn=running.batch or running.pk).first()


async def events(watch: Watch) -> AsyncIterator[str]:
    """Yield what changes until the server stops or the connection has had its time."""
    started = spoke = time.monotonic()
    yield "retry: 1000\n\n"
    while (now := time.monotonic()) - started < LIFE_S:
        if changes := await sync_to_async(_look)(watch):
            spoke = now
            yield f"id: {watch.after}\ndata: {json.dumps(changes)}\n\n"
        elif now - spoke >= COMMENT_S:
            spoke = now
            yield ": still here\n\n"
        if await stopping.sleep(BUSY_S if watch.is_busy else IDLE_S):
            return


def _look(watch: Watch) -> dict[str, Any]:
    try:
        return watch.look()
    finally:
        close_old_connections()  # between two looks a pooled connection is somebody else's
