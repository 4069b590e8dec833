"""Everything on one machine, supervised."""

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from nahida.config import HOST, PORT
from nahida.ops.ports import PortError, bound_socket
from nahida.ops.programs import programs
from nahida.ops.supervisor import Supervisor


class Command(BaseCommand):
    help = "Run the web server, the workers and, if it is the one in use, the local model."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        host = os.environ.get("NAHIDA_HOST") or HOST
        port = os.environ.get("NAHIDA_PORT") or PORT
        parser.add_argument("--host", default=host, help="address to listen on (%(default)s)")
        parser.add_argument("--port", type=int, default=port, help="(%(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        refuse_taken(host, port, way_out="--port or NAHIDA_PORT")
        if model := settings.NAHIDA.local_model:
            model_port = urlsplit(model.base_url).port or 0
            refuse_taken("127.0.0.1", model_port, way_out="NAHIDA_LOCAL_MODEL_PORT")
        call_command("bootstrap", stdout=self.stdout)
        shown = f"[{host}]" if ":" in host else host
        for line in welcome(f"http://{shown}:{port}"):
            self.stdout.write(line)
        self.stdout.flush()
        Supervisor(list(programs(host=host, port=port))).run()
        self.stdout.write("Nahida has stopped.")


def refuse_taken(host: str, port: int, *, way_out: str) -> None:
    try:
        bound_socket(host, port).close()
    except PortError as error:
        raise CommandError(f"{error}: free it, or choose another with {way_out}") from error


def welcome(url: str) -> Iterator[str]:
    yield ""
    yield f"    Chat      {url}/chat/"
    yield f"    Admin     {url}/admin/"
    yield f"    API docs  {url}/api/docs"
    yield ""
    if settings.NAHIDA.local_model:
        yield "    The small local model answers. Name a better one in nahida.toml;"
        yield "    nahida.example.toml shows how."
        yield ""
    yield "    Ctrl-C stops everything."
    yield ""
