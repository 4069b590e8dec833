"""What the database itself refuses: native rows without a chat type, by whatever way they come."""

from datetime import UTC, datetime

from django.db import IntegrityError, connection, models, transaction
from django.test import TestCase

from scheduler_app.models import CronJob
from sessions_app.models import Chat, Session

IMPORTED = datetime(2031, 5, 10, tzinfo=UTC)
UNTYPED = {"channel": "milky", "target_type": "unknown", "target_id": "10001"}


class CheckTests(TestCase):
    def assertRefused(self, constraint: str, act) -> None:
        with self.assertRaisesMessage(IntegrityError, constraint), transaction.atomic():
            act()

    def typed_chat(self) -> Chat:
        return Chat.objects.create(
            chat_key="milky:private:10001",
            channel="milky",
            target_type="private",
            target_id="10001",
        )

    def test_it_refuses_a_native_chat_without_type(self):
        for word in ("unknown", "", "Private", "user"):
            with self.subTest(word):
                row = {**UNTYPED, "target_type": word}
                self.assertRefused(
                    "chat_typed_or_imported",
                    lambda row=row: Chat.objects.create(chat_key="milky:unknown:10001", **row),
                )

    def test_it_takes_an_imported_chat_without_type(self):
        chat = Chat.objects.create(chat_key="milky:unknown:10001", imported_at=IMPORTED, **UNTYPED)

        self.assertTrue(Chat.objects.filter(pk=chat.pk).exists())

    def test_it_refuses_a_native_session_whose_key_has_no_type(self):
        chat = self.typed_chat()
        for key in (
            "milky:10001",
            "milky:10001:ab",
            "milky:unknown:10001",
            "10001",
            "private:10001",
            "milky::private",
            "milky:privat:10001",
            "milky:private2:1",
        ):
            with self.subTest(key):
                self.assertRefused(
                    "session_typed_or_imported",
                    lambda key=key: Session.objects.create(key=key, chat=chat),
                )

    def test_it_refuses_a_native_session_without_chat(self):
        self.assertRefused(
            "session_typed_or_imported",
            lambda: Session.objects.create(key="milky:private:10001"),
        )

    def test_it_takes_typed_sessions_and_imported_ones(self):
        chat = self.typed_chat()
        for key in ("milky:private:10001", "milky:private:10001:topic:5", "milky:private:1:ab"):
            Session.objects.create(key=key, chat=chat)
        for key in ("milky:10001", "milky:10001:ab", "what is this", ""):
            Session.objects.create(key=key, imported_at=IMPORTED)

        self.assertEqual(Session.objects.count(), 7)

    def test_it_refuses_a_native_job_without_chat(self):
        self.assertRefused(
            "job_has_chat_or_imported", lambda: CronJob.objects.create(prompt="p", mode="cron")
        )

        CronJob.objects.create(prompt="p", mode="cron", imported_at=IMPORTED)
        CronJob.objects.create(prompt="p", mode="cron", chat=self.typed_chat())

    def test_it_refuses_a_change_that_takes_the_type_away(self):
        chat = self.typed_chat()
        session = Session.objects.create(key="milky:private:10001", chat=chat)
        CronJob.objects.create(prompt="p", mode="cron", chat=chat)

        for constraint, act in (
            ("chat_typed_or_imported", lambda: Chat.objects.update(target_type="unknown")),
            ("session_typed_or_imported", lambda: Session.objects.update(key="milky:10001")),
            ("session_typed_or_imported", lambda: Session.objects.update(chat=None)),
            ("job_has_chat_or_imported", lambda: CronJob.objects.update(chat=None)),
        ):
            self.assertRefused(constraint, act)
        session.refresh_from_db()
        self.assertEqual(session.key, "milky:private:10001")

    def test_it_refuses_the_same_by_raw_sql(self):
        """The rule stands in the database, not in our code."""
        chat = self.typed_chat()
        Session.objects.create(key="milky:private:10001", chat=chat)
        CronJob.objects.create(prompt="p", mode="cron", chat=chat)
        copies = {
            Chat: ("chat_typed_or_imported", {"target_type": "'unknown'", "chat_key": "'other'"}),
            Session: ("session_typed_or_imported", {"key": "'milky:10001'"}),
            CronJob: ("job_has_chat_or_imported", {"chat_id": "NULL"}),
        }

        for model, (constraint, changed) in copies.items():
            with self.subTest(model):
                self.assertRefused(constraint, lambda m=model, c=changed: self.copy(m, c))
                self.copy(model, changed | {"imported_at": "'2031-05-10 00:00:00'"})

    def copy(self, model: type[models.Model], changed: dict[str, str]) -> None:
        """Insert a copy of the first row of a table, with some columns changed."""
        columns = [str(field.column) for field in model._meta.local_concrete_fields[1:]]
        names = ", ".join(f'"{name}"' for name in columns)
        values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
        table = model._meta.db_table
        with connection.cursor() as cursor:
            cursor.execute(
                f'INSERT INTO "{table}" ({names}) SELECT {values} FROM "{table}" ORDER BY id LIMIT 1'
            )
