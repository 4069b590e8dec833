"""manage.py import_legacy FILE"""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from nahida.legacy.importing.reader import OldFileError
from nahida.legacy.importing.run import run
from nahida.legacy.importing.tally import TallyError
from nahida.ops.health import migrated

SHOWN_EVERY = 50_000  # turns, where lines are kept


class Command(BaseCommand):
    help = "Import the nahida.db of the old bot. The file is only read; running it again brings what is new."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="the old nahida.db")
        parser.add_argument("--name", default="nahida", help="tells several old databases apart")
        parser.add_argument("--dry-run", action="store_true", help="count, and change nothing")
        parser.add_argument("--json", action="store_true", help="print the closing table as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        if not migrated():
            raise CommandError("the database is not ready: run bin/up once, or manage.py migrate")
        is_loud = not options["json"]
        try:
            tally = run(
                options["file"],
                name=options["name"],
                is_dry=options["dry_run"],
                progress=self._progress if is_loud else _silently,
            )
        except (OldFileError, TallyError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(tally.as_json(), ensure_ascii=False, indent=2))
            return
        self._end_of_progress()
        if options["dry_run"]:
            self.stdout.write("Dry run: nothing was stored.")
        for line in tally.lines():
            self.stdout.write(line)

    def _progress(self, kind: str, done: int) -> None:
        if self.stderr.isatty():
            self.stderr.write(f"\r{done:,} {kind}", ending="")
        elif done % SHOWN_EVERY == 0:
            self.stderr.write(f"{done:,} {kind}")

    def _end_of_progress(self) -> None:
        if self.stderr.isatty():
            self.stderr.write("")


def _silently(kind: str, done: int) -> None:
    pass
