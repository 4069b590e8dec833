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
    if delivery is None or _is_given_up(delivery.to):
        return
    error = _send(delivery)
    if error is not None and error.migrated_to is not None:
        move_chat(delivery.to, error.migrated_to)
        error = _send(delivery)
        if error is not None and error.migrated_to is not None:
            outbox.fail(pk, f"moved again as soon as it was followed: {error}")
    if error is not None and error.unreachable:
        _mark_unreachable(delivery.to, str(error))
    following = outbox.next_head(delivery.to)
    if following is not None and following != pk:
        queue.wake(queue.DELIVER, following)


def _send(delivery: Delivery) -> SendError | None:
    error = outbox.send(delivery.pk)
    delivery.refresh_from_db(fields=["address"])  # it follows its chat
    if error is not None:
        logger.warning("delivery %s to %s: %s", delivery.pk, delivery.address, error)
    return error


def move_chat(old: ChatAddress, new: ChatAddress) -> None:
    """Follow a chat that the platform moved, with everything that is its own. Old news changes nothing."""
    chat = find_chat(old)
    if chat is None or chat.chat_key != old.chat_key:
        return
    rekey.move_chat(chat, new, reason="moved by the platform", requeue=requeue)


def _mark_unreachable(address: ChatAddress, reason: str) -> None:
    chat = find_chat(address)
    if chat is None:
        return
    Chat.objects.filter(pk=chat.pk, unreachable_since=None).update(
        unreachable_since=timezone.now(), unreachable_reason=reason[:300]
    )
    _is_given_up(address)


def _is_given_up(address: ChatAddress) -> bool:
    """End what waits for a chat that cannot be reached.

    Under its row's lock, which an inbound message takes last: once that has been stored, its answer is not given up.
    """
    chat = find_chat(address)
    if chat is None or chat.unreachable_since is None:
        return False
    with transaction.atomic():
        unreachable = Chat.objects.filter(pk=chat.pk, unreachable_since__isnull=False)
        if unreachable.select_for_update().first() is None:
            return False
        outbox.give_up(chat.address, f"the chat cannot be reached: {chat.unreachable_reason}")
    return True


def send_rest(delivery: Delivery) -> Delivery:
    """Queue what is not known to have arrived of a delivery that ended, behind whatever waits now.

    ValueError while it may still go out by itself.
    """
    with transaction.atomic():
        lane = lanes.lock(delivery.to)
        return outbox.post_rest(delivery.pk, lane.address)
