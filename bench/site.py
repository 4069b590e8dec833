"""A whole Nahida in a directory of its own, on a database of its own, thrown away at the end."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import psycopg
from redis import Redis
from redis.exceptions import RedisError

from bench import processes
from bench.loopback import Remote

Broker = Literal["orm", "redis"]
BROKERS: tuple[Broker, ...] = ("orm", "redis")

ROOT = Path(__file__).resolve().parent.parent
POSTGRES_URL = os.environ.get("BENCH_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432")
REDIS_URL = os.environ.get("BENCH_REDIS_URL", "redis://127.0.0.1:6379")
REDIS_NUMBERS = range(8, 16)  # databases we may use if they are empty
CLAIM = "nahida-bench"  # the key that says that one is ours

CONFIG = """
[agent]
model = "instant"

[models.instant]
base_url = "{model}/v1"
model = "instant"

[channels.bench]
{channel}
open = true

[workers]
count = {workers}
stall_s = {stall_s}
"""


# What people write by: the module that plays it, and how the bot is told of it.
Wire = Literal["plain", "telegram", "milky"]
WIRES: dict[Wire, tuple[str, str]] = {
    "plain": ("bench.platform", 'kind = "bench.channel.PlatformChannel"\nurl = "{url}"'),
    "telegram": (
        "bench.telegram",
        'kind = "telegram"\nbase_url = "{url}"\ntoken_env = "BENCH_TOKEN"\n'
        "private_pace_s = 0\ngroup_pace_s = 0",
    ),
    "milky": ("bench.milky", 'kind = "milky"\nbase_url = "{url}"\npace_s = 0'),
}


class MissingError(Exception):
    """A server that the broker needs cannot be reached."""


class Site:
    """Its platform, its model, its database and, between `start` and `stop`, its processes.

    Entering sets this process's environment, so that Django here looks at the same database: one site a process.
    """

    def __init__(
        self, broker: Broker, *, wire: Wire = "plain", workers: int = 4, stall_s: int = 60
    ) -> None:
        self.broker = broker
        self.workers = workers
        self.data = Path(tempfile.mkdtemp(prefix="nahida-bench-"))
        self.log = self.data / "log"
        self.port = _free_port()
        module, channel = WIRES[wire]
        self.platform = Remote(module)
        self.model = Remote("bench.model")
        self.supervisor: subprocess.Popen[bytes] | None = None
        self.storage = _Storage(broker)
        config = self.data / "nahida.toml"
        config.write_text(
            CONFIG.format(
                model=self.model.url,
                channel=channel.format(url=self.platform.url),
                workers=workers,
                stall_s=stall_s,
            )
        )
        self.env = {
            "DJANGO_SETTINGS_MODULE": "nahida.settings",
            "DJANGO_SECRET_KEY": secrets.token_urlsafe(50),
            "NAHIDA_CONFIG": str(config),
            "NAHIDA_DATA_DIR": str(self.data),
            "NAHIDA_PORT": str(self.port),
            "NAHIDA_ROLE": "",
            "BENCH_TOKEN": "1:bench",
            "NO_PROXY": "127.0.0.1",
            "DATABASE_URL": "",
            "REDIS_URL": "",
            "PYTHONDONTWRITEBYTECODE": "",  # or each start compiles everything: five times as long
        }

    def __enter__(self) -> Self:
        try:
            self._prepare()
        except BaseException:  # an interrupt too
            self._throw_away()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._throw_away()

    def _prepare(self) -> None:
        self.env |= self.storage.make()
        os.environ |= self.env
        self._run(ROOT / "manage.py", "bootstrap")
        import django

        django.setup()

    def _throw_away(self) -> None:
        try:
            self.stop()
        finally:
            for pid in self.alive():
                os.kill(pid, signal.SIGKILL)
            self.platform.stop()
            self.model.stop()
            if "django.db" in sys.modules:
                from django.db import connections

                connections.close_all()
            self.storage.drop()
            shutil.rmtree(self.data, ignore_errors=True)

    def start(self) -> None:
        """Start everything, and wait until all of it is there."""
        with self.log.open("ab") as log:
            self.supervisor = subprocess.Popen(
                [sys.executable, "-m", "bench.up"],
                cwd=ROOT,
                env={**os.environ, "DJANGO_SETTINGS_MODULE": "bench.settings"},
                stdout=log,
                stderr=log,
            )
        complete = eventually(self.is_complete, within=90)
        assert complete, f"it did not start: {self.log.read_text()[-3000:]}"

    def stop(self) -> int | None:
        """Ask the supervisor to end, and return its exit code."""
        if self.supervisor is None:
            return None
        self.supervisor.terminate()
        try:
            code = self.supervisor.wait(20)
        except subprocess.TimeoutExpired:
            self.supervisor.kill()
            code = self.supervisor.wait()
        self.supervisor = None
        return code

    def family(self) -> processes.Family:
        if self.supervisor is None:
            return processes.Family()
        return processes.family(self.supervisor.pid, self.log.read_text(errors="replace"))

    def is_complete(self) -> bool:
        family = self.family()
        kinds = {kind for kind, _ in family.named()}
        return len(kinds) == 6 and len(family.workers) >= self.workers

    def alive(self) -> set[int]:
        """Return every process of this site, whoever its parent is."""
        return processes.marked(f"NAHIDA_DATA_DIR={self.data}\0")

    def strays(self) -> set[int]:
        """Return the processes of this site that hang under no supervisor."""
        if self.supervisor is None:
            return self.alive()
        mine = {self.supervisor.pid} | processes.descendants(self.supervisor.pid)
        return self.alive() - mine

    def say(self, *messages: tuple[str, str]) -> None:
        """Let people write on the platform: addresses and texts."""
        self.platform.post(
            "/inbound", [{"address": address, "text": text} for address, text in messages]
        )

    def _run(self, *command: Path | str) -> None:
        done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


class _Storage:
    """A fresh database and, with Redis, one of its numbered databases."""

    def __init__(self, broker: Broker) -> None:
        self.is_orm = broker == "orm"
        self.database = f"nahida_bench_{os.getpid()}"
        self.redis_url = ""

    def make(self) -> dict[str, str]:
        """Return the environment that names it, nothing for SQLite in the data directory."""
        if self.is_orm:
            return {}
        self.redis_url = _empty_redis()
        self._execute(f'CREATE DATABASE "{self.database}"')
        return {
            "DATABASE_URL": f"{POSTGRES_URL}/{self.database}",
            "REDIS_URL": self.redis_url,
        }

    def drop(self) -> None:
        if self.is_orm or not self.redis_url:
            return
        self._execute(f'DROP DATABASE IF EXISTS "{self.database}" WITH (FORCE)')
        with Redis.from_url(self.redis_url) as redis:
            redis.flushdb()

    def _execute(self, statement: str) -> None:
        try:
            with psycopg.connect(f"{POSTGRES_URL}/postgres", autocommit=True) as connection:
                connection.execute(statement)
        except psycopg.OperationalError as error:
            raise MissingError(f"PostgreSQL at {POSTGRES_URL}: {error}") from error


def _empty_redis() -> str:
    """Claim an unused database of the server: other runs may look for one at the same time."""
    try:
        for number in REDIS_NUMBERS:
            url = f"{REDIS_URL}/{number}"
            with Redis.from_url(url) as redis:
                if redis.setnx(CLAIM, os.getpid()) and redis.dbsize() == 1:
                    return url
    except RedisError as error:
        raise MissingError(f"Redis at {REDIS_URL}: {error}") from error
    raise MissingError(f"Redis at {REDIS_URL}: no empty database among {list(REDIS_NUMBERS)}")


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def eventually(condition: Callable[[], object], *, within: float, every: float = 0.2) -> bool:
    """Look again and again until the condition holds; other processes set the pace."""
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every)
    return True
