"""Who talks where: chats, their sessions and lanes, and the log of every change of a key."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.lookups import In
from django.utils import timezone

from channels_app.addresses import TARGET_TYPES, ChatAddress, SessionKey
from channels_app.clock import DbNow
from channels_app.fields import AddressField, KeyType

TYPES = sorted(TARGET_TYPES)
TYPES_IN_KEYS = [f"{word}:" for word in TYPES]


class Access(models.TextChoices):
    PENDING = "pending", "waits for the owner"
    ALLOWED = "allowed"
    BLOCKED = "blocked"


class AnswerPolicy(models.TextChoices):
    ALWAYS = "always", "answers every message"
    ADDRESSED = "addressed", "answers when addressed, reads the rest"
    ADDRESSED_ONLY = "addressed_only", "answers when addressed, stores nothing else"
    OBSERVE = "observe", "reads, never answers"


class ChatQuerySet(models.QuerySet["Chat"]):
    def silent(self) -> "ChatQuerySet":
        """Those that cannot be written to for now."""
        return self.filter(Q(unreachable_since__isnull=False) | Q(muted_until__gt=DbNow()))


class Chat(models.Model):
    """One conversation on one platform: one memory scope and one set of rules, however many topics and sessions."""

    chat_key = models.CharField(max_length=1000, unique=True)
    channel = models.CharField(max_length=64)
    target_type = models.CharField(max_length=16)
    target_id = models.CharField(max_length=1000)
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="threads"
    )
    merged_into = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="+")
    title = models.CharField(max_length=300, blank=True, default="")
    access = models.CharField(max_length=8, choices=Access.choices, default=Access.PENDING)
    pairing_code = models.CharField(max_length=16, blank=True, default="")
    first_line = models.CharField(max_length=300, blank=True, default="")
    refused_count = models.PositiveIntegerField(default=0)
    is_owner = models.BooleanField(default=False, help_text="may reach other chats from its own")
    answer_policy = models.CharField(
        max_length=16, choices=AnswerPolicy.choices, default=AnswerPolicy.ADDRESSED
    )
    time_zone = models.CharField(max_length=64, blank=True, default="")
    model = models.CharField(max_length=64, blank=True, default="")
    unreachable_since = models.DateTimeField(null=True, blank=True)
    muted_until = models.DateTimeField(
        null=True, blank=True, help_text="we hear this chat but may not write to it until then"
    )
    unreachable_reason = models.CharField(max_length=300, blank=True, default="")
    imported_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ChatQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(target_type__in=TYPES) | Q(imported_at__isnull=False),
                name="chat_typed_or_imported",
            ),
            models.CheckConstraint(condition=Q(access__in=Access.values), name="chat_access_known"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["channel", "target_id"], name="chat_channel_target")
        ]

    def __str__(self) -> str:
        return self.chat_key

    @property
    def address(self) -> ChatAddress:
        return ChatAddress(self.channel, self.target_type, self.target_id)

    @property
    def is_private(self) -> bool:
        return self.target_type == "private"


class Session(models.Model):
    """One conversation history. Its key may change; whatever belongs to it points to the row."""

    chat = models.ForeignKey(Chat, models.PROTECT, null=True, related_name="sessions")
    suffix = models.CharField(max_length=1000, blank=True, default="")
    key = models.CharField(max_length=1000, unique=True)
    title = models.CharField(max_length=300, blank=True, default="")
    settings = models.JSONField(default=dict, blank=True)
    history_from = models.BigIntegerField(
        default=0, help_text="turns up to this id are kept but no longer shown to the model"
    )
    legacy_untyped = models.BooleanField(default=False)
    imported_at = models.DateTimeField(null=True, blank=True, editable=False)
    imported = models.JSONField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now)
    last_active_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(imported_at__isnull=False)
                | (Q(chat__isnull=False) & Q(In(KeyType("key"), TYPES_IN_KEYS))),
                name="session_typed_or_imported",
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["-last_active_at", "-id"], name="session_recent"),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def session_key(self) -> SessionKey:
        return SessionKey.parse(self.key)


class Lane(models.Model):
    """The one queue of a chat or topic: its turns run one after the other, by whoever holds the token (DESIGN 5)."""

    chat = models.ForeignKey(Chat, models.PROTECT, related_name="lanes")
    thread = models.CharField(max_length=1000, blank=True, default="")
    active_session = models.ForeignKey(Session, models.PROTECT, related_name="active_lanes")
    inbox = models.BigIntegerField(default=0)
    token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    wake_at = models.DateTimeField(null=True, blank=True)
    woken_at = models.DateTimeField(null=True, blank=True)
    stop_before = models.BigIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["chat", "thread"], name="lane_of_chat_and_thread")
        ]
        indexes: ClassVar = [models.Index(fields=["wake_at"], name="lane_wake")]

    def __str__(self) -> str:
        return str(self.address)

    @property
    def address(self) -> ChatAddress:
        """One query unless the chat is loaded."""
        return self.chat.address.with_thread(self.thread)

    @classmethod
    def merge_rows(cls, column: str, old_pk: int, into_pk: int) -> None:
        """Lanes of two chats merge by R12, before their chats do; only the active session is repointed here."""
        if column == "active_session":
            cls.objects.filter(active_session=old_pk).update(active_session=into_pk)


class Draft(models.Model):
    """The growing text of a lane's running answer. A new token means that it starts over."""

    lane = models.OneToOneField(Lane, models.PROTECT, related_name="draft")
    turn = models.BigIntegerField(help_text="first turn of the batch being answered")
    token = models.UUIDField()
    text = models.TextField(blank=True, default="")
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"draft of turn {self.turn}"

    @classmethod
    def merge_rows(cls, column: str, old_pk: int, into_pk: int) -> None:
        """The answer of the lane that ends is begun anew, so its draft ends too."""
        cls.objects.filter(lane=old_pk).delete()


