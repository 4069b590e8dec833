"""Addresses that old metadata and jobs state in so many words. Pure; whatever shape the text or JSON has, nothing raises."""

from collections.abc import Iterable
from typing import Any

from channels_app.addresses import TARGET_TYPES, AddressError, ChatAddress
from nahida.legacy.facts import parsed


def in_metadata(metadata: Any) -> tuple[str, ...]:
    """Return the typed chats that a session's metadata names."""
    if not isinstance(metadata, dict):
        return ()
    found = (stated(metadata.get("chat_address")), in_context(metadata.get("message_context")))
    return tuple(sorted({address.chat_key for address in found if address}))


def stated(value: Any) -> ChatAddress | None:
    """Read an address given as text, or as an object of its parts."""
    if isinstance(value, dict):
        return _typed(value.get("channel"), value.get("target_type"), value.get("target_id"))
    if not isinstance(value, str) or len(value.split()) != 1:  # prose may mention an address
        return None
    try:
        address = ChatAddress.parse(value.strip())
    except AddressError:
        return None
    return address if address.typed else None


def in_context(value: Any) -> ChatAddress | None:
    """Read the envelope of a message."""
    if not isinstance(value, dict):
        return None
    return _typed(value.get("channel"), value.get("chat_type"), value.get("chat_id"))


def by_job(key: str, imported: Any) -> str:
    """Return the typed chat a job names, by its key or beside it; "" if there is none or there are two."""
    named = {address.chat_key for address in _of_job(key, imported) if address}
    return named.pop() if len(named) == 1 else ""


def _of_job(key: str, imported: Any) -> Iterable[ChatAddress | None]:
    session_key = parsed(key)
    yield session_key.address if session_key and session_key.typed else None
    if isinstance(imported, dict):
        yield _typed(imported.get("platform"), imported.get("chat_type"), imported.get("chat_id"))


def _typed(channel: Any, target_type: Any, target_id: Any) -> ChatAddress | None:
    if isinstance(target_id, int) and not isinstance(target_id, bool):
        target_id = str(target_id)
    if not isinstance(channel, str) or not isinstance(target_id, str):
        return None
    if target_type not in TARGET_TYPES:
        return None
    try:
        return ChatAddress(channel.strip(), target_type, target_id.strip())
    except AddressError:
        return None
