"""Who is let in: what a person decides about chats."""

from django.db.models import QuerySet

from sessions_app.models import Access, Chat


class PairingError(LookupError):
    """No chat waits with that code."""


def decide(chats: QuerySet[Chat], access: Access) -> int:
    """Let chats in or keep them out, and return how many there were. Their pairing codes have served."""
    return chats.filter(merged_into=None).update(access=access, pairing_code="")


def let_in(code: str) -> Chat:
    """Allow the chat that was told this pairing code. Raises `PairingError`."""
    typed = code.strip().upper()
    waiting = Chat.objects.filter(access=Access.PENDING, merged_into=None)
    chat = waiting.filter(pairing_code=typed).first() if typed else None
    if chat is None:
        raise PairingError(f'No chat waits with the code "{typed}": read it again in the chat')
    decide(Chat.objects.filter(pk=chat.pk), Access.ALLOWED)
    return chat
