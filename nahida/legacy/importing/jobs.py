"""Jobs and background tasks: kept as they were, but nothing fires until its chat is typed."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from nahida.legacy.importing.ledger import Ledger, batched, unfit
from nahida.legacy.importing.reader import OldFile, Row, instant, kept, text, whole
from nahida.legacy.importing.sessions import chat_of
from nahida.legacy.importing.tally import Tally
from nahida.legacy.models import Source
from scheduler_app.models import BackgroundTask, CronJob, JobMode, SessionMode

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
BATCH = 500  # rows a transaction
LARGEST = 2**31 - 1  # a column of four bytes


def import_jobs(file: OldFile, source: Source, here: Ledger, tally: Tally) -> None:
    count = tally.of("jobs")
    known = Ledger(source, "job")
    rows = known.missing(file.rows("cron_jobs", JOB_COLUMNS), id_in="job_id", count=count)
    for batch in batched(rows, BATCH):
        made = []
        with transaction.atomic():
            for old_id, row in batch:
                if row["mode"] not in JobMode.values:
                    count.skip(f'its mode "{text(row["mode"])}" is unknown', old_id)
                else:
                    made.append((old_id, CronJob.objects.create(**_job(row, here)).pk))
            known.note(made)
        count.imported += len(made)


def _job(row: Row, here: Ledger) -> dict[str, Any]:
    key, mode = str(row["session_key"] or ""), row["session_mode"]
    return {
        "chat": chat_of(key),
        "imported_key": "" if unfit(key) else key,
        "prompt": text(row["prompt"]),
        "mode": row["mode"],
        "cron_expression": text(row["cron_expression"], 200),
        "interval_seconds": _number(row["interval_seconds"]),
        "run_at": instant(row["fire_at"]),
        "time_zone": OLD_ZONE,
        "session_mode": mode if mode in SessionMode.values else SessionMode.MAIN,
        "session_name": text(row["session_name"], 100),
        "max_runs": _number(row["max_runs"]),
        "run_count": _number(row["run_count"]) or 0,
        "active": bool(row["is_active"]),
        "next_fire_at": None,
        "failures": min(_number(row["failure_count"]) or 0, 32_767),
        "last_error": text(row["last_error"]),
        "creator_session_id": here.get(row["created_from_session_id"]),
        "imported_at": timezone.now(),
        "imported": _as_it_was(row),
        "created_at": instant(row["created_at"]) or timezone.now(),
    }


def _number(value: Any) -> int | None:
    number = whole(value)
    return number if number is None or number <= LARGEST else None


def _as_it_was(row: Row) -> dict[str, Any]:
    return {name: kept(value) for name, value in row.items() if value is not None}


def import_tasks(file: OldFile, source: Source, here: Ledger, tally: Tally) -> None:
    count = tally.of("background tasks")
    known = Ledger(source, "task")
    rows = known.missing(file.rows("background_tasks", TASK_COLUMNS), id_in="task_id", count=count)
    for batch in batched(rows, BATCH):
        made = []
        with transaction.atomic():
            for old_id, row in batch:
                requester = here.get(row["requester_session_id"])
                if requester is None:
                    count.skip("it names no requester", old_id)
                else:
                    task = BackgroundTask.objects.create(requester_id=requester, **_task(row, here))
                    made.append((old_id, task.pk))
            known.note(made)
        count.imported += len(made)


def _task(row: Row, here: Ledger) -> dict[str, Any]:
    status = text(row["status"], 16)
    return {
        "child_id": here.get(row["child_session_id"]),
        "title": text(row["title"], 300),
        # Whatever was under way ended with the old bot.
        "state": LOST if status in UNFINISHED else status,
        "summary": text(row["summary"]),
        "error": text(row["error"]),
        "imported": _as_it_was(row),
        "created_at": instant(row["created_at"]) or timezone.now(),
        "finished_at": instant(row["ended_at"]) or instant(row["updated_at"]),
    }
