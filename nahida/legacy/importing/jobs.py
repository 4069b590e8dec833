"""Jobs and background tasks: kept as they were, but nothing fires until its chat is typed."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from channels_app.addresses import AddressError, SessionKey
from channels_app.messages import storable
from nahida.legacy.importing.ledger import Ledger, Sessions
from nahida.legacy.importing.reader import OldFile, Row, instant
from nahida.legacy.importing.sessions import chat_of
from nahida.legacy.importing.tally import Tally
from nahida.legacy.models import Source
from scheduler_app.models import BackgroundTask, CronJob, JobMode, SessionMode
from sessions_app.models import Chat

JOB_COLUMNS = (
    "job_id",
    "platform",
    "chat_id",
    "session_key",
    "prompt",
    "mode",
    "fire_at",
    "interval_seconds",
    "max_runs",
    "run_count",
    "is_active",
    "created_at",
    "next_fire_at",
    "last_fired_at",
    "workspace_id",
    "claimed_at",
    "failure_count",
    "last_error",
    "cron_expression",
    "session_mode",
    "session_name",
    "chat_type",
    "created_by_user_id",
    "created_from_session_id",
    "created_from_chat_address",
)
TASK_COLUMNS = (
    "task_id",
    "runtime",
    "status",
    "requester_session_id",
    "child_session_id",
    "parent_task_id",
    "title",
    "summary",
    "delivery_target_json",
    "created_at",
    "updated_at",
    "ended_at",
    "error",
)
OLD_ZONE = "UTC"  # in which the old bot read a cron expression
UNFINISHED = ("queued", "running")
LOST = "lost"


def import_jobs(file: OldFile, source: Source, here: Sessions, tally: Tally) -> None:
    count = tally.of("jobs")
    known = Ledger(source, "job")
    for row in file.rows("cron_jobs", JOB_COLUMNS):
        count.read += 1
        old_id = str(row["job_id"] or "")
        if old_id in known:
            count.there += 1
        elif row["mode"] not in JobMode.values:
            count.skip(f'its mode "{row["mode"]}" is unknown', old_id)
        else:
            with transaction.atomic():
                job = CronJob.objects.create(**_job(row, here))
                known.note([(old_id, job.pk)])
            count.imported += 1


def _job(row: Row, here: Sessions) -> dict[str, Any]:
    key = str(row["session_key"] or "")
    mode = str(row["session_mode"] or SessionMode.MAIN)
    return {
        "chat": _chat(key),
        "imported_key": key,
        "prompt": storable(str(row["prompt"] or "")),
        "mode": row["mode"],
        "cron_expression": str(row["cron_expression"] or "")[:200],
        "interval_seconds": _count(row["interval_seconds"]),
        "run_at": instant(row["fire_at"]),
        "time_zone": OLD_ZONE,
        "session_mode": mode if mode in SessionMode.values else SessionMode.MAIN,
        "session_name": str(row["session_name"] or "")[:100],
        "max_runs": _count(row["max_runs"]),
        "run_count": _count(row["run_count"]) or 0,
        "active": bool(row["is_active"]),
        "next_fire_at": None,
        "failures": min(_count(row["failure_count"]) or 0, 32_767),
        "last_error": storable(str(row["last_error"] or "")),
        "creator_session_id": here.get(row["created_from_session_id"]),
        "imported_at": timezone.now(),
        "imported": _kept(row),
        "created_at": instant(row["created_at"]) or timezone.now(),
    }


def _chat(key: str) -> Chat | None:
    try:
        return chat_of(SessionKey.parse(key).address)
    except AddressError:
        return None


def _count(value: Any) -> int | None:
    """Return a number that the column takes."""
    return value if isinstance(value, int) and 0 <= value <= 2_147_483_647 else None


def _kept(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def import_tasks(file: OldFile, source: Source, here: Sessions, tally: Tally) -> None:
    count = tally.of("background tasks")
    known = Ledger(source, "task")
    for row in file.rows("background_tasks", TASK_COLUMNS):
        count.read += 1
        old_id = str(row["task_id"] or "")
        requester = here.session(row["requester_session_id"])
        if old_id in known:
            count.there += 1
        elif requester is None:
            count.skip("it names no requester", old_id)
        else:
            with transaction.atomic():
                child = here.session(row["child_session_id"] or "")
                task = BackgroundTask.objects.create(requester=requester, child=child, **_task(row))
                known.note([(old_id, task.pk)])
            count.imported += 1


def _task(row: Row) -> dict[str, Any]:
    status = str(row["status"] or "")
    ended = instant(row["ended_at"])
    return {
        "title": storable(str(row["title"] or ""))[:300],
        # Whatever was under way ended with the old bot.
        "state": LOST if status in UNFINISHED else storable(status)[:16],
        "summary": storable(str(row["summary"] or "")),
        "error": storable(str(row["error"] or "")),
        "imported": _kept(row),
        "created_at": instant(row["created_at"]) or timezone.now(),
        "finished_at": ended or instant(row["updated_at"]),
    }
