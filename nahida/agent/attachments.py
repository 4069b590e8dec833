"""Files of a batch come into the media store before the model is asked. None of them can fail a turn.

Downloaded are pictures and documents: of the batch, of what it replies to, and of the lines heard since the last answer.
"""

import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from channels_app import media
from channels_app.addresses import ChatAddress
from channels_app.channels import FetchError, UnknownChannelError, get_channel
from channels_app.messages import Attachment as Wanted
from channels_app.messages import storable
from memory_app.models import Attachment, MemoryTurn, Role, TurnState
from nahida.agent.pictures import picture
from nahida.config import Files
from sessions_app import lanes

logger = logging.getLogger(__name__)

DOWNLOADED = ("image", "file")
FETCH_S = 60.0  # after which no more downloads begin: the one under way and the model need the rest of the turn
MOST_HEARD = 20  # files looked at, the newest
TRIES = 2  # of what may pass
ERROR_LENGTH = 200  # characters


@dataclass(slots=True)
class _Allowance:
    """What a batch may still download."""

    limits: Files
    files: int
    bytes: int
    ends: float

    @classmethod
    def beside(cls, kept: Sequence[Attachment], *, deadline: float) -> "_Allowance":
        limits: Files = settings.NAHIDA.files
        return cls(
            limits=limits,
            files=limits.per_turn - len(kept),
            bytes=limits.a_turn - sum(file.size or 0 for file in kept),
            ends=min(time.monotonic() + FETCH_S, deadline),
        )

    @property
    def largest(self) -> int:
        return min(self.limits.largest, self.bytes)

    def refusal(self, file: Attachment) -> str:
        """Return why a file may not be downloaded, "" if it may."""
        if self.limits.per_turn == 0:
            return "downloads are switched off"
        if self.files <= 0:
            return f"more than {self.limits.per_turn} files at once"
        if file.size is not None and file.size > self.limits.largest:
            return f"larger than {media.spoken_size(self.limits.largest)}"
        if self.bytes <= 0 or (file.size is not None and file.size > self.bytes):
            return f"more than {media.spoken_size(self.limits.a_turn)} at once"
        if time.monotonic() >= self.ends:
            return "there was no time left"
        return ""


def fetch(
    lane_id: int,
    token: uuid.UUID,
    batch: Sequence[MemoryTurn],
    *,
    is_private: bool,
    deadline: float,
    check: Callable[[], None],
) -> None:
    """Download what is not kept yet, and write beside each file that cannot be had why.

    `check` is called before each; what it raises ends the work, as does `LostLaneError`. Rows are written under the lane's token,
    no transaction is open over the network.
    """
    theirs = list(_downloaded().filter(turn__in=batch).order_by("pk"))
    allowance = _Allowance.beside([file for file in theirs if file.file], deadline=deadline)
    for file in filter(_is_missing, theirs):
        check()
        if refusal := allowance.refusal(file):
            _record(lane_id, token, file, error=refusal)
        else:
            _take_in(lane_id, token, file, allowance)
    for file in _heard(batch, is_private=is_private):
        if not allowance.refusal(file):
            check()
            _take_in(lane_id, token, file, allowance)


def _downloaded() -> QuerySet[Attachment]:
    return Attachment.objects.filter(kind__in=DOWNLOADED).select_related("turn")


def _is_missing(file: Attachment) -> bool:
    return bool(file.platform_id) and not file.file and not file.error


def _heard(batch: Sequence[MemoryTurn], *, is_private: bool) -> list[Attachment]:
    """Return what a batch is likely to be about: files it replies to, then what others sent since the last answer, newest first."""
    replied = [turn.metadata["reply_to"] for turn in batch if turn.metadata.get("reply_to")]
    files: list[Attachment] = []
    earlier = MemoryTurn.objects.filter(session=batch[0].session_id, pk__lt=batch[-1].pk)
    if replied:
        files += _downloaded().filter(turn__in=earlier.filter(message_id__in=replied))
    if not is_private:
        answers = earlier.filter(role=Role.ASSISTANT).order_by("-pk").values_list("pk", flat=True)
        since = max(answers.first() or 0, batch[0].session.history_from)
        observed = earlier.filter(state=TurnState.OBSERVED, pk__gt=since)
        files += _downloaded().filter(turn__in=observed).order_by("-pk")[:MOST_HEARD]
    return list({file.pk: file for file in files if _is_missing(file)}.values())


def _take_in(lane_id: int, token: uuid.UUID, file: Attachment, allowance: _Allowance) -> None:
    try:
        content = _content(file, limit=allowance.largest)
    except FetchError as error:
        logger.warning("attachment %s: %s", file.pk, error)
        _record(lane_id, token, file, error=storable(str(error))[:ERROR_LENGTH])
        return
    allowance.files -= 1
    allowance.bytes -= len(content)
    found = picture(content)
    _record(
        lane_id,
        token,
        file,
        file=media.keep(content),
        size=len(content),
        mime=found.mime if found else file.mime,
    )


def _content(file: Attachment, *, limit: int) -> bytes:
    for attempt in range(1, TRIES + 1):
        try:
            return _asked(file, limit=limit)
        except FetchError as error:
            if error.permanent or attempt == TRIES:
                raise
    raise AssertionError("the last attempt returns or raises")


def _asked(file: Attachment, *, limit: int) -> bytes:
    wanted = Wanted(
        kind=file.kind,
        text=file.text,
        platform_id=file.platform_id,
        name=file.name,
        mime=file.mime,
        size=file.size,
    )
    try:
        channel = get_channel(ChatAddress.parse(file.turn.origin).channel)
        content = channel.fetch(wanted, limit=limit)
        assert len(content) <= limit, "a channel keeps to the limit"
    except FetchError:
        raise
    except UnknownChannelError as error:
        raise FetchError(str(error), permanent=True) from error
    except Exception as error:
        logger.exception("attachment %s", file.pk)
        raise FetchError("something went wrong on the way", permanent=True) from error
    return content


def _record(lane_id: int, token: uuid.UUID, row: Attachment, **changes: object) -> None:
    # Should this fail, its end may still be unknown: a file that was kept is left to the sweep.
    with transaction.atomic():
        if lanes.hold(lane_id, token) is None:
            raise lanes.LostLaneError(lane_id)
        Attachment.objects.filter(pk=row.pk, file="").update(**changes)
