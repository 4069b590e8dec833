"""The one place that sends (DESIGN 5, D1-D4).

    pending -> claimed -> sending -> sent | failed | unknown

A request that may have left is never repeated by itself: it ends as `unknown`. Deliveries of one address go out in order of their
ids; that these are in order of commit is why the lane of an address must be locked to insert one.
"""

import logging
import uuid
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from channels_app import media
from channels_app.addresses import API, WEB, ChatAddress
from channels_app.channels import (
    Channel,
    Refused,
    SendError,
    UnknownChannelError,
    get_channel,
)
from channels_app.clock import DbNow
from channels_app.messages import Attachment, OutboundMessage, OutboundPart
from channels_app.models import UNFINISHED, Delivery, DeliveryState
from channels_app.splitting import split_text

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)  # longer than any HTTP time-out of a channel
WAKE_AGAIN_AFTER = timedelta(seconds=30)
GIVE_UP_AFTER = timedelta(hours=24)
LONGEST_PAUSE_S = 300
REASON_LENGTH = 1000  # characters


def post(
    address: ChatAddress, text: str, *, files: Sequence[Attachment] = (), reply_to: str = ""
) -> Delivery | None:
    """Queue a text, and files of the media store behind it, for an address whose lane the caller has locked.

    None for web and API chats, whose answers are read from the database (D5), and for a text that shows nothing.
    """
    if address.channel in (WEB, API):
        return None
    parts = [asdict(part) for part in (*_split(address, text), *map(_file_part, files))]
    return _queue(address, parts, reply_to=reply_to) if parts else None


def post_rest(pk: int, address: ChatAddress) -> Delivery:
    """Queue what is not known to have arrived of a delivery, at the tail of an address whose lane the caller has locked.

    The part whose fate is unknown is sent again: the owner who asks for it has looked. ValueError while it may still go out, and the second time.
    """
    delivery = Delivery.objects.get(pk=pk)
    if delivery.state not in (DeliveryState.UNKNOWN, DeliveryState.FAILED):
        raise ValueError(
            f"delivery {pk} is {delivery.state}: only the rest of an unknown or failed one is sent"
        )
    if rest := Delivery.objects.filter(continues=pk).first():
        raise ValueError(f"the rest of delivery {pk} was sent already, as delivery {rest.pk}")
    reply_to = delivery.reply_to if delivery.next_part == 0 else ""
    parts = delivery.parts[delivery.next_part :]
    return _queue(address, parts, reply_to=reply_to, continues=delivery)


def _queue(
    address: ChatAddress,
    parts: Sequence[dict[str, Any]],
    *,
    reply_to: str,
    continues: Delivery | None = None,
) -> Delivery:
    assert transaction.get_connection().in_atomic_block, "the lane's lock lives in a transaction"
    return Delivery.objects.create(
        address=str(address),
        parts=parts,
        reply_to=reply_to,
        continues=continues,
        next_attempt_at=_pause_ends(address) or DbNow(),
    )


def _split(address: ChatAddress, text: str) -> list[OutboundPart]:
    try:
        return get_channel(address.channel).split(text)
    except UnknownChannelError:  # it will fail when sent, with the reason on the row
        return [OutboundPart(part) for part in split_text(text, 4000)]


def _file_part(file: Attachment) -> OutboundPart:
    assert file.file, "only what is kept can be sent"
    return OutboundPart(
        "",
        file=file.file,
        file_kind=file.kind,
        file_name=file.name or file.kind,
        file_mime=file.mime,
    )


def heads() -> QuerySet[Delivery]:
    """Pending deliveries with no unfinished one of the same address before them (D1)."""
    earlier = Delivery.objects.filter(
        UNFINISHED, address=OuterRef("address"), pk__lt=OuterRef("pk")
    )
    return Delivery.objects.filter(~Exists(earlier), state=DeliveryState.PENDING)


def send(pk: int) -> SendError | None:
    """Claim a delivery and send what is left of it. Returns what the platform objected to, already recorded on the row."""
    token = claim(pk)
    if token is None:
        return None
    delivery = Delivery.objects.get(pk=pk)
    try:
        channel = get_channel(delivery.to.channel)
    except UnknownChannelError as error:
        refusal = SendError(str(error), permanent=True)
        _begin_part(delivery, token)
        _record(delivery, token, refusal)
        return refusal
    for index in range(delivery.next_part, len(delivery.parts)):
        part = OutboundPart(**delivery.parts[index])
        try:
            message_id = _send_part(channel, delivery, token, index, part)
        except SendError as error:
            _record(delivery, token, error)
            return error
        except Exception as error:
            # Whatever broke, the request may have left.
            logger.exception("sending delivery %s", pk)
            broken = SendError(f"{type(error).__name__}: {error}")
            _record(delivery, token, broken)
            return broken
        pace = timedelta(seconds=channel.pace_s(delivery.to))
        if message_id is None or not _part_sent(delivery, token, index, message_id, pace=pace):
            return None
    return None


