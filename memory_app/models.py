"""What was said and what is remembered: turns with their calls, and memory items with their fate."""

from typing import ClassVar, Self

from django.db import models
from django.db.models import Q
from django.utils import timezone

from channels_app.fields import AddressField
from channels_app.models import Delivery
from memory_app.scopes import CHAT_SCOPE, GLOBAL_ID, GLOBAL_SCOPE, SCOPE_TYPES, Scope
from sessions_app.models import Chat, Lane, Session
from sessions_app.principal import Principal


class TurnKind(models.TextChoices):
    MESSAGE = "message"
    COMMAND = "command"
    JOB = "job"
    TASK_RESULT = "task_result"
    EDIT = "edit"
    NOTICE = "notice"
    TOOL = "tool"
    SUMMARY = "summary"
    IMPORTED = "imported"


WANT_AN_ANSWER = (TurnKind.MESSAGE, TurnKind.COMMAND, TurnKind.JOB, TurnKind.TASK_RESULT)


class TurnState(models.TextChoices):
    OBSERVED = "observed"
    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


class Role(models.TextChoices):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


# What of memory follows a key, and the scope that what hung on an old session gets in its chat.
IN_A_CHAT = Q(scope_type=CHAT_SCOPE)
NOT_GLOBAL = ~Q(scope_type=GLOBAL_SCOPE)
TO_A_CHAT = {"scope_type": CHAT_SCOPE}

UNFINISHED_TURN = Q(state__in=[TurnState.PENDING, TurnState.RUNNING])


class TurnQuerySet(models.QuerySet["MemoryTurn"]):
    def unfinished(self) -> Self:
        return self.filter(UNFINISHED_TURN)

    def pending(self) -> Self:
        return self.filter(state=TurnState.PENDING)

    def running(self) -> Self:
        return self.filter(state=TurnState.RUNNING)


class MemoryTurn(models.Model):
    """One line of a conversation. Rows are made by `append_turn` alone, and by the importer in bulk."""

    session = models.ForeignKey(Session, models.PROTECT, related_name="turns")
    lane = models.ForeignKey(Lane, models.PROTECT, null=True, related_name="turns")
    kind = models.CharField(max_length=16, choices=TurnKind.choices)
    role = models.CharField(max_length=16, choices=Role.choices)
    content = models.TextField(blank=True)
    search_tokens = models.TextField(blank=True, default="", editable=False)
    source = models.CharField(max_length=64, blank=True, default="")
    sender = models.CharField(
        max_length=300, blank=True, default="", help_text="account that spoke"
    )
    sender_name = models.CharField(max_length=200, blank=True, default="")
    rights = models.CharField(max_length=16, blank=True, default="")
    message_id = models.CharField(max_length=200, blank=True, default="")
    origin = AddressField(blank=True, default="", help_text="address it came by, as it was then")
    state = models.CharField(max_length=8, choices=TurnState.choices, default=TurnState.DONE)
    batch = models.BigIntegerField(
        null=True, blank=True, help_text="first turn of those answered together"
    )
    attempt = models.PositiveSmallIntegerField(default=0)
    answered_by = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="answers"
    )
    delivery = models.ForeignKey(
        Delivery, models.PROTECT, null=True, blank=True, related_name="turns"
    )
    metadata = models.JSONField(default=dict, blank=True)
    imported = models.JSONField(null=True, blank=True, editable=False)
    sent_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = TurnQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(kind__in=TurnKind.values), name="turn_kind_known"),
            models.CheckConstraint(
                condition=Q(state__in=TurnState.values), name="turn_state_known"
            ),
            models.CheckConstraint(
                condition=~UNFINISHED_TURN | (Q(kind__in=WANT_AN_ANSWER) & Q(role=Role.USER)),
                name="turn_unfinished_wants_answer",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["session", "id"], name="turn_session"),
            models.Index(fields=["lane", "id"], name="turn_unfinished", condition=UNFINISHED_TURN),
            models.Index(
                fields=["message_id"], name="turn_message_id", condition=~Q(message_id="")
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.pk}"


class ToolCall(models.Model):
    """A tool that ran for a batch. Without a result it began and nobody knows how it ended."""

    batch = models.ForeignKey(MemoryTurn, models.PROTECT, related_name="tool_calls")
    digest = models.CharField(max_length=64)
    name = models.CharField(max_length=64)
    result = models.TextField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["batch", "digest"], name="tool_call_once_a_batch")
        ]

    def __str__(self) -> str:
        return f"{self.name} for turn {self.batch_id}"


class ModelCall(models.Model):
    """One request to a model: what it cost and how it ended, kept even when its answer was dropped."""

    turn = models.ForeignKey(MemoryTurn, models.PROTECT, related_name="model_calls")
    model = models.CharField(max_length=200)
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    estimated = models.BooleanField(default=False, help_text="the endpoint reported no usage")
    cost = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    ms = models.PositiveIntegerField(default=0)
    outcome = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["created_at"], name="model_call_created")]

    def __str__(self) -> str:
        return f"{self.model} {self.outcome}"


