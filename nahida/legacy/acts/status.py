"""Tell where the migration stands."""

from argparse import ArgumentParser
from itertools import groupby
from typing import Any

from django.core.management.base import BaseCommand

from nahida.legacy.status import remainders
from nahida.legacy.telling import counts, shown

HELP = "tell how many sessions, turns, jobs and items are still legacy, and why"


def add_arguments(parser: ArgumentParser) -> None:
    """It needs to know nothing."""


def run(command: BaseCommand, options: dict[str, Any]) -> None:
    left = remainders()
    for kind, rows in groupby(left, key=lambda remainder: remainder.kind):
        reasons = list(rows)
        command.stdout.write(f"{kind}: {sum(one.number for one in reasons)} are still legacy")
        for one in reasons:
            command.stdout.write(f"  {one.number:>9}  {shown(one.why)}")
    if not left:
        command.stdout.write("nothing is legacy any more")
    command.stdout.write("\n".join(counts()))
