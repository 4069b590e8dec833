"""Make a database ready to run on."""

import secrets
from typing import Any

import django
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django_q.models import Schedule

from nahida import queue


class Command(BaseCommand):
    help = "Create or update the database, and make the first administrator."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        settings.STATIC_ROOT.mkdir(exist_ok=True)  # whitenoise grumbles without it
        try:
            version = self._prepare_database()
        except DatabaseError as error:
            reason = str(error).strip().replace("\n", " ")
            raise CommandError(f"the database cannot be used: {reason}") from error
        self.stdout.write(f"Django {django.__version__}, {version}")
        # The fallback of the ticker, and the workers' sign of life.
        Schedule.objects.update_or_create(
            name="sweep",
            defaults={"func": queue.SWEEP, "schedule_type": Schedule.MINUTES, "minutes": 1},
        )
        self._make_administrator()

    def _prepare_database(self) -> str:
        if connection.vendor == "sqlite":
            # Once, before other processes: their racing switches would fail, whatever the time-out.
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA journal_mode=WAL")
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            self.stdout.write("Updating the database ...")
            call_command("migrate", interactive=False, verbosity=0, skip_checks=True)
        numbers = ".".join(str(part) for part in connection.get_database_version())
        return f"{connection.display_name} {numbers}"

    def _make_administrator(self) -> None:
        users = get_user_model().objects
        if users.filter(is_superuser=True).exists():
            return
        password = secrets.token_urlsafe(12)
        users.create_superuser("admin", password=password)
        self.stdout.write(
            f"\n    Administrator: admin\n    Password:      {password}\n"
            "    It is shown this once; manage.py changepassword admin makes another.\n"
        )
