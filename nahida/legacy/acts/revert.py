"""Take an applied record back."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from nahida.legacy.ground import BusyError
from nahida.legacy.revert import RevertError, revert
from nahida.legacy.telling import shown

HELP = "take an applied record back, so that every row is as it was before, or say what stands in the way"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("record", metavar="ID", type=int, help="its number, as the plan gives it")


def run(command: BaseCommand, options: dict[str, Any]) -> None:
    try:
        for record in revert(options["record"], who=options["who"]):
            command.stdout.write(f"reverted {shown(record.old_key)} (record {record.pk})")
    except (RevertError, BusyError) as error:
        raise CommandError(str(error)) from error