class Attachment(models.Model):
    """A file that came with a turn: kept by us, or known to the platform only."""

    turn = models.ForeignKey(MemoryTurn, models.PROTECT, related_name="attachments")
    kind = models.CharField(max_length=16)
    file = models.CharField(
        max_length=300, blank=True, default="", help_text="its name in the media store"
    )
    platform_id = models.TextField(blank=True, default="")
    text = models.TextField(blank=True, default="", help_text="what is known of what it shows")
    name = models.CharField(max_length=200, blank=True, default="")
    mime = models.CharField(max_length=100, blank=True, default="")
    size = models.BigIntegerField(null=True, blank=True, help_text="in bytes")
    error = models.TextField(blank=True, default="", help_text="why it could not be downloaded")

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["file"], name="attachment_file", condition=~Q(file=""))
        ]

    def __str__(self) -> str:
        return f"{self.kind} of turn {self.turn_id}"


class ItemStatus(models.TextChoices):
    ACTIVE = "active"
    ARCHIVED = "archived"
    SUPERSEDED = "superseded"
    FORGOTTEN = "forgotten"


class ItemKind(models.TextChoices):
    FACT = "fact"
    PREFERENCE = "preference"
    TASK = "task"
    DECISION = "decision"
    PROCEDURE = "procedure"
    WARNING = "warning"
    SUMMARY = "summary"


class ItemQuerySet(models.QuerySet["MemoryItem"]):
    def in_scope(self, scope: Scope) -> Self:
        return self.filter(scope_type=scope.scope_type, scope_id=scope.scope_id)

    def active(self) -> Self:
        return self.filter(status=ItemStatus.ACTIVE)

    def recallable(self) -> Self:
        return self.active().filter(held=False)

    def forgotten(self) -> Self:
        return self.filter(status=ItemStatus.FORGOTTEN)

    def reached_by(self, principal: Principal) -> Self:
        """Keep what a caller may see: the memory of his chats, and what all chats share."""
        if principal.chat_ids is None:
            return self
        keys = Chat.objects.filter(pk__in=principal.chat_ids).values("chat_key")
        shared = Q(scope_type=GLOBAL_SCOPE, scope_id=GLOBAL_ID)
        return self.filter(shared | Q(scope_type=CHAT_SCOPE, scope_id__in=keys))


class MemoryItem(models.Model):
    """One thing remembered, in one scope. `held` items wait for a person and are not recalled."""

    scope_type = models.CharField(max_length=16)
    scope_id = AddressField(follows=IN_A_CHAT, of_session=NOT_GLOBAL, becomes=TO_A_CHAT)
    kind = models.CharField(max_length=32)
    title = models.CharField(max_length=300, blank=True, default="")
    content = models.TextField(blank=True)
    search_tokens = models.TextField(blank=True, default="", editable=False)
    status = models.CharField(max_length=16, choices=ItemStatus.choices, default=ItemStatus.ACTIVE)
    held = models.BooleanField(default=False)
    confidence = models.FloatField(default=1.0)
    importance = models.FloatField(default=0.5)
    sensitivity = models.CharField(max_length=16, blank=True, default="")
    source = models.CharField(max_length=64, blank=True, default="")
    evidence = models.JSONField(default=list, blank=True)
    content_hash = models.CharField(max_length=64, blank=True, default="")
    version = models.PositiveIntegerField(default=1)
    source_session = models.ForeignKey(
        Session, models.PROTECT, null=True, blank=True, related_name="items"
    )
    source_turn = models.ForeignKey(
        MemoryTurn, models.PROTECT, null=True, blank=True, related_name="items"
    )
    superseded_by = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="supersedes"
    )
    imported = models.JSONField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    objects = ItemQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            # Imported items may carry a scope of the old bot; an empty one is never right.
            models.CheckConstraint(
                condition=(Q(scope_type__in=SCOPE_TYPES) | Q(imported__isnull=False))
                & ~Q(scope_type="")
                & ~Q(scope_id=""),
                name="item_scope_known",
            ),
            models.CheckConstraint(
                condition=Q(status__in=ItemStatus.values), name="item_status_known"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["scope_type", "scope_id", "status", "id"], name="item_scope"),
            models.Index(fields=["content_hash"], name="item_content_hash"),
            # The old bot wrote session keys into scopes of any type.
            models.Index(fields=["scope_id"], name="item_scope_id"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class RecallReceipt(models.Model):
    """An item that was shown to the model for a turn."""

    turn = models.ForeignKey(MemoryTurn, models.PROTECT, related_name="receipts")
    item = models.ForeignKey(MemoryItem, models.PROTECT, related_name="receipts")
    scope_type = models.CharField(max_length=16)
    score = models.FloatField(default=0.0)
    mode = models.CharField(max_length=16)

    def __str__(self) -> str:
        return f"item {self.item_id} for turn {self.turn_id}"


class MemoryCandidate(models.Model):
    """A proposed change of memory and its fate."""

    scope_type = models.CharField(max_length=16)
    scope_id = AddressField(follows=IN_A_CHAT, of_session=NOT_GLOBAL, becomes=TO_A_CHAT)
    kind = models.CharField(max_length=32)
    action = models.CharField(max_length=16, default="add")
    title = models.CharField(max_length=300, blank=True, default="")
    content = models.TextField(blank=True)
    status = models.CharField(max_length=24, default="pending")
    reason = models.CharField(max_length=300, blank=True, default="")
    confidence = models.FloatField(default=1.0)
    evidence = models.JSONField(default=list, blank=True)
    content_hash = models.CharField(max_length=64, blank=True, default="")
    item = models.ForeignKey(
        MemoryItem, models.PROTECT, null=True, blank=True, related_name="candidates"
    )
    source_session = models.ForeignKey(
        Session, models.PROTECT, null=True, blank=True, related_name="candidates"
    )
    source_turn = models.ForeignKey(
        MemoryTurn, models.PROTECT, null=True, blank=True, related_name="candidates"
    )
    imported = models.JSONField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["status", "id"], name="candidate_status"),
            models.Index(fields=["scope_id"], name="candidate_scope_id"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.kind} {self.status}"


