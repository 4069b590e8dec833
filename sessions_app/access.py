"""Who is let in: what a person decides about chats."""

from django.db.models import QuerySet

from sessions_app.models import Access, Chat
from sessions_app.routing import find_chat


class PairingError(LookupError):
    """No chat waits with that code."""


def decide(chats: QuerySet[Chat], access: Access) -> int:
    """Let chats in or keep them out, and return how many there were. Their pairing codes have served."""
    return chats.filter(merged_into=None).update(access=access, pairing_code="")


def let_in(code: str) -> Chat:
    """Allow the chat that was told this pairing code, under whatever address it has by now. Raises `PairingError`."""
    typed = code.strip().upper()
    told = Chat.objects.filter(access=Access.PENDING, pairing_code=typed).first() if typed else None
    chat = find_chat(told.address) if told else None
    if chat is None or chat.access == Access.BLOCKED:
        raise PairingError(f'No chat waits with the code "{typed}": read it again in the chat')
    decide(Chat.objects.filter(pk=chat.pk), Access.ALLOWED)
    return chat
