"""Who calls the API in the tests: alice's chats, a group with her number, and the keys that reach them."""

import json
from typing import Any

from django.core.cache import cache
from django.test import TestCase
from django.utils import timezone

from channels_app.addresses import ChatAddress
from memory_app.models import MemoryTurn, Role, TurnKind, TurnState
from memory_app.turns import NewTurn, append_turn
from nahida.gateway import keys
from sessions_app import lanes
from sessions_app.models import Access, Chat, Draft, Lane, Session

ALICE = "milky:private:10001"
GROUP = "milky:group:10001"


class GatewayTestCase(TestCase):
    def setUp(self) -> None:
        cache.clear()

    def key(self, *scopes: str, chats: list[Chat] | None = None, **more: Any) -> str:
        """Make a key with all scopes, or those named, and return its header."""
        _, text = keys.create("test", scopes=scopes or keys.SCOPES, chats=chats, **more)
        return f"Bearer {text}"

    def call(self, method: str, path: str, *, key: str, body: Any = None, **headers: str) -> Any:
        return self.client.generic(
            method,
            path,
            json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={"authorization": key, **headers},
        )

    def get(self, path: str, *, key: str, **query: str) -> Any:
        return self.client.get(path, query or None, headers={"authorization": key})

    def post(self, path: str, body: Any, *, key: str, **headers: str) -> Any:
        return self.call("POST", path, key=key, body=body, **headers)

    def patch(self, path: str, body: Any, *, key: str, **headers: str) -> Any:
        return self.call("PATCH", path, key=key, body=body, **headers)


def lane_of(address: str) -> Lane:
    lane = lanes.lock(ChatAddress.parse(address))
    Chat.objects.filter(pk=lane.chat_id).update(access=Access.ALLOWED)
    lane.chat.refresh_from_db()
    return lane


def chat_of(address: str) -> Chat:
    return lane_of(address).chat


def say(address: str, text: str) -> MemoryTurn:
    """Store a finished line of a user."""
    new = NewTurn(kind=TurnKind.MESSAGE, content=text, state=TurnState.DONE)
    return append_turn(lane_of(address), new)


def answer(turn_id: int, text: str, *, state: TurnState = TurnState.DONE) -> None:
    """End a turn as a worker would."""
    turn = MemoryTurn.objects.get(pk=turn_id)
    assert turn.lane is not None
    reply = None
    if text:
        kind = TurnKind.NOTICE if state == TurnState.FAILED else TurnKind.MESSAGE
        new = NewTurn(kind=kind, role=Role.ASSISTANT, content=text)
        reply = append_turn(turn.lane, new, session=turn.session)
    MemoryTurn.objects.filter(pk=turn_id).update(state=state, answered_by=reply, batch=turn_id)
    Draft.objects.filter(lane=turn.lane).delete()


def old_session(key: str, *, chat: Chat | None = None) -> Session:
    """A session as the import leaves it: its key byte for byte."""
    return Session.objects.create(key=key, chat=chat, imported_at=timezone.now())
