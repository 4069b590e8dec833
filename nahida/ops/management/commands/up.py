"""Everything on one machine, supervised."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django_q.tasks import async_task

from nahida import queue
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
        async_task(queue.BEAT)  # the new cluster's first sign of life, before the first sweep
        connections.close_all()
        threading.Thread(target=self._welcome, args=(host, port), daemon=True).start()
        Supervisor(list(programs(host=host, port=port))).run()
        self.stdout.write("Nahida has stopped.")

    def _welcome(self, host: str, port: int) -> None:
        """Say where everything is, as soon as somebody is there."""
        while not answers(host, port):
            time.sleep(0.2)
        shown = f"[{host}]" if ":" in host else host
        self.stdout.write("\n".join(welcome(f"http://{shown}:{port}")))


def answers(host: str, port: int) -> bool:
    # What listens everywhere listens on loopback.
    target = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    try:
        socket.create_connection((target, port), timeout=1).close()
    except OSError:
        return False
    return True


def refuse_taken(host: str, port: int, *, way_out: str) -> None:
    try:
        bound_socket(host, port, way_out=way_out).close()
    except PortError as error:
        raise CommandError(str(error)) from error


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
