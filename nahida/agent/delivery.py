"""Sending what waits, and acting on what the platform answers (DESIGN 5, D1-D4)."""

import logging

from django.db import transaction

from channels_app import outbox
from channels_app.addresses import ChatAddress
from channels_app.channels import SendError
from channels_app.messages import ReachChanged
from channels_app.models import Delivery
from memory_app.turns import requeue
from nahida import queue
from sessions_app import lanes, reach, rekey
from sessions_app.deadlocks import outlast_deadlocks
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
        change_reach(ReachChanged(delivery.to, reason=str(error)))
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
    reason = "moved by the platform"
    outlast_deadlocks(lambda: rekey.move_chat(chat, new, reason=reason, requeue=requeue))


def change_reach(news: ReachChanged) -> None:
    """Act on a chat that can no longer be written to, or can be again. One that nobody knows changes nothing."""
    chat = find_chat(news.address)
    if chat is None:
        return
    reach.change(chat, news)
    if news.reason:
        _is_given_up(news.address)


def _is_given_up(address: ChatAddress) -> bool:
    """End what waits for a chat that cannot be written to.

    Under its row's lock, which an inbound message takes last: once that has been stored, its answer is not given up.
    """
    chat = find_chat(address)
    if chat is None:
        return False
    with transaction.atomic():
        silent = Chat.objects.silent().select_for_update().filter(pk=chat.pk).first()
        if silent is None:
            return False
        outbox.give_up(chat.address, f"the chat cannot be written to: {silent.unreachable_reason}")
    return True


def send_rest(delivery: Delivery) -> Delivery:
    """Queue what is not known to have arrived of a delivery that ended, behind whatever waits now.

    ValueError while it may still go out by itself.
    """
    with transaction.atomic():
        lane = lanes.lock(delivery.to)
        return outbox.post_rest(delivery.pk, lane.address)
