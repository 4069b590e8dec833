"""What runs when: jobs, each planned run of a job, and background tasks."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from channels_app.models import Delivery
from memory_app.models import MemoryTurn
from scheduler_app.schedule import Rhythm
from sessions_app.models import Chat, Session


class JobMode(models.TextChoices):
    ONCE = "once"
    INTERVAL = "interval"
    CRON = "cron"


class Misfire(models.TextChoices):
    SKIP = "skip", "a missed run is only listed"
    ONCE = "once", "missed runs are caught up by one"


class SessionMode(models.TextChoices):
    MAIN = "main", "the chat's active session"
    ISOLATED = "isolated", "a session of the job's own"
    NAMED = "named", "a session that jobs share by name"


class CronJob(models.Model):
    """Something to be said to the assistant at a time, for one chat. Belongs to the chat, not to a session."""

    chat = models.ForeignKey(Chat, models.PROTECT, null=True, related_name="jobs")
    thread = models.CharField(max_length=1000, blank=True, default="")
    imported_key = models.CharField(max_length=1000, blank=True, default="", editable=False)
    name = models.CharField(max_length=100, blank=True, default="")
    prompt = models.TextField()
    mode = models.CharField(max_length=8, choices=JobMode.choices)
    cron_expression = models.CharField(max_length=200, blank=True, default="")
    interval_seconds = models.PositiveIntegerField(null=True, blank=True)
    run_at = models.DateTimeField(null=True, blank=True)
    time_zone = models.CharField(max_length=64, blank=True, default="")
    misfire = models.CharField(max_length=8, choices=Misfire.choices, default=Misfire.ONCE)
    grace_seconds = models.PositiveIntegerField(default=3600)
    session_mode = models.CharField(
        max_length=8, choices=SessionMode.choices, default=SessionMode.MAIN
    )
    session_name = models.CharField(max_length=100, blank=True, default="")
    max_runs = models.PositiveIntegerField(null=True, blank=True)
    run_count = models.PositiveIntegerField(default=0)
    active = models.BooleanField(default=True)
    paused_reason = models.CharField(max_length=300, blank=True, default="")
    next_fire_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveSmallIntegerField(default=0)
    last_error = models.TextField(blank=True, default="")
    creator = models.CharField(max_length=300, blank=True, default="", help_text="account")
    creator_session = models.ForeignKey(
        Session, models.PROTECT, null=True, blank=True, related_name="created_jobs"
    )
    imported_at = models.DateTimeField(null=True, blank=True, editable=False)
    imported = models.JSONField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(chat__isnull=False) | Q(imported_at__isnull=False),
                name="job_has_chat_or_imported",
            ),
            models.CheckConstraint(condition=Q(mode__in=JobMode.values), name="job_mode_known"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["next_fire_at"], name="job_due", condition=Q(active=True))
        ]

    def __str__(self) -> str:
        return self.name or f"job {self.pk}"

    def rhythm(self) -> Rhythm:
        """Return when it is to run: by its own time zone, else its chat's, else the site's. One query unless the chat is loaded."""
        zone = self.time_zone or (self.chat and self.chat.time_zone) or settings.TIME_ZONE
        return Rhythm(
            mode=self.mode,
            run_at=self.run_at,
            interval_seconds=self.interval_seconds,
            anchor=self.next_fire_at or self.created_at,
            cron_expression=self.cron_expression,
            time_zone=zone,
        )


class CronRun(models.Model):
    """One planned instant of a job, claimed once and for all."""

    job = models.ForeignKey(CronJob, models.PROTECT, related_name="runs")
    planned_at = models.DateTimeField()
    kind = models.CharField(max_length=8, default="planned")
    turn = models.ForeignKey(MemoryTurn, models.PROTECT, null=True, blank=True, related_name="runs")
    state = models.CharField(max_length=16, default="planned")
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    delivery = models.ForeignKey(
        Delivery, models.PROTECT, null=True, blank=True, related_name="runs"
    )
    error = models.TextField(blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["job", "planned_at"], name="run_once_an_instant")
        ]

    def __str__(self) -> str:
        return f"job {self.job_id} at {self.planned_at}"


class BackgroundTask(models.Model):
    """Work that a chat handed off. Only the session that asked may see, await or stop it."""

    requester = models.ForeignKey(Session, models.PROTECT, related_name="requested_tasks")
    child = models.ForeignKey(
        Session, models.PROTECT, null=True, blank=True, related_name="own_tasks"
    )
    title = models.CharField(max_length=300)
    state = models.CharField(max_length=16, default="queued")
    token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    wake_at = models.DateTimeField(null=True, blank=True)
    woken_at = models.DateTimeField(null=True, blank=True)
    summary = models.TextField(blank=True, default="")
    error = models.TextField(blank=True, default="")
    imported = models.JSONField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["wake_at"], name="task_wake")]

    def __str__(self) -> str:
        return self.title
