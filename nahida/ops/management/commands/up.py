"""Everything on one machine, supervised."""

import math
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.utils import timezone

from nahida.config import HOST, PORT
from nahida.ops.models import Heartbeat
from nahida.ops.ports import PortError, bound_socket
from nahida.ops.supervisor import Program, Supervisor, stall_reason
from nahida.ops.ticker import stalled_for


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


def programs(*, host: str, port: int) -> Iterator[Program]:
    manage = [sys.executable, str(settings.BASE_DIR / "manage.py")]
    # Read by the settings of each: what site.url is, and how connections are kept.
    env = {"NAHIDA_HOST": host, "NAHIDA_PORT": str(port)}
    if settings.NAHIDA.local_model:
        yield Program("local_model", [*manage, "local_model"], env)
    yield Program(
        "serve",
        [*manage, "serve"],
        env | {"NAHIDA_ROLE": "web"},
        sick=partial(sickness, waiting=lambda: 0.0, beat="serve"),
    )
    yield Program(
        "qcluster",
        [*manage, "qcluster"],
        env | {"NAHIDA_ROLE": "worker"},
        sick=partial(sickness, waiting=stalled_for, beat="qcluster"),
    )


def sickness(uptime: float, *, waiting: Callable[[], float], beat: str) -> str:
    """Say why a program must be restarted, or "", by what the database knows of it."""
    try:
        return stall_reason(
            uptime,
            waiting=waiting,
            silent=partial(silent_for, beat),
            stall_s=settings.NAHIDA.workers.stall_s,
        )
    finally:
        connections.close_all()


def silent_for(beat: str) -> float:
    """Return the seconds since the last heartbeat of that name."""
    last = Heartbeat.objects.filter(name=beat).values_list("at", flat=True).first()
    return (timezone.now() - last).total_seconds() if last else math.inf