class MemoryEmbedding(models.Model):
    """A unit vector of an item's text, float32 little-endian. Vectors of two models are never compared."""

    item = models.ForeignKey(MemoryItem, models.PROTECT, related_name="embeddings")
    model = models.CharField(max_length=200)
    dimensions = models.PositiveIntegerField()
    content_hash = models.CharField(max_length=64)
    vector = models.BinaryField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["item", "model"], name="embedding_of_item_and_model")
        ]

    def __str__(self) -> str:
        return f"{self.model} of item {self.item_id}"


class VectorIndex(models.Model):
    """The one row that says which model the vectors are of, and whose lease lets a worker add what is missing."""

    model = models.CharField(max_length=200)
    dimensions = models.PositiveIntegerField(null=True, blank=True)
    token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    wake_at = models.DateTimeField(null=True, blank=True)
    woken_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return f"vectors of {self.model}"


class DreamState(models.Model):
    """How far a session's turns have been dreamt."""

    session = models.OneToOneField(Session, models.PROTECT, related_name="dream_state")
    dreamt_to = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"session {self.session_id} dreamt to {self.dreamt_to}"

    @classmethod
    def merge_rows(cls, column: str, old_pk: int, into_pk: int) -> None:
        """The joint history is dreamt as far as both were: what only one had passed is read again."""
        both = cls.objects.filter(session__in=[old_pk, into_pk])
        passed = min(both.values_list("dreamt_to", flat=True)) if both.count() == 2 else 0
        both.filter(session=old_pk).delete()
        both.filter(session=into_pk).update(dreamt_to=passed)


class DreamRun(models.Model):
    """One pass over one session's new turns, in one night."""

    session = models.ForeignKey(Session, models.PROTECT, related_name="dreams")
    night = models.DateField()
    part = models.PositiveSmallIntegerField(default=1)
    state = models.CharField(max_length=16, default="pending")
    token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    wake_at = models.DateTimeField(null=True, blank=True)
    woken_at = models.DateTimeField(null=True, blank=True)
    from_turn = models.BigIntegerField(default=0)
    to_turn = models.BigIntegerField(default=0)
    proposals = models.JSONField(default=list, blank=True)
    applied = models.JSONField(default=list, blank=True)
    tokens_used = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "night", "part"], name="dream_once_a_night")
        ]
        indexes: ClassVar = [models.Index(fields=["wake_at"], name="dream_wake")]

    def __str__(self) -> str:
        return f"dream of session {self.session_id}, {self.night}"

    @classmethod
    def merge_rows(cls, column: str, old_pk: int, into_pk: int) -> None:
        """Dreams of the same night are numbered on behind those of the session that stays."""
        for run in cls.objects.filter(session=old_pk).order_by("night", "part"):
            same_night = cls.objects.filter(session=into_pk, night=run.night)
            last = same_night.aggregate(last=models.Max("part"))["last"] or 0
            cls.objects.filter(pk=run.pk).update(session=into_pk, part=last + run.part)


class DreamUndo(models.Model):
    """A value of an item that a dream replaced."""

    run = models.ForeignKey(DreamRun, models.PROTECT, related_name="undo")
    item = models.ForeignKey(MemoryItem, models.PROTECT, related_name="+")
    column = models.CharField(max_length=64)
    old = models.JSONField(null=True)
    new = models.JSONField(null=True)

    def __str__(self) -> str:
        return f"{self.column} of item {self.item_id}"
