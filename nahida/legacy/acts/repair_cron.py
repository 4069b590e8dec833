"""Tie jobs whose text says their chat."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from nahida.legacy.ground import BusyError
from nahida.legacy.repair import ACTIVE, HISTORIES, histories, ties
from nahida.legacy.running import LostRowsError, Start
from nahida.legacy.telling import told
from nahida.ops.backup import BackupError, back_up

HELP = "tie jobs that say their chat themselves, and move the history of those that ran in a session of their own"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--history",
        choices=HISTORIES,
        default=ACTIVE,
        help="whose history moves to the typed chat: of none, of jobs still active (default), of all",
    )
    parser.add_argument("--no-backup", action="store_true", help="make no backup first")
    parser.add_argument("--keep-access", action="store_true", help="let no chat in")


def run(command: BaseCommand, options: dict[str, Any]) -> None:
    who, allows = options["who"], not options["keep_access"]
    try:
        if not options["no_backup"]:
            command.stdout.write(f"a backup of the whole database is in {back_up()}")
        start, done = Start.now(), 0
        for outcome in ties(who=who, allows=allows):
            command.stdout.write(told(outcome))
            done += 1
        for outcome in histories(options["history"], who=who, allows=allows):
            command.stdout.write(told(outcome))
            done += 1
        start.check()
    except (BackupError, BusyError, LostRowsError) as error:
        raise CommandError(str(error)) from error
    if not done:
        command.stdout.write("nothing to repair")
