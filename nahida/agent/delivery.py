"""Sending what waits, and acting on what the platform answers (DESIGN 5, D1-D4)."""

import logging

from django.db import transaction
from django.utils import timezone

from channels_app import outbox
from channels_app.addresses import ChatAddress
from channels_app.channels import SendError
from channels_app.models import Delivery
from memory_app.turns import requeue
from nahida import queue
from sessions_app import lanes, rekey
from sessions_app.models import Chat
from sessions_app.routing import find_chat

logger = logging.getLogger(__name__)


def deliver(pk: int) -> None:
    """Send one delivery if it is its turn, then wake the next of its address."""
    delivery = Delivery.objects.filter(pk=pk).first()
    if delivery is None:
        return
    chat = find_chat(delivery.to)
    if chat is not None and chat.unreachable_since is not None:
        outbox.give_up(delivery.to, f"the chat cannot be reached: {chat.unreachable_reason}")
        return
    error = outbox.send(pk)
    if error is not None:
        _act_on(error, delivery.to)
    delivery.refresh_from_db(fields=["address"])
    following = outbox.next_head(delivery.to)
    if following is not None and following != pk:
        queue.wake(queue.DELIVER, following)


def _act_on(error: SendError, address: ChatAddress) -> None:
    logger.warning("%s: %s", address, error)
    if error.migrated_to is not None:
        move_chat(address, error.migrated_to)
    elif error.unreachable:
        _mark_unreachable(address, str(error))


def move_chat(old: ChatAddress, new: ChatAddress) -> None:
    """Follow a chat to its new address, with everything that is its own."""
    chat = find_chat(old)
    if chat is None:
        return
    rekey.move_chat(chat, new, reason="moved by the platform", requeue=requeue)


def _mark_unreachable(address: ChatAddress, reason: str) -> None:
    chat = find_chat(address)
    if chat is None:
        return
    Chat.objects.filter(pk=chat.pk, unreachable_since=None).update(
        unreachable_since=timezone.now(), unreachable_reason=reason[:300]
    )
    outbox.give_up(address, f"the chat cannot be reached: {reason}")


def send_rest(delivery: Delivery) -> Delivery:
    """Queue what is not known to have arrived of a delivery that ended, behind whatever waits now.

    The part whose fate is unknown is sent again: the owner who asks for it has looked.
    """
    with transaction.atomic():
        lane = lanes.lock(delivery.to)
        return Delivery.objects.create(
            address=str(lane.address),
            parts=delivery.parts[delivery.next_part :],
            reply_to=delivery.reply_to if delivery.next_part == 0 else "",
        )
