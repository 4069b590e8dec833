"""The web server, with the channels' listeners and the ticker beside it."""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from nahida.config import HOST, PORT
from nahida.ops.ports import PortError, bound_socket
from nahida.ops.server import Pieces, run


class Command(BaseCommand):
    help = "Serve the web page, the API and the admin; listen to the channels; tick."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        host = os.environ.get("NAHIDA_HOST") or HOST
        port = os.environ.get("NAHIDA_PORT") or PORT
        parser.add_argument("--host", default=host, help="address to listen on (%(default)s)")
        parser.add_argument("--port", type=int, default=port, help="(%(default)s)")
        parser.add_argument(
            "--no-listen", action="store_true", help="leave the channels to another process"
        )
        parser.add_argument(
            "--no-tick", action="store_true", help="leave the ticker to another process"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            web = bound_socket(options["host"], options["port"], way_out="--port")
        except PortError as error:
            raise CommandError(str(error)) from error
        sys.exit(
            run(
                Pieces(
                    "serve",
                    web=web,
                    listen=not options["no_listen"],
                    tick=not options["no_tick"],
                )
            )
        )
