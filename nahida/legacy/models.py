"""What was read from which old database, so that reading it again brings only what is new."""

from typing import ClassVar

from django.db import models
from django.utils import timezone

from channels_app.fields import AddressField
from sessions_app.models import Session

BEFORE_ALL = -(2**63)  # smaller than any id of a turn


class Source(models.Model):
    """One old database. `mark` tells it from another one under the same name.

    `turns_to` is the last old turn that came in. `ranges` are [first old id, last old id, offset] of the ids given out for its turns.
    """

    name = models.CharField(max_length=64, unique=True)
    path = models.TextField()
    mark = models.CharField(max_length=64)
    schema_version = models.PositiveIntegerField(null=True)
    turns_to = models.BigIntegerField(default=BEFORE_ALL)
    ranges = models.JSONField(default=list)
    counts = models.JSONField(default=dict)
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name

    def turn_id(self, old_id: int) -> int:
        """Return the id of an old turn that has one set aside."""
        found = self.new_id(old_id)
        assert found is not None, "ids are set aside before any turn is read"
        return found

    def new_id(self, old_id: int) -> int | None:
        """Return the turn that an old turn id means here."""
        for first, last, offset in self.ranges:
            if first <= old_id <= last:
                return int(old_id + offset)
        return None


class Imported(models.Model):
    """An old row that came in, whatever became of it since. Sessions are followed through merges."""

    source = models.ForeignKey(Source, models.PROTECT, related_name="rows")
    kind = models.CharField(max_length=16)
    old_id = AddressField(help_text="evidence: it never follows a rename")
    session = models.ForeignKey(Session, models.PROTECT, null=True, related_name="+")
    object_pk = models.BigIntegerField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["source", "kind", "old_id"], name="imported_once_from_a_source"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.old_id}"
