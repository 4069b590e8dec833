"""What was said while nobody listened: events are sent once and never again, but a protocol end keeps a history.

A conversation is known by the messages of it that were stored lately. One that began in the gap is not, and stays unheard until it
goes on.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from channels_app.milky.client import Line
from channels_app.milky.inbound import read_key
from channels_app.milky.segments import number
from channels_app.models import InboundEvent

logger = logging.getLogger(__name__)

HEARD_WITHIN = timedelta(days=7)  # stored events are kept at least that long
MOST_EVENTS = 20_000  # looked at, the newest
ANSWERED_WITHIN = timedelta(hours=24)  # nobody waits longer for an answer
PAGE = 30  # the most that the protocol allows
MOST_PAGES = 10

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation, and the numbers of its messages that were stored."""

    self_id: int
    scene: str
    peer: int
    known: frozenset[int]

    def __str__(self) -> str:
        return f"{self.scene} {self.peer}"

    def is_missing(self, message: Message, *, since: datetime) -> bool:
        """Was it said after we came to know the conversation, by somebody else, and not too long ago?"""
        seq, sent = number(message, "message_seq"), number(message, "time")
        if seq is None or sent is None or number(message, "sender_id") == self.self_id:
            return False
        is_here = (message.get("message_scene"), message.get("peer_id")) == (self.scene, self.peer)
        is_new = seq > min(self.known) and seq not in self.known
        return is_here and is_new and sent >= since.timestamp()


def talks(channel: str, *, self_id: int, most: int) -> list[Talk]:
    """Return the conversations heard lately, at most `most`, the latest first. One query."""
    stored = InboundEvent.objects.filter(
        channel=channel, received_at__gte=timezone.now() - HEARD_WITHIN
    )
    numbers: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for key in stored.order_by("-received_at").values_list("event_key", flat=True)[:MOST_EVENTS]:
        match read_key(key):
            case (account, scene, peer, seq) if account == self_id:
                numbers[scene, peer].add(seq)
    if len(numbers) > most:
        logger.info("channel %s: only the latest %d conversations are looked at", channel, most)
    latest = list(numbers.items())[:most]
    return [Talk(self_id, scene, peer, frozenset(known)) for (scene, peer), known in latest]


async def missed(line: Line, talk: Talk) -> list[Message]:
    """Return the messages of a conversation that were not heard, oldest first. Raises `ListenError`."""
    since = timezone.now() - ANSWERED_WITHIN
    found: dict[int, Message] = {}
    start: int | None = None
    for _ in range(MOST_PAGES):
        page = await line.ask(
            "get_history_messages",
            message_scene=talk.scene,
            peer_id=talk.peer,
            start_message_seq=start,
            limit=PAGE,
        )
        listed = page.get("messages")
        messages = [each for each in listed if isinstance(each, Mapping)] if listed else []
        missing = [each for each in messages if talk.is_missing(each, since=since)]
        found |= {each["message_seq"]: each for each in missing}
        start = number(page, "next_message_seq")
        if not missing or start is None:
            break
    else:
        logger.warning("of the gap in %s only the last %d messages are read", talk, len(found))
    return [found[seq] for seq in sorted(found)]
