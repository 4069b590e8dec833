"""Bearer keys: made once, kept as a hash, found again in constant time."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from nahida.gateway.models import ApiKey
from sessions_app.models import Chat

# Every scope there is. A new route that needs a right of its own adds a line here.
SCOPES: Mapping[str, str] = {
    "chat": "talk with the assistant in chats of the key's own",
    "send": "send messages to chats",
    "sessions:read": "list sessions and read their turns",
    "sessions:write": "rename sessions",
    "chats:read": "list chats and their settings",
    "chats:write": "change who is answered, how, and with which model",
    "chats:owner": "make a chat the owner's, which may reach other chats",
    "health": "see how the system fares",
}

MARK = "nhd"
PREFIX_BYTES = 4
SECRET_BYTES = 32
USE_NOTED_EVERY = timedelta(minutes=1)


class ScopeError(ValueError):
    """A scope that does not exist; the message lists those that do."""


def create(
    name: str,
    *,
    scopes: Iterable[str],
    chats: Iterable[Chat] | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """Make a key and return it with its text, which is shown once and cannot be had again.

    `chats` None: every chat. An empty one: only those the key makes itself. Raises `ScopeError`.
    """
    wanted = list(dict.fromkeys(scopes))
    if not wanted:
        raise ScopeError(f"a key without a scope can do nothing: use {', '.join(SCOPES)}")
    for scope in wanted:
        if scope not in SCOPES:
            raise ScopeError(f'there is no scope "{scope}": use {", ".join(SCOPES)}')
    prefix = secrets.token_hex(PREFIX_BYTES)
    text = f"{MARK}_{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}"
    key = ApiKey.objects.create(
        name=name,
        prefix=prefix,
        digest=_digest(text),
        scopes=wanted,
        limited=chats is not None,
        expires_at=expires_at,
    )
    key.chats.set(chats or ())
    return key, text


def prefix_of(text: str) -> str:
    """Return the part of a key's text that names it; "" if this is no key at all."""
    match text.split("_", 2):
        case [mark, prefix, _] if mark == MARK and len(prefix) == 2 * PREFIX_BYTES:
            return prefix
    return ""


def find(text: str) -> ApiKey | None:
    """Return the key of a text if it may still be used."""
    now = timezone.now()
    in_force = Q(expires_at=None) | Q(expires_at__gt=now)
    prefix = prefix_of(text)
    key = None
    if prefix.isalnum() and prefix.isascii():
        key = ApiKey.objects.filter(in_force, prefix=prefix, revoked_at=None).first()
    # Without a key a hash is compared all the same, so that the time says nothing.
    if not secrets.compare_digest(key.digest if key else "0" * 64, _digest(text)):
        return None
    return key


def note_use(key: ApiKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or key.last_used_at < now - USE_NOTED_EVERY:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)


def revoke(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