def _send_part(
    channel: Channel, delivery: Delivery, token: uuid.UUID, index: int, part: OutboundPart
) -> str | None:
    """Send one part, again without what the platform objects to. None: it is no longer ours to send."""
    without: set[Refused] = {Refused.MARKUP} if part.plain else set()
    while True:
        if not _begin_part(delivery, token):
            return None
        try:
            return channel.send(_message(delivery, index, part, without))
        except media.MissingFileError as error:
            raise SendError(str(error), permanent=True) from error
        except SendError as error:
            if error.refused is None or error.refused in without:
                raise
            logger.warning("delivery %s goes without its %s: %s", delivery.pk, error.refused, error)
            without.add(error.refused)


def _message(
    delivery: Delivery, index: int, part: OutboundPart, without: set[Refused]
) -> OutboundMessage:
    replies = index == 0 and Refused.REPLY not in without
    return OutboundMessage(
        address=delivery.to.with_thread("") if Refused.THREAD in without else delivery.to,
        part=replace(part, plain=Refused.MARKUP in without),
        reply_to=delivery.reply_to if replies else "",
    )


def claim(pk: int) -> uuid.UUID | None:
    token = uuid.uuid4()
    due = heads().filter(pk=pk, next_attempt_at__lte=DbNow())
    claimed = due.update(
        state=DeliveryState.CLAIMED,
        token=token,
        lease_until=DbNow() + LEASE,
        attempts=F("attempts") + 1,
    )
    return token if claimed else None


def _mine(delivery: Delivery, token: uuid.UUID, *states: DeliveryState) -> QuerySet[Delivery]:
    return Delivery.objects.filter(pk=delivery.pk, token=token, state__in=states)


def _begin_part(delivery: Delivery, token: uuid.UUID) -> bool:
    """Say that a request is about to leave; from here on silence means `unknown`."""
    ours = _mine(delivery, token, DeliveryState.CLAIMED, DeliveryState.SENDING)
    if not ours.update(state=DeliveryState.SENDING, lease_until=DbNow() + LEASE):
        return False
    # The chat may have moved since the last part.
    delivery.refresh_from_db(fields=["address", "reply_to"])
    return True


def _part_sent(
    delivery: Delivery, token: uuid.UUID, index: int, message_id: str, *, pace: timedelta
) -> bool:
    """Record a part that arrived. False when there is nothing more to send now.

    Either it was the last one, or the chat wants its pause first, or the lease ran out meanwhile: what is left then stays unsent.
    """
    delivery.message_ids = [*delivery.message_ids, message_id]
    done = {"next_part": index + 1, "message_ids": delivery.message_ids}
    is_last = index + 1 == len(delivery.parts)
    if is_last:
        ours = _mine(delivery, token, DeliveryState.SENDING, DeliveryState.UNKNOWN)
        # Of a row that was sent, when the next may go to this chat.
        quiet = {"next_attempt_at": DbNow() + pace}
        ours.update(state=DeliveryState.SENT, error="", **quiet, **done)
    else:
        ours = _mine(delivery, token, DeliveryState.SENDING)
        waits = {**_back_to_pending(after=pace), "attempts": 0} if pace else {}
        if not ours.update(**done, **waits):
            _mine(delivery, token, DeliveryState.UNKNOWN).update(**done)
            return False
    if pace:
        _pause_chat(delivery.to, pace)
    return not is_last and not pace


def _back_to_pending(*, after: timedelta) -> dict[str, Any]:
    return {
        "state": DeliveryState.PENDING,
        "token": None,
        "woken_at": None,
        "next_attempt_at": DbNow() + after,
    }


