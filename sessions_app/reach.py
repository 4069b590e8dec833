"""Can a chat be written to? A chat that threw us out cannot; one that muted us is still heard."""

from datetime import UTC, datetime

from django.db.models import F
from django.db.models.functions import Coalesce, Now

from channels_app.messages import ReachChanged
from sessions_app.models import Chat

UNTIL_TOLD = datetime(9999, 1, 1, tzinfo=UTC)  # a silence without an end of its own


def change(chat: Chat, news: ReachChanged) -> None:
    """Keep whether a chat can be written to, and why not."""
    if not news.reason:
        open_again(chat)
    elif news.is_muted:
        Chat.objects.filter(pk=chat.pk).update(
            muted_until=news.until or UNTIL_TOLD, unreachable_reason=news.reason[:300]
        )
    else:
        Chat.objects.filter(pk=chat.pk).update(
            unreachable_since=Coalesce(F("unreachable_since"), Now()),
            unreachable_reason=news.reason[:300],
        )


def open_again(chat: Chat) -> None:
    Chat.objects.filter(pk=chat.pk).update(
        unreachable_since=None, muted_until=None, unreachable_reason=""
    )
