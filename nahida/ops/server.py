"""One asyncio process: web server, channel listeners and ticker, in any combination."""

import asyncio
import contextlib
import logging
import os
import platform
import signal
import socket
import time
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import uvicorn
from django.db import connections

from nahida.ops import heartbeat, listeners, ticker
from nahida.ops.stopping import Stopping
from nahida.ops.stopping import stopping as stopping

logger = logging.getLogger(__name__)

TICK_S = 1.0
BEAT_S = 10.0
SHORTEST_PAUSE_S = 0.1  # between two rounds, however long one takes
LONGEST_PAUSE_S = 30.0  # between two tries of what fails again and again
GRACE_S = 3  # for open requests, streams and listeners after a stop


@dataclass(frozen=True)
class Pieces:
    """What runs in this process. `web` is a bound socket."""

    name: str
    web: socket.socket | None = None
    listen: bool = False
    tick: bool = False


def run(pieces: Pieces) -> int:
    """Run until SIGTERM or SIGINT; return the exit code."""
    # Said of static files, which are small and served whole; our own streams are asynchronous.
    warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous iterators")
    config = uvicorn.Config(
        "nahida.asgi:application",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # settings say which proxy header counts
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=60,  # seconds; the usual 5 race clients that keep connections for 5
    )
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        return runner.run(_run(pieces, config))


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the signals to us: uvicorn raises them again and so ends us before our cleanup."""
        yield


async def _run(pieces: Pieces, config: uvicorn.Config) -> int:
    server = _Server(config) if pieces.web else None
    stop = asyncio.Event()

    def end() -> None:
        stopping.set()
        stop.set()
        if server:
            server.force_exit = server.should_exit  # asked twice: wait for nobody
            server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)

    tasks = [asyncio.create_task(work) for work in _work(pieces, stop)]
    if server and pieces.web:
        await server.serve(sockets=[pieces.web])
    else:
        await stopping.wait()
    asked = stopping.is_set()
    end()
    await _finish(tasks)
    return 0 if asked else 1  # a server that ended of itself has said why


def _work(pieces: Pieces, stop: asyncio.Event) -> Iterator[Coroutine[Any, Any, None]]:
    """Yield what goes on beside the web server until the stop."""
    if pieces.listen:
        yield again_and_again("listening", lambda: listeners.listen(stop), pause_s=TICK_S)
    if pieces.tick:
        yield again_and_again("the ticker", _in_thread("ticker", _Tick()), pause_s=TICK_S)
    beat = partial(heartbeat.beat, pieces.name, pid=os.getpid(), host=platform.node())
    yield again_and_again("the heartbeat", _in_thread("heartbeat", beat), pause_s=BEAT_S)


class _Tick:
    """One round of the ticker, and now and then its sign of life."""

    def __init__(self) -> None:
        self.beat_at = 0.0

    def __call__(self) -> None:
        ticker.tick()
        if (now := time.monotonic()) >= self.beat_at:
            self.beat_at = now + BEAT_S
            heartbeat.beat("ticker", pid=os.getpid(), host=platform.node())


def _in_thread(name: str, act: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    """Let sync ORM code run in a thread of its own, without keeping its connection."""
    executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    def with_fresh_connections() -> None:
        try:
            act()
        finally:
            connections.close_all()

    async def call() -> None:
        await asyncio.get_running_loop().run_in_executor(executor, with_fresh_connections)

    return call


async def again_and_again(
    name: str,
    act: Callable[[], Awaitable[None]],
    *,
    pause_s: float,
    stopping: Stopping = stopping,
) -> None:
    """Act until the stop, whatever fails; the pause grows while it does."""
    failures = 0
    while not stopping.is_set():
        started = time.monotonic()
        try:
            await act()
            failures = 0
        except Exception:
            failures += 1
            logger.exception("%s failed, %d in a row", name, failures)
        pause = min(LONGEST_PAUSE_S, pause_s * 2.0 ** min(failures, 10))
        await stopping.sleep(max(SHORTEST_PAUSE_S, pause - (time.monotonic() - started)))


async def _finish(tasks: list[asyncio.Task[None]]) -> None:
    _, late = await asyncio.wait(tasks, timeout=GRACE_S)
    for task in late:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
