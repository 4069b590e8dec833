"""The lane: one queue per chat or topic. The lease says when to try; the token says who may commit (DESIGN 5, R1-R6).

Every transaction locks lanes, in pk order, before chats. SQLite's one write lock, taken at BEGIN, stands for them all there.
"""

import uuid
from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import Exists, F, Q, QuerySet
from django.db.models.functions import Coalesce, Greatest

from channels_app.addresses import ChatAddress
from channels_app.clock import DbNow, is_postgresql
from sessions_app.models import Chat, Lane
from sessions_app.routing import base_session, chat_for

LEASE = timedelta(seconds=30)
WAKE_AGAIN_AFTER = timedelta(seconds=30)


class MergedAwayError(Exception):
    """The chat became another one while we were about to lock its lane: look the address up again."""


class LostLaneError(Exception):
    """Our token is gone: somebody else holds the lane, or its deadline passed. Nothing of ours may be stored."""


def lock(address: ChatAddress) -> Lane:
    """Return the lane of an address, locked until the transaction ends; made if there is none."""
    while True:
        chat = chat_for(address)
        lane = _locked(Lane.objects.filter(chat=chat, thread=address.thread_id))
        if lane is not None:
            return lane
        try:
            _make(chat, address.thread_id)
        except MergedAwayError:
            continue


def lock_all(addresses: Iterable[ChatAddress], *, also: Sequence[int] = ()) -> list[Lane]:
    """Lock the lanes of all addresses and the lanes `also`, in pk order. All of them exist, or MergedAwayError."""
    wanted = {(chat_for(address).pk, address.thread_id) for address in addresses}
    condition = Q(pk__in=also)
    for chat_id, thread in wanted:
        condition |= Q(chat_id=chat_id, thread=thread)
    lanes = list(Lane.objects.filter(condition).order_by("pk").select_for_update())
    if not wanted <= {(lane.chat_id, lane.thread) for lane in lanes}:
        raise MergedAwayError
    return lanes


def ensure(address: ChatAddress) -> None:
    """Make the lane of an address if there is none, in a transaction of its own."""
    with transaction.atomic():
        lock(address)


def wake(lane: Lane, *, pause: timedelta = timedelta(0)) -> None:
    """R1: count one more turn and set the lane due. A later `wake_at` is kept, whoever set it."""
    at = DbNow() + pause if pause else DbNow()
    Lane.objects.filter(pk=lane.pk).update(
        inbox=F("inbox") + 1, woken_at=None, wake_at=Greatest(Coalesce(F("wake_at"), at), at)
    )


def claim(lane_id: int) -> uuid.UUID | None:
    """R2: take the lane if it is due and nobody holds a live lease."""
    token = uuid.uuid4()
    free = Q(token=None) | Q(lease_until__lt=DbNow())
    due = Lane.objects.filter(free, pk=lane_id, wake_at__lte=DbNow())
    return token if due.update(token=token, lease_until=DbNow() + LEASE) else None


def renew(lane_id: int, token: uuid.UUID) -> bool:
    mine = Lane.objects.filter(pk=lane_id, token=token)
    return mine.update(lease_until=DbNow() + LEASE) == 1


def hold(lane_id: int, token: uuid.UUID) -> Lane | None:
    """Lock the lane by a write that only the token's holder can make; None if that is no longer us."""
    assert transaction.get_connection().in_atomic_block, "a hold ends with its transaction"
    if not Lane.objects.filter(pk=lane_id, token=token).update(token=token):
        return None
    return Lane.objects.select_related("chat", "active_session").get(pk=lane_id)


def release(lane_id: int, token: uuid.UUID, *, inbox: int, unfinished: QuerySet) -> bool:  # type: ignore[type-arg]
    """R5: let the lane sleep if nothing came since `inbox` was read and no turn is `unfinished`.

    Both tests are needed: PostgreSQL's subquery sees an older snapshot than the row it waits for. False: give it back instead.
    """
    idle = Lane.objects.filter(~Exists(unfinished), pk=lane_id, token=token, inbox=inbox)
    return idle.update(token=None, wake_at=None, woken_at=None) == 1


def give_back(lane_id: int, token: uuid.UUID) -> bool:
    """Let the lane go while work is left: `wake_at` stays, so the next claim may follow at once."""
    return Lane.objects.filter(pk=lane_id, token=token).update(token=None, woken_at=None) == 1


def put_off(lane: Lane, *, by: timedelta) -> None:
    """R11: let a held lane go until a later time."""
    Lane.objects.filter(pk=lane.pk).update(token=None, woken_at=None, wake_at=DbNow() + by)


def is_due(lane: Lane) -> bool:
    return Lane.objects.filter(pk=lane.pk, wake_at__lte=DbNow()).exists()


def wake_due(limit: int) -> list[int]:
    """R6: mark due lanes as woken and return them; a lost wake-up is repeated after a while."""
    asleep = Q(woken_at=None) | Q(woken_at__lt=DbNow() - WAKE_AGAIN_AFTER)
    free = Q(token=None) | Q(lease_until__lt=DbNow())
    due = Lane.objects.filter(asleep, free, wake_at__lte=DbNow())
    candidates = list(due.order_by("wake_at").values_list("pk", flat=True)[:limit])
    return [pk for pk in candidates if due.filter(pk=pk).update(woken_at=DbNow())]


def _make(chat: Chat, thread: str) -> None:
    """Insert a lane under a share lock of its chat.

    The savepoint gives that lock back when another transaction was quicker: we must not hold a chat while waiting for a lane.
    """

    class Present(Exception):
        pass

    try:
        with transaction.atomic():
            _share_lock(chat)
            chat.refresh_from_db()  # it may have moved before we had the lock
            session = base_session(chat, thread)
            _, made = Lane.objects.get_or_create(
                chat=chat, thread=thread, defaults={"active_session": session}
            )
            if not made:
                raise Present
    except Present:
        return


def _share_lock(chat: Chat) -> None:
    with connection.cursor() as cursor:
        share = " FOR SHARE" if is_postgresql() else ""
        cursor.execute(
            f"SELECT merged_into_id FROM sessions_app_chat WHERE id = %s{share}", [chat.pk]
        )
        row = cursor.fetchone()
    if row is None or row[0] is not None:
        raise MergedAwayError


def _locked(lanes: QuerySet[Lane]) -> Lane | None:
    # No join: a row that changed while we waited would be joined to what it pointed to before.
    return lanes.select_for_update().first()
