"""Writes that may be sent again: the same name and body get the answer of the first time."""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from ninja import Header

from nahida.gateway.auth import caller_of
from nahida.gateway.fields import Name
from nahida.gateway.models import IdempotencyKey
from nahida.gateway.problems import RequestError

KEPT_FOR = timedelta(days=7)

IdempotencyName = Annotated[
    Name | None,
    Header(
        alias="Idempotency-Key",
        description="a name of your choice: sent again with the same body, it gets the same answer",
    ),
]


class IdempotencyMismatchError(RequestError):
    def __init__(self, name: str) -> None:
        super().__init__(
            f'Idempotency-Key "{name}" was used for another request: choose a new one for this'
        )


def once(
    request: HttpRequest, name: str | None, act: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return what `act` returned the first time this request was made under `name`.

    Act and record are one transaction: neither is there without the other, whatever dies in between. A request that comes while
    the first is under way waits for it. Nothing is kept of an act that raises.
    """
    with transaction.atomic():
        if name is None:
            return act()
        record, is_new = IdempotencyKey.objects.get_or_create(
            api_key=caller_of(request).key,
            key=name,
            defaults={"request_hash": _digest(request)},
        )
        if record.request_hash != _digest(request):
            raise IdempotencyMismatchError(name)
        if is_new:
            record.response = act()
            record.status = 200
            record.save(update_fields=["response", "status"])
        answer: dict[str, Any] = record.response or {}
        return answer


def forget_old() -> int:
    """Delete records nobody will ask for again; return how many."""
    old = IdempotencyKey.objects.filter(created_at__lt=timezone.now() - KEPT_FOR)
    return old.delete()[0]


def _digest(request: HttpRequest) -> str:
    head = f"{request.method} {request.get_full_path()}\n".encode()
    return hashlib.sha256(head + request.body).hexdigest()
