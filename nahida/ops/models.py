"""Signs of life and long work."""

from typing import ClassVar

from django.db import models
from django.utils import timezone


class Heartbeat(models.Model):
    """When a kind of process last said that it lives."""

    name = models.CharField(max_length=64, unique=True)
    at = models.DateTimeField()
    detail = models.JSONField(default=dict, blank=True)

    def __str__(self) -> str:
        return self.name


class Operation(models.Model):
    """Long work done in slices of less than a minute: n of m, with what came of it."""

    kind = models.CharField(max_length=32)
    subject = models.JSONField(default=dict, blank=True)
    state = models.CharField(max_length=16, default="pending")
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    wake_at = models.DateTimeField(null=True, blank=True)
    woken_at = models.DateTimeField(null=True, blank=True)
    result = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True, default="")
    created_by = models.CharField(max_length=150, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["wake_at"], name="operation_wake")]

    def __str__(self) -> str:
        return f"{self.kind} {self.done}/{self.total}"


class Stat(models.Model):
    """One figure of one hour, for the dashboard."""

    name = models.CharField(max_length=64)
    hour = models.DateTimeField()
    value = models.FloatField(default=0.0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["name", "hour"], name="stat_once_an_hour")
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.hour}"
