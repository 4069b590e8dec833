"""Who may call the API, and which writes were already done."""

from typing import ClassVar

from django.db import models
from django.utils import timezone

from sessions_app.models import Chat


class ApiKey(models.Model):
    """A bearer key: only its hash is kept.

    A `limited` key reaches `chats` and no other, those it made itself included. `limited` is not read off an empty list: erasing
    the only chat of a key must not open all others to it.
    """

    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    scopes = models.JSONField(default=list)
    limited = models.BooleanField(default=False, help_text="reaches only the chats listed here")
    chats = models.ManyToManyField(Chat, blank=True, related_name="+")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class IdempotencyKey(models.Model):
    """A write that a key asked for under a name of its own; the same name gets the same answer."""

    api_key = models.ForeignKey(ApiKey, models.PROTECT, related_name="+")
    key = models.CharField(max_length=200)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    response = models.JSONField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["api_key", "key"], name="idempotency_key_once")
        ]

    def __str__(self) -> str:
        return self.key
