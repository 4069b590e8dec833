"""manage.py import_legacy FILE"""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from nahida.legacy.importing.reader import OldFileError
from nahida.legacy.importing.run import run
from nahida.legacy.importing.tally import TallyError
from nahida.legacy.importing.turns import AnotherImportError
from nahida.legacy.telling import shown
from nahida.ops.health import migrated

SHOWN_EVERY = 50_000  # rows, where lines are kept
WIDTH = 30  # characters of the bar


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
        bar = Bar(self.stderr)
        try:
            tally = run(
                options["file"],
                name=options["name"],
                is_dry=options["dry_run"],
                progress=_silently if options["json"] else bar.show,
            )
        except (OldFileError, TallyError, AnotherImportError) as error:
            raise CommandError(str(error)) from error
        finally:
            bar.end()
        if options["json"]:
            self.stdout.write(json.dumps(tally.as_json(), ensure_ascii=False, indent=2))
            return
        if options["dry_run"]:
            self.stdout.write("Dry run: nothing was stored.")
        for line in tally.lines():
            self.stdout.write(shown(line))


class Bar:
    """How far it is: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, out: OutputWrapper) -> None:
        self.out = out
        self.began = False
        self.shown = ("", 0)

    def show(self, kind: str, done: int, total: int) -> None:
        self.began = True
        told = f"{kind:<14}{done:>12,} of {total:,}"
        if self.out.isatty():
            full = WIDTH * done // max(done, total)
            self.out.write(f"\r[{'#' * full:<{WIDTH}}] {told}", ending="")
        elif self._is_time(kind, done):
            self.out.write(told)

    def _is_time(self, kind: str, done: int) -> bool:
        """Tell whether so many rows came since the last line that another is due."""
        before = self.shown[1] if self.shown[0] == kind else 0
        is_due = done - before >= SHOWN_EVERY
        self.shown = (kind, done if is_due else before)
        return is_due

    def end(self) -> None:
        if self.began and self.out.isatty():
            self.out.write("")


def _silently(kind: str, done: int, total: int) -> None:
    pass
