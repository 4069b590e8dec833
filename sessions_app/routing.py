"""From an address to its chat and sessions. Nothing here reads a legacy session (DESIGN 8.8)."""

from django.conf import settings
from django.db import transaction

from channels_app.addresses import API, WEB, AddressError, ChatAddress, SessionKey
from sessions_app.models import Access, AnswerPolicy, Chat, ChatAlias, Lane, Session


def find_chat(address: ChatAddress) -> Chat | None:
    """Return the chat that answers to an address today: its own, or the one it became."""
    chat = Chat.objects.filter(chat_key=address.chat_key).first()
    if chat is None:
        alias = ChatAlias.objects.filter(address=address.chat_key).select_related("chat").first()
        chat = alias.chat if alias else None
    while chat is not None and chat.merged_into_id is not None:
        chat = Chat.objects.get(pk=chat.merged_into_id)
    return chat


def chat_for(address: ChatAddress) -> Chat:
    """Return the chat of a typed address, made at first sight. Raises `AddressError` for an untyped one."""
    if not address.typed:
        raise AddressError(f'"{address}" has no chat type, so no chat is made for it')
    return find_chat(address) or make_chat(address)[0]


def make_chat(address: ChatAddress) -> tuple[Chat, bool]:
    """Make the chat of a typed address nobody answers to; False: somebody else has just made it."""
    return Chat.objects.get_or_create(
        chat_key=address.chat_key,
        defaults={
            "channel": address.channel,
            "target_type": address.target_type,
            "target_id": address.target_id,
            "access": _access_at_birth(address),
            "answer_policy": AnswerPolicy.ALWAYS
            if address.target_type == "private"
            else AnswerPolicy.ADDRESSED,
        },
    )


def _access_at_birth(address: ChatAddress) -> Access:
    """Web and API chats belong to somebody who signed in; other strangers wait unless their channel is open."""
    if address.channel in (WEB, API):
        return Access.ALLOWED
    configured = settings.CHANNELS.get(address.channel)
    return Access.ALLOWED if configured and configured.open else Access.PENDING


def access_of(chat: Chat) -> str:
    """A thread's chat inherits from its parent: a block holds for both, and the parent's permission is enough."""
    if chat.parent is None or chat.access == Access.BLOCKED:
        return chat.access
    inherited = access_of(chat.parent)
    return (
        inherited if inherited == Access.BLOCKED or chat.access == Access.PENDING else chat.access
    )


def base_session(chat: Chat, thread: str) -> Session:
    key = str(SessionKey(chat.address.with_thread(thread)))
    session, _ = Session.objects.get_or_create(key=key, defaults={"chat": chat})
    return session


def start_session(lane: Lane) -> Session:
    """Make a fresh session and set it on the lane, whose lock the caller holds."""
    assert transaction.get_connection().in_atomic_block, "the lane's lock lives in a transaction"
    key = SessionKey(lane.address).new()
    session = Session.objects.create(key=str(key), suffix=key.suffix, chat=lane.chat)
    Lane.objects.filter(pk=lane.pk).update(active_session=session)
    lane.active_session = session
    return session


def resume_session(lane: Lane, session: Session) -> None:
    """Set an older session of the same chat on the lane, whose lock the caller holds."""
    assert transaction.get_connection().in_atomic_block, "the lane's lock lives in a transaction"
    assert session.chat_id == lane.chat_id, "a session never leaves its chat"
    Lane.objects.filter(pk=lane.pk).update(active_session=session)
    lane.active_session = session
