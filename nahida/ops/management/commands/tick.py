"""The ticker alone."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from nahida.ops.server import Pieces, run


class Command(BaseCommand):
    help = "Wake what is due each second; any number may run."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(run(Pieces("tick", tick=True)))
