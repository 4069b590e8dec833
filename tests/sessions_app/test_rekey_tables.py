"""Re-keying finds its tables by walking the models: what is added later must not be forgotten."""

import re
from collections.abc import Iterator

from django.apps import apps
from django.db import models
from django.db.models.functions import Lower
from django.test import SimpleTestCase
from django.test.utils import isolate_apps

from channels_app.addresses import MAX_KEY_BYTES
from channels_app.fields import AddressField, address_columns
from sessions_app.models import Chat, Lane, Session
from sessions_app.relations import pointing_at

MERGED = (Chat, Session, Lane)


def unique_column_sets(model: type[models.Model]) -> Iterator[set[str]]:
    """Yield the columns of everything unique in a model."""
    for field in model._meta.local_fields:
        if field.unique and not field.primary_key:
            yield {field.name}
    for columns in model._meta.unique_together:
        yield set(columns)
    for constraint in model._meta.constraints:
        if isinstance(constraint, models.UniqueConstraint):
            yield set(constraint.fields)
            yield set(re.findall(r"F\((\w+)\)", repr(constraint.expressions)))


def without_rule(every_model: list[type[models.Model]]) -> list[str]:
    """Name the models in whose unique columns two rows may meet when two chats, sessions or lanes become one."""
    found = set()
    for model in every_model:
        points = {field.name for field in model._meta.local_fields if field.related_model in MERGED}
        if model._meta.auto_created or hasattr(model, "merge_rows"):
            continue
        if any(columns & points for columns in unique_column_sets(model)):
            found.add(model._meta.label)
    return sorted(found)


class TableTests(SimpleTestCase):
    def test_it_knows_how_unique_rows_merge(self):
        """Give a model that is named here a classmethod `merge_rows(column, old_pk, into_pk)`."""
        every_model = list(apps.get_models(include_auto_created=True))

        self.assertEqual(without_rule(every_model), [])
        self.assertIn(Lane, every_model)

    @isolate_apps("tests")
    def test_it_would_notice_a_model_without_a_rule(self):
        """However the uniqueness is written."""

        class Pin(models.Model):  # noqa: DJ008
            chat = models.OneToOneField(Chat, models.PROTECT, related_name="+")

            class Meta:
                app_label = "tests"

        class Star(models.Model):  # noqa: DJ008
            session = models.ForeignKey(Session, models.PROTECT, related_name="+")
            name = models.CharField(max_length=9)

            class Meta:
                app_label = "tests"
                constraints = [models.UniqueConstraint(fields=["session", "name"], name="star")]

        class Flag(models.Model):  # noqa: DJ008
            lane = models.ForeignKey(Lane, models.PROTECT, related_name="+")
            name = models.CharField(max_length=9)

            class Meta:
                app_label = "tests"
                unique_together = [("name", "lane")]

        class Badge(models.Model):  # noqa: DJ008
            chat = models.ForeignKey(Chat, models.PROTECT, related_name="+")
            name = models.CharField(max_length=9)

            class Meta:
                app_label = "tests"
                constraints = [models.UniqueConstraint("chat", Lower("name"), name="badge")]

        class Plain(models.Model):  # noqa: DJ008
            chat = models.ForeignKey(Chat, models.PROTECT, related_name="+")

            class Meta:
                app_label = "tests"

        self.assertEqual(
            without_rule([Pin, Star, Flag, Badge, Plain]),
            ["tests.Badge", "tests.Flag", "tests.Pin", "tests.Star"],
        )

    def test_it_finds_hidden_and_many_to_many_tables(self):
        """`related_objects` would skip them, and a merge would lose a row."""
        found = {
            target: {(model._meta.label, column) for model, column in pointing_at(target)}
            for target in MERGED
        }

        self.assertLessEqual(
            {
                ("sessions_app.Chat", "merged_into"),
                ("sessions_app.Chat", "parent"),
                ("sessions_app.ChatAlias", "chat"),
                ("sessions_app.Lane", "chat"),
                ("sessions_app.Session", "chat"),
                ("gateway.ApiKey_chats", "chat"),
                ("scheduler_app.CronJob", "chat"),
            },
            found[Chat],
        )
        self.assertLessEqual(
            {
                ("memory_app.MemoryTurn", "session"),
                ("memory_app.MemoryItem", "source_session"),
                ("sessions_app.Lane", "active_session"),
                ("scheduler_app.BackgroundTask", "child"),
            },
            found[Session],
        )
        self.assertLessEqual(
            {("memory_app.MemoryTurn", "lane"), ("sessions_app.Draft", "lane")}, found[Lane]
        )

    def test_it_finds_every_foreign_key_there_is(self):
        """Compared with the other way round: from each model's own columns."""
        for target in MERGED:
            own = {
                (model, field.name)
                for model in apps.get_models(include_auto_created=True)
                for field in model._meta.local_fields
                if field.related_model is target
            }
            self.assertEqual(set(pointing_at(target)), own)

    def test_it_finds_the_text_columns(self):
        """Those that follow a rename and those that are evidence."""
        columns = {
            f"{model._meta.label}.{field.name}": field.follows is not None
            for model, field in address_columns()
        }

        self.assertLessEqual(
            {
                "channels_app.Delivery.address": True,
                "memory_app.MemoryItem.scope_id": True,
                "memory_app.MemoryCandidate.scope_id": True,
                "memory_app.MemoryTurn.origin": False,
                "sessions_app.ChatAlias.address": False,
            }.items(),
            columns.items(),
        )

    def test_it_marks_every_text_column_that_is_made_for_a_key(self):
        """A plain CharField of a key's length would be forgotten: use AddressField, or list it here with its reason."""
        known = {
            "sessions_app.Chat.chat_key",  # the key itself
            "sessions_app.Chat.target_id",
            "sessions_app.Lane.thread",  # names a topic in the row of its chat
            "scheduler_app.CronJob.thread",
            "sessions_app.Session.key",
            "sessions_app.Session.suffix",
            "sessions_app.MigrationLog.old_key",  # history
            "sessions_app.MigrationLog.new_key",
            "scheduler_app.CronJob.imported_key",  # as the old bot wrote it
        }

        unmarked = {
            f"{model._meta.label}.{field.name}"
            for model in apps.get_models()
            for field in model._meta.local_fields
            if field.max_length == MAX_KEY_BYTES and not isinstance(field, AddressField)
        }

        self.assertEqual(unmarked, known)
