"""Give the sessions of the old bot typed keys: propose, decide, apply."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from nahida.legacy.acts import apply, inspect, repair_cron, revert, review, status
from nahida.legacy.decide import operator
from nahida.ops.health import migrated

ACTS = {
    "inspect": inspect,
    "review": review,
    "apply": apply,
    "repair-cron": repair_cron,
    "revert": revert,
    "status": status,
}


class Command(BaseCommand):
    help = "Give the sessions of an imported database typed keys. Nothing moves that no person approved."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", metavar="ACT", required=True)
        for name, act in ACTS.items():
            its = acts.add_parser(name, help=act.HELP, description=act.HELP)
            its.add_argument(
                "--as", dest="as_user", metavar="USER", help="who decides (else cli:<os user>)"
            )
            act.add_arguments(its)

    def handle(self, *args: Any, **options: Any) -> None:
        if not migrated():
            raise CommandError("the database is not ready: run bin/up once, or manage.py migrate")
        options["who"] = operator(options["as_user"])
        ACTS[options["act"]].run(self, options)
