"""Whose memory the tests are about: alice, the group with her number, bob, and what looks like them."""

from channels_app.addresses import ChatAddress, SessionKey
from memory_app.items import NewItem, Stored, store
from memory_app.models import ItemKind
from memory_app.scopes import CHAT_SCOPE, Scope
from sessions_app.models import Session

ALICE = ChatAddress("fake", "private", "10001")
GROUP = ChatAddress("fake", "group", "10001")
TOPIC = ChatAddress("fake", "group", "10001", "42")
ALICE_ELSEWHERE = ChatAddress("fake-alt", "private", "10001")
BOB = ChatAddress("fake", "private", "20002")


def scope(address: ChatAddress) -> Scope:
    return Scope(CHAT_SCOPE, address.chat_key)


def key(address: ChatAddress) -> SessionKey:
    return SessionKey(address)


def session(address: ChatAddress) -> Session:
    """Return the base session of a lane that has spoken."""
    return Session.objects.get(key=str(key(address)))


def remember(where: ChatAddress | Scope, content: str, **details: object) -> Stored:
    new = NewItem(**{"kind": ItemKind.FACT, "content": content, **details})  # type: ignore[arg-type]
    return store(new, scope=where if isinstance(where, Scope) else scope(where))
