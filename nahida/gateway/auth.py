"""Who calls: a bearer key with its scopes and chats. Guessing is slowed down."""

import ipaddress
import logging
import time
from dataclasses import dataclass
from typing import cast

from django.core.cache import cache
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from ninja.security.http import HttpAuthBase
from redis.exceptions import RedisError

from nahida.gateway import keys
from nahida.gateway.keys import SCOPES
from nahida.gateway.models import ApiKey
from nahida.gateway.problems import ForbiddenError, RequestError
from sessions_app.models import Chat
from sessions_app.principal import Principal

logger = logging.getLogger(__name__)

FAILURES = 10  # of one address, or of one key, within the window
WINDOW_S = 60
MOST_WITHOUT_FILES = 2_500_000  # bytes of a body
IPV6_SITE = 64  # bits; one customer has at least all addresses behind them


class UnauthenticatedError(RequestError):
    def __init__(self, detail: str, *, error: str = "") -> None:
        super().__init__(detail)
        challenge = 'Bearer realm="nahida"' + (f', error="{error}"' if error else "")
        self.headers = {"WWW-Authenticate": challenge}


class TooManyFailuresError(RequestError):
    def __init__(self, retry_after: int) -> None:
        super().__init__(f"too many wrong keys: try again in {retry_after} s")
        self.headers = {"Retry-After": str(retry_after)}


class MissingScopeError(ForbiddenError):
    def __init__(self, scope: str) -> None:
        super().__init__(f'this key lacks the scope "{scope}": {SCOPES[scope]}')
        challenge = f'Bearer realm="nahida", error="insufficient_scope", scope="{scope}"'
        self.headers = {"WWW-Authenticate": challenge}


@dataclass(frozen=True, slots=True)
class Caller:
    """A key that proved itself, and what it may see."""

    key: ApiKey
    principal: Principal

    def require(self, scope: str) -> None:
        """Raise `MissingScopeError` unless the key has the scope."""
        if not self.principal.may(scope):
            raise MissingScopeError(scope)

    def take_in(self, chat: Chat) -> None:
        """Let a limited key reach a chat that it makes."""
        if self.key.limited:
            self.key.chats.add(chat)


def require_small(request: HttpRequest) -> None:
    """Refuse a body that only a request with files may have, before anything reads it."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > MOST_WITHOUT_FILES:
        raise RequestDataTooBig


class BearerKey(HttpAuthBase):
    """The `auth=` of a route: a key with one scope."""

    openapi_scheme = "bearer"
    openapi_description = "A key made by `manage.py create_api_key` or in the admin."

    def __init__(self, scope: str, *, carries_files: bool = False) -> None:
        assert scope in SCOPES, f"{scope} has no line in SCOPES"
        super().__init__()
        self.scope = scope
        self.carries_files = carries_files

    def __call__(self, request: HttpRequest) -> Caller:
        key = _authenticated(request)
        caller = Caller(key, _principal(key))
        caller.require(self.scope)
        if not self.carries_files:
            require_small(request)
        keys.note_use(key)
        return caller


def caller_of(request: HttpRequest) -> Caller:
    return cast(Caller, request.auth)  # type: ignore[attr-defined]


def _principal(key: ApiKey) -> Principal:
    chat_ids = frozenset(key.chats.values_list("pk", flat=True)) if key.limited else None
    return Principal(frozenset(key.scopes), chat_ids)


def _authenticated(request: HttpRequest) -> ApiKey:
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    text = text.strip()
    if scheme.lower() != "bearer" or not text:
        raise UnauthenticatedError("send a key: Authorization: Bearer nhd_...")
    by_address = _Failures(f"address:{_site(request.META.get('REMOTE_ADDR', ''))}")
    by_key = _Failures(f"key:{keys.prefix_of(text)}")
    # Whoever did not guess may still use a key that others guess at, or they could lock it out.
    if by_key.count() >= FAILURES and by_address.count():
        raise TooManyFailuresError(by_key.retry_after)
    key = keys.find(text)
    if key is not None:
        return key
    if by_key.name != "key:":
        by_key.add()
    if by_address.add() > FAILURES:
        raise TooManyFailuresError(by_address.retry_after)
    raise UnauthenticatedError(
        "this key is unknown, revoked or expired: make one with manage.py create_api_key",
        error="invalid_token",
    )


class _Failures:
    """A count that starts over with each window. An unreachable cache counts nothing and stops nobody."""

    def __init__(self, name: str) -> None:
        self.name = name
        window, passed = divmod(time.time(), WINDOW_S)
        self.retry_after = max(1, round(WINDOW_S - passed))
        self._entry = f"gateway:failures:{name}:{window:.0f}"

    def count(self) -> int:
        try:
            return int(cache.get(self._entry, 0))
        except RedisError:
            logger.exception("failed keys are not counted")
            return 0

    def add(self) -> int:
        try:
            cache.add(self._entry, 0, timeout=2 * WINDOW_S)
            return int(cache.incr(self._entry))
        except (RedisError, ValueError):  # ValueError: the entry was dropped in between
            logger.exception("failed keys are not counted")
            return 0


def _site(address: str) -> str:
    """Return whom an address stands for. Only the socket's own: any header may be made up."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed, IPV6_SITE), strict=False))
