"""Apply what was decided."""

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from nahida.legacy.apply import ALREADY, PENDING, Outcome, to_apply
from nahida.legacy.plan import PlanError, write_plan
from nahida.legacy.running import LostRowsError, apply_all, rehearse_all
from nahida.legacy.takeover import read_plan
from nahida.legacy.telling import told
from nahida.ops.backup import BackupError, back_up

HELP = "apply what was decided, each record wholly or not at all; a backup comes first"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--plan", metavar="PLAN", type=Path, help="take the decisions of this file")
    parser.add_argument("--dry-run", action="store_true", help="tell what would come of it")
    parser.add_argument("--stop-on-error", action="store_true", help="stop at the first failure")
    parser.add_argument("--no-backup", action="store_true", help="make no backup first")
    parser.add_argument(
        "--keep-access",
        action="store_true",
        help="let no chat in: those that are new wait for the owner (else their members may go on)",
    )


def run(command: BaseCommand, options: dict[str, Any]) -> None:
    try:
        counts = _rehearse(command, options) if options["dry_run"] else _apply(command, options)
    except (PlanError, BackupError, LostRowsError) as error:
        raise CommandError(str(error)) from error
    command.stdout.write("\n".join(_summary(counts)))
    left = sum(number for result, number in counts.items() if result in ("failed", "busy", "stale"))
    if left:
        raise CommandError(f"{left} records are still open: the reasons stand above")


def _apply(command: BaseCommand, options: dict[str, Any]) -> Counter[str]:
    plan = options["plan"]
    pks = to_apply() if plan is None else read_plan(plan, who=options["who"])
    if to_apply(pks) and not options["no_backup"]:
        command.stdout.write(f"a backup of the whole database is in {back_up()}")
    outcomes = apply_all(
        pks,
        who=options["who"],
        allows=not options["keep_access"],
        stops_on_error=options["stop_on_error"],
    )
    try:
        return _tell(command, outcomes)
    finally:
        if plan is not None:
            write_plan(plan)


def _rehearse(command: BaseCommand, options: dict[str, Any]) -> Counter[str]:
    command.stdout.write("dry run: nothing is changed")
    outcomes = rehearse_all(
        options["plan"],
        who=options["who"],
        allows=not options["keep_access"],
        stops_on_error=options["stop_on_error"],
    )
    return _tell(command, outcomes)


def _tell(command: BaseCommand, outcomes: Iterable[Outcome]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts[outcome.result] += 1
        if outcome.result not in (PENDING, ALREADY):
            command.stdout.write(told(outcome))
    return counts


def _summary(counts: Counter[str]) -> Iterable[str]:
    if not counts:
        yield "nothing is decided that is not applied already"
    for result, number in counts.most_common():
        yield f"{number:>6} {result}"
