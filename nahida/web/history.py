"""What a person sees of the own chat. Every look-up begins at the signed-in user, never at a number of the request."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left

from channels_app.addresses import ChatAddress
from memory_app.models import MemoryTurn, Role, TurnKind, TurnState
from memory_app.turns import MESSAGE_SOURCE, SYSTEM_SOURCE
from sessions_app.models import Chat, Lane, Session
from sessions_app.routing import find_chat

PAGE = 40  # turns
SESSIONS = 200
LINE = 80  # characters of the line that names a session without a title

FINAL = (TurnState.OBSERVED, TurnState.DONE, TurnState.FAILED, TurnState.STOPPED)
# A tool's result and a summary are the model's business.
HIDDEN = Q(kind__in=[TurnKind.TOOL, TurnKind.SUMMARY]) | Q(role=Role.TOOL)


@dataclass(frozen=True, slots=True)
class Own:
    """A user's chat with its lane; both are missing until the first message."""

    chat: Chat | None
    active_id: int | None

    @property
    def sessions(self) -> QuerySet[Session]:
        if self.chat is None:
            return Session.objects.none()
        return Session.objects.filter(chat=self.chat, legacy_untyped=False)


def own(user_pk: int) -> Own:
    chat = find_chat(ChatAddress.web(user_pk))
    lane = Lane.objects.filter(chat=chat, thread="").first() if chat else None
    return Own(chat, lane.active_session_id if lane else None)


def session_list(mine: Own) -> list[dict[str, Any]]:
    """Return the sessions that hold something, and the active one; newest first. One query."""
    said = MemoryTurn.objects.filter(~HIDDEN, session=OuterRef("pk"))
    first = said.filter(role=Role.USER).exclude(kind=TurnKind.COMMAND).order_by("id")
    sessions = (
        mine.sessions.annotate(
            line=Subquery(first.annotate(l=Left("content", LINE)).values("l")[:1])
        )
        .filter(Q(line__isnull=False) | Q(pk=mine.active_id) | ~Q(title=""))
        .order_by("-last_active_at", "-id")[:SESSIONS]
    )
    return [
        {
            "id": session.pk,
            "title": session.title or session.line or "",
            "at": session.last_active_at.isoformat(),
        }
        for session in sessions
    ]


def shown_turns(session: Session) -> QuerySet[MemoryTurn]:
    return session.turns.exclude(HIDDEN)


def page(session: Session, *, before: int | None = None) -> tuple[list[MemoryTurn], bool]:
    """Return the last turns, or the last before one, oldest first; and whether there are earlier ones."""
    turns = shown_turns(session)
    if before is not None:
        turns = turns.filter(pk__lt=before)
    newest = list(turns.order_by("-pk")[: PAGE + 1])
    return newest[:PAGE][::-1], len(newest) > PAGE


def cursor(turns: Sequence[MemoryTurn], *, after: int = 0) -> int:
    """Return the last id up to which no turn will change its state any more."""
    for turn in turns:
        if turn.state not in FINAL:
            return after
        after = turn.pk
    return after


def as_json(turns: Iterable[MemoryTurn]) -> list[dict[str, Any]]:
    return [
        {
            "id": turn.pk,
            "role": turn.role,
            "kind": turn.kind,
            "state": turn.state,
            "text": turn.content,
            "is_notice": turn.source == SYSTEM_SOURCE,
            "label": "passed on from another chat" if turn.source == MESSAGE_SOURCE else "",
            "message_id": turn.message_id,
            "answered_by": turn.answered_by_id,
            "at": (turn.sent_at or turn.created_at).isoformat(),
        }
        for turn in turns
    ]
