"""Propose a key for every imported session."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from nahida.legacy.gather import KIND
from nahida.legacy.inspect import inspect
from nahida.legacy.plan import PlanError, write_plan
from nahida.legacy.proposals import SKIP_TYPED
from nahida.legacy.telling import counts, tell
from sessions_app.models import MigrationLog

HELP = "propose a key for every imported session; changes nothing but the proposals"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--db", metavar="FILE", help="import this old database first")
    parser.add_argument("--out", metavar="PLAN", type=Path, help="write the plan to this file")


def run(command: BaseCommand, options: dict[str, Any]) -> None:
    if options["db"]:
        call_command("import_legacy", options["db"], stdout=command.stdout, stderr=command.stderr)
    found = inspect(who=options["who"])
    records = MigrationLog.objects.filter(kind=KIND, result="").exclude(recommendation=SKIP_TYPED)
    for record in records.order_by("pk").iterator(chunk_size=100):
        command.stdout.write("\n".join(tell(record)))
    command.stdout.write("\n".join(counts()))
    if found["stale"]:
        command.stdout.write(
            f"decisions that no longer hold, since their evidence has changed: {found['stale']}",
            command.style.WARNING,
        )
    if options["out"]:
        _write(command, options["out"])


def _write(command: BaseCommand, path: Path) -> None:
    try:
        write_plan(path)
    except PlanError as error:
        raise CommandError(str(error)) from error
    command.stdout.write(f"the plan is in {path}")
