"""Chats of API turns that name no user: each has one of its own, which nobody can address again, list or read.

A turn needs a lane to be queued, answered and found again by its id, so it cannot do without rows. These are deleted when the
answer has been there for a day.
"""

import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models import ProtectedError, Q
from django.utils import timezone

from channels_app.addresses import API, ChatAddress
from memory_app.models import (
    Attachment,
    MemoryTurn,
    ModelCall,
    RecallReceipt,
    ToolCall,
)
from nahida.gateway.models import ApiKey
from sessions_app.models import Chat, Draft, Lane, Session

MARK = "~"  # begins the name of a user who is nobody
KEPT_FOR = timedelta(days=1)
ERASED_AT_ONCE = 200


def address(key: ApiKey) -> ChatAddress:
    return ChatAddress.api(key.pk, user=MARK + secrets.token_hex(16))


def one_off(chat: str = "") -> Q:
    """Return the condition that finds these chats, by a relation's path such as `chat__`."""
    return Q(**{f"{chat}channel": API, f"{chat}target_id__regex": rf"^[0-9]+\.{MARK}"})


def erase_old() -> int:
    """Delete chats whose day is over, at most a few hundred; return how many. One that something else refers to stays."""
    over = Chat.objects.filter(one_off(), created_at__lt=timezone.now() - KEPT_FOR)
    return sum(_erase(chat) for chat in over.order_by("pk")[:ERASED_AT_ONCE])


def _erase(chat: Chat) -> bool:
    try:
        with transaction.atomic():
            lane = Lane.objects.filter(chat=chat).select_for_update().first()
            turns = MemoryTurn.objects.filter(session__chat=chat)
            if turns.unfinished().exists():
                return False
            for model in (ModelCall, RecallReceipt, Attachment):
                model._default_manager.filter(turn__in=turns).delete()
            ToolCall.objects.filter(batch__in=turns).delete()
            turns.update(answered_by=None)
            turns.delete()
            if lane:
                Draft.objects.filter(lane=lane).delete()
                lane.delete()
            Session.objects.filter(chat=chat).delete()
            chat.delete()
    except ProtectedError:
        return False
    return True