def _record(delivery: Delivery, token: uuid.UUID, error: SendError) -> None:
    sending, unknown = DeliveryState.SENDING, DeliveryState.UNKNOWN
    reason = str(error)[:REASON_LENGTH]
    if error.retry_after is not None:
        _pause_chat(delivery.to, _pause(delivery, error))
    if error.permanent or error.unreachable or error.refused:
        _mine(delivery, token, sending, unknown).update(state=DeliveryState.FAILED, error=reason)
    elif error.not_sent or error.migrated_to:
        _mine(delivery, token, sending).update(
            **_back_to_pending(after=_pause(delivery, error)), error=reason
        )
    else:
        _mine(delivery, token, sending).update(state=unknown, error=reason)


def _pause(delivery: Delivery, error: SendError) -> timedelta:
    if error.migrated_to:
        return timedelta(0)
    if error.retry_after is not None:
        return timedelta(seconds=min(error.retry_after, GIVE_UP_AFTER.total_seconds()))
    return timedelta(seconds=min(2 ** min(delivery.attempts, 10), LONGEST_PAUSE_S))


def _pause_chat(address: ChatAddress, pause: timedelta) -> None:
    """Leave a chat alone for a while: its other topics wait too."""
    sooner = _waiting_at(address).filter(next_attempt_at__lt=DbNow() + pause)
    _update_each(sooner, next_attempt_at=DbNow() + pause)


def _pause_ends(address: ChatAddress) -> datetime | None:
    """Return until when a chat is left alone: what comes new waits like the rest."""
    put_off = Delivery.objects.filter(
        state__in=[DeliveryState.PENDING, DeliveryState.SENT], next_attempt_at__gt=DbNow()
    )
    ends = _at_chat(put_off, address).values_list("next_attempt_at", flat=True)
    return max(ends, default=None)


def _waiting_at(chat: ChatAddress) -> QuerySet[Delivery]:
    return _at_chat(Delivery.objects.filter(state=DeliveryState.PENDING), chat)


def _at_chat(deliveries: QuerySet[Delivery], chat: ChatAddress) -> QuerySet[Delivery]:
    """Return those to a chat, its topics included. Compared in Python: a key is never matched by its beginning alone."""
    alike = deliveries.filter(address__startswith=chat.chat_key)
    addresses = alike.values_list("address", flat=True).distinct()
    at_chat = [text for text in addresses if ChatAddress.parse(text).chat_key == chat.chat_key]
    return deliveries.filter(address__in=at_chat)


def sweep() -> None:
    """End what nobody works on any more: expired leases, and heads that waited for a day."""
    expired = Delivery.objects.filter(lease_until__lt=DbNow())
    _update_each(
        expired.filter(state=DeliveryState.CLAIMED),
        state=DeliveryState.PENDING,
        token=None,
        woken_at=None,
    )
    _update_each(
        expired.filter(state=DeliveryState.SENDING),
        state=DeliveryState.UNKNOWN,
        error="the worker was lost while the request was out",
    )
    _update_each(
        heads().filter(created_at__lt=DbNow() - GIVE_UP_AFTER),
        state=DeliveryState.FAILED,
        error="not accepted by the platform for 24 hours",
    )


def _update_each(deliveries: QuerySet[Delivery], **changes: Any) -> None:
    """Update row by row: two statements over many rows could each wait for a row of the other."""
    for pk in list(deliveries.values_list("pk", flat=True)):
        deliveries.filter(pk=pk).update(**changes)


def give_up(address: ChatAddress, reason: str) -> None:
    """End everything that still waits for a chat that cannot be reached, its topics included."""
    _waiting_at(address).update(state=DeliveryState.FAILED, error=reason[:REASON_LENGTH])


def fail(pk: int, reason: str) -> None:
    """End a delivery that waits."""
    waiting = Delivery.objects.filter(pk=pk, state=DeliveryState.PENDING)
    waiting.update(state=DeliveryState.FAILED, error=reason[:REASON_LENGTH])


def wake_due(limit: int) -> list[int]:
    """R6: mark due heads as woken and return them; a lost wake-up is repeated after a while."""
    asleep = Q(woken_at=None) | Q(woken_at__lt=DbNow() - WAKE_AGAIN_AFTER)
    due = heads().filter(asleep, next_attempt_at__lte=DbNow())
    candidates = list(due.order_by("next_attempt_at").values_list("pk", flat=True)[:limit])
    return [pk for pk in candidates if due.filter(pk=pk).update(woken_at=DbNow())]


def next_head(address: ChatAddress) -> int | None:
    """Return the delivery that may go out now at an address."""
    due = heads().filter(address=str(address), next_attempt_at__lte=DbNow())
    return due.values_list("pk", flat=True).first()
