"""What becomes of imported jobs: tied to a chat whose type is known, or switched off with the reason. They never fire before."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from nahida.legacy.proposals import DISABLE, RETARGET
from nahida.legacy.stated import by_job
from scheduler_app.models import CronJob
from scheduler_app.schedule import Rhythm, ScheduleError, next_fire
from sessions_app.ledger import Ledger, RowsChangedError
from sessions_app.models import Chat, MigrationLog

STAYS = "the chat type is unknown: the session of this job stays as it is"


def fates(record: MigrationLog, *, renames: bool) -> Iterator[tuple[CronJob, str, str]]:
    """Yield each job of a record, the chat key it is tied to or "", and why it is switched off or "".

    If the session does not move as a whole, only what a job says itself ties it to a chat.
    """
    for fate in record.affected.get("jobs", []):
        job = CronJob.objects.select_related("chat").filter(pk=fate["id"]).first()
        if job is None:
            raise RowsChangedError(f"job {fate['id']} is gone")
        told = by_job(job.imported_key, job.imported)
        if is_tied(job):
            yield job, "", ""
        elif fate["outcome"] == RETARGET and (renames or fate["chat_address"] == told):
            yield job, fate["chat_address"], ""
        elif fate["outcome"] in (RETARGET, DISABLE) and job.active:
            yield job, "", fate["why"] or STAYS
        else:
            yield job, "", ""


def tie(job: CronJob, chat: Chat, ledger: Ledger) -> None:
    """Give a job to its chat. An active one goes on from now: what was missed while it had none is not made up for."""
    changes: dict[str, Any] = {"chat": chat}
    if job.active:
        job.chat = chat
        try:
            changes["next_fire_at"] = next_fire(timezone.now(), rhythm=_rhythm(job))
        except ScheduleError as error:
            changes |= _off(str(error))
    ledger.update(CronJob.objects.filter(pk=job.pk), **changes)


def switch_off(job: CronJob, why: str, ledger: Ledger) -> None:
    ledger.update(CronJob.objects.filter(pk=job.pk), **_off(why))


def _off(why: str) -> dict[str, Any]:
    return {"active": False, "paused_reason": why[:300], "last_error": why}


def is_tied(job: CronJob) -> bool:
    """Is there nothing to do any more? A typed chat of the old bot's own still lacks its next instant."""
    has_chat = job.chat is not None and job.chat.address.typed
    return has_chat and (job.next_fire_at is not None or not job.active)


def _rhythm(job: CronJob) -> Rhythm:
    """Let an interval keep the grid it had in the old bot."""
    old = job.imported.get("next_fire_at") if isinstance(job.imported, dict) else None
    anchor = _instant(old) or job.created_at
    return replace(job.rhythm(), anchor=anchor)


def _instant(text: Any) -> datetime | None:
    try:
        found = parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found and not found.tzinfo else found
