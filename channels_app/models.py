"""The durability of the wire: what came in once, what goes out once, who listens."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from channels_app.addresses import ChatAddress
from channels_app.fields import AddressField


class InboundEvent(models.Model):
    """A wire event that was accepted: the row that makes a second delivery of it end at once."""

    channel = models.CharField(max_length=64)
    event_key = models.CharField(max_length=300)
    received_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["channel", "event_key"], name="inbound_event_once")
        ]
        indexes: ClassVar = [models.Index(fields=["received_at"], name="inbound_event_received")]

    def __str__(self) -> str:
        return f"{self.channel} {self.event_key}"


class DeliveryState(models.TextChoices):
    PENDING = "pending"
    CLAIMED = "claimed"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"


UNFINISHED = Q(state__in=[DeliveryState.PENDING, DeliveryState.CLAIMED, DeliveryState.SENDING])


class Delivery(models.Model):
    """One outgoing message. `unknown` means that the request left and nobody can say whether it arrived."""

    address = AddressField(follows=UNFINISHED, resets={"reply_to": ""})
    continues = models.OneToOneField(
        "self", models.PROTECT, null=True, blank=True, related_name="rest"
    )
    parts = models.JSONField(help_text="list of {text, plain}, one request to the platform each")
    next_part = models.PositiveIntegerField(default=0)
    reply_to = models.CharField(max_length=200, blank=True, default="")
    state = models.CharField(
        max_length=8, choices=DeliveryState.choices, default=DeliveryState.PENDING
    )
    token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(default=timezone.now)
    woken_at = models.DateTimeField(null=True, blank=True)
    message_ids = models.JSONField(default=list, blank=True)
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state__in=DeliveryState.values), name="delivery_state_known"
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["state", "next_attempt_at"], name="delivery_due"),
            models.Index(
                fields=["address", "id"], name="delivery_unfinished", condition=UNFINISHED
            ),
        ]

    def __str__(self) -> str:
        return f"{self.address} {self.state}"

    @property
    def to(self) -> ChatAddress:
        return ChatAddress.parse(self.address)


class ChannelState(models.Model):
    """Who reads a channel instance, and how it fares."""

    channel = models.CharField(max_length=64, unique=True)
    token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    last_event_at = models.DateTimeField(null=True, blank=True)
    status = models.CharField(max_length=32, blank=True, default="")
    error = models.TextField(blank=True, default="")
    detail = models.JSONField(default=dict, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.channel
