"""What a record stands on while it is applied: its sessions, the typed chats they go to, and all their lanes, locked.

Every transaction locks lanes before chats (DESIGN 5). A worker that holds one of the lanes is not disturbed: the record waits.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import Q

from channels_app.addresses import ChatAddress
from channels_app.clock import DbNow
from sessions_app.ledger import Ledger
from sessions_app.models import Access, Chat, Lane
from sessions_app.rekey import lock_chats
from sessions_app.routing import find_chat, make_chat


class BusyError(Exception):
    """Somebody is at work in a lane that this would touch: try again later."""


@dataclass(frozen=True, slots=True)
class Ground:
    """`chats` by the chat key that was asked for; a chat that has moved since answers to its old key."""

    chats: dict[str, Chat]
    overrides: tuple[Lane, ...]

    def chat(self, address: ChatAddress) -> Chat:
        return self.chats[address.chat_key]

    def overrides_of(self, session_pk: int) -> list[Lane]:
        return [lane for lane in self.overrides if lane.active_session_id == session_pk]


def lock_ground(
    sessions: Collection[int], addresses: Iterable[ChatAddress], ledger: Ledger
) -> Ground:
    """Lock the lanes that these sessions are active in, and the typed chats, made where there is none, with all their lanes.

    Raises BusyError.
    """
    wanted = {address.chat_key: address for address in addresses}
    while True:
        chats = {key: _chat(address, ledger) for key, address in wanted.items()}
        touched = Q(active_session__in=sessions) | Q(chat__in=chats.values())
        lanes = list(Lane.objects.filter(touched).order_by("pk").select_for_update())
        # One object for a chat that answers to two addresses, so that it is read again once.
        unique = {chat.pk: chat for chat in chats.values()}
        chats = {key: unique[chat.pk] for key, chat in chats.items()}
        pks = Lane.objects.filter(touched).order_by("pk").values_list("pk", flat=True)
        if lock_chats(*unique.values()) and [lane.pk for lane in lanes] == list(pks):
            break
    _refuse_if_held(lanes)
    return Ground(chats, tuple(lane for lane in lanes if lane.active_session_id in sessions))


def allow(chat: Chat, ledger: Ledger) -> None:
    """Those in the chat were users already; what the owner has blocked stays blocked."""
    if chat.access != Access.BLOCKED:
        ledger.update(Chat.objects.filter(pk=chat.pk), access=Access.ALLOWED)
        chat.access = Access.ALLOWED


def _chat(address: ChatAddress, ledger: Ledger) -> Chat:
    if chat := find_chat(address):
        return chat
    chat, is_new = make_chat(address)
    if is_new:
        ledger.inserted(chat)
    return chat


def _refuse_if_held(lanes: Iterable[Lane]) -> None:
    pks = [lane.pk for lane in lanes]
    held = Lane.objects.filter(pk__in=pks, token__isnull=False, lease_until__gte=DbNow())
    for lane in held.select_related("chat")[:1]:
        raise BusyError(f"{lane} is at work just now")
