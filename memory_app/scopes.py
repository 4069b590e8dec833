"""Who may read a memory: the session key and the kind decide, never a model's wish.

Pure. Source: DESIGN 6, acceptance list M.
"""

from dataclasses import dataclass
from typing import Final

from channels_app.addresses import AddressError, SessionKey

CHAT_SCOPE: Final = "chat"
GLOBAL_SCOPE: Final = "global"
SCOPE_TYPES: Final = (CHAT_SCOPE, GLOBAL_SCOPE)
GLOBAL_ID: Final = "__global__"

CHAT_KINDS: Final = ("preference", "fact", "task")
SHARED_KINDS: Final = ("decision", "procedure", "warning", "summary")


class ScopeError(ValueError):
    """No scope can be named; the message says the value and the way out."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One chat's memory, named by its chat key, or the memory all chats share."""

    scope_type: str
    scope_id: str

    def __post_init__(self) -> None:
        if self.scope_type not in SCOPE_TYPES:
            raise ScopeError(
                f"{self.scope_type!r} is no scope type: use one of {', '.join(SCOPE_TYPES)}"
            )
        if not self.scope_id:
            raise ScopeError(
                f"a {self.scope_type} scope has an empty id: give the chat key, or {GLOBAL_ID}"
            )
        if self.scope_type == GLOBAL_SCOPE and self.scope_id != GLOBAL_ID:
            raise ScopeError(f"the global scope has one id, {GLOBAL_ID}, not {self.scope_id!r}")

    def __str__(self) -> str:
        return self.scope_id if self.scope_type == CHAT_SCOPE else GLOBAL_SCOPE


GLOBAL: Final = Scope(GLOBAL_SCOPE, GLOBAL_ID)


def scope_of(session_id_text: str) -> Scope:
    """Return the scope a stored session id belongs to: its chat if typed, else global.

    For reading old rows; it never raises. That the answer is global is no permission to write
    there what a chat said.
    """
    try:
        key = SessionKey.parse(session_id_text)
    except AddressError:
        return GLOBAL
    return _chat(key) if key.typed else GLOBAL


def scope_for(key: SessionKey, *, kind: str) -> Scope:
    """Return the scope a new item of `kind` belongs to.

    An unknown kind is a ScopeError, and so is a chat kind said in an untyped session: stored as
    global, every chat would read it.
    """
    if kind in SHARED_KINDS:
        return GLOBAL
    if kind not in CHAT_KINDS:
        known = ", ".join((*CHAT_KINDS, *SHARED_KINDS))
        raise ScopeError(f"{kind!r} is no kind of memory: use one of {known}")
    if not key.typed:
        raise ScopeError(
            f"{str(key)!r} has no chat type, so a {kind} said there has no chat scope: "
            "migrate the session's key first"
        )
    return _chat(key)


def readable(key: SessionKey) -> tuple[Scope, ...]:
    """Return the scopes a session may read, its own chat before global; global alone if untyped."""
    return (_chat(key), GLOBAL) if key.typed else (GLOBAL,)


def _chat(key: SessionKey) -> Scope:
    return Scope(CHAT_SCOPE, key.chat_key)