class ChatAlias(models.Model):
    """An older address of a chat: a supergroup upgrade, a changed account, a renamed channel instance."""

    address = AddressField(unique=True)
    chat = models.ForeignKey(Chat, models.PROTECT, related_name="aliases")
    reason = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "chat aliases"

    def __str__(self) -> str:
        return f"{self.address} -> {self.chat_id}"


class Approval(models.TextChoices):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    KEEP_LEGACY = "force_keep_legacy"
    RENAME = "force_rename"
    SPLIT = "force_split"


class MigrationLog(models.Model):
    """One proposal about one old key or item, what was decided about it and what came of it. Never deleted."""

    kind = models.CharField(max_length=32)
    old_key = models.CharField(max_length=1000)
    subject_pk = models.BigIntegerField(null=True, blank=True)
    new_key = models.CharField(max_length=1000, blank=True, default="")
    recommendation = models.CharField(max_length=32)
    confidence = models.CharField(max_length=8, blank=True, default="")
    evidence = models.JSONField(default=list, blank=True)
    affected = models.JSONField(default=dict, blank=True)
    targets = models.JSONField(default=list, blank=True)
    notes = models.JSONField(default=list, blank=True)
    approval = models.CharField(max_length=24, choices=Approval.choices, default=Approval.PENDING)
    result = models.CharField(max_length=32, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    fingerprint = models.CharField(max_length=64, blank=True, default="")
    history = models.JSONField(
        default=list, help_text="every decision and outcome: what, who, when"
    )
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "migration record"
        permissions: ClassVar = [
            ("decide_migration", "Can decide about old sessions"),
            ("apply_migration", "Can apply and take back decisions about old sessions"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["kind", "old_key"], condition=Q(result=""), name="migration_one_open_record"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.old_key}"


class Change(models.TextChoices):
    UPDATE = "update", "a column of these rows was replaced"
    INSERT = "insert", "this row was made"
    DELETE = "delete", "this row was removed"
    STAND = "stand", "these rows pointed here, and none behind them"


class MigrationUndo(models.Model):
    """What an applied record did to one row, or to a range of rows that all held the same.

    Of a range, `count` rows hold `new` afterwards. `old` and `new` of a whole row hold all its columns, and `column` is empty.
    """

    record = models.ForeignKey(MigrationLog, models.PROTECT, related_name="undo")
    change = models.CharField(max_length=8, choices=Change.choices, default=Change.UPDATE)
    model = models.CharField(max_length=100)
    first_pk = models.BigIntegerField()
    last_pk = models.BigIntegerField()
    count = models.PositiveIntegerField(default=1)
    column = models.CharField(max_length=64, blank=True, default="")
    old = models.JSONField(null=True)
    new = models.JSONField(null=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["model", "first_pk"], name="undo_rows")]

    def __str__(self) -> str:
        return f"{self.model} {self.first_pk}-{self.last_pk} {self.column}"
