"""The channels' listeners alone."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from nahida.ops.server import Pieces, run


class Command(BaseCommand):
    help = "Listen to the channels; any number may run, one holds each channel."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(run(Pieces("listen", listen=True)))
