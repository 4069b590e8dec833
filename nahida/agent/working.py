"""The sign in a chat that somebody is at it, while an answer is made."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from channels_app.addresses import ChatAddress
from channels_app.channels import Channel, UnknownChannelError, get_channel

logger = logging.getLogger(__name__)


@contextmanager
def shown_working(address: ChatAddress, message_id: str) -> Iterator[None]:
    """Show it from a thread of its own: a slow platform must not hold up the answer."""
    try:
        channel = get_channel(address.channel)
    except UnknownChannelError:  # the page and the API show the draft itself
        yield
        return
    done = threading.Event()
    threading.Thread(
        target=_show, args=(channel, address, message_id, done), name="working", daemon=True
    ).start()
    try:
        yield
    finally:
        done.set()


def _show(channel: Channel, address: ChatAddress, message_id: str, done: threading.Event) -> None:
    try:
        while (again_s := channel.show_working(address, message_id)) and not done.wait(again_s):
            pass
    except Exception:  # a sign is not worth a turn
        logger.exception("showing %s that an answer is made", address)
