"""Whom to kill: one process of a kind, found at the moment at which its death hurts."""

from collections.abc import Callable

from bench import processes
from bench.processes import Family
from bench.site import Site

Choice = Callable[[Site, Family], int | None]


def idle_worker(site: Site, family: Family) -> int | None:
    """Return the worker that waits for the next task while it holds the lock of the queue: all others wait for it."""
    reading = [pid for pid in family.workers if processes.waits_for_task(pid)]
    return reading[0] if reading else None


def asking_worker(site: Site, family: Family) -> int | None:
    """Return a worker in the middle of a request to the model."""
    return _with_port(family, site.model.get("/open"))


def sending_worker(site: Site, family: Family) -> int | None:
    """Return a worker in the middle of a request to the platform."""
    return _with_port(family, site.platform.get("/open"))


def _with_port(family: Family, ports: list[int]) -> int | None:
    return next((pid for pid in family.workers if processes.has_port(pid, ports)), None)


KINDS: dict[str, Choice] = {
    "serve": lambda site, family: family.serve,
    "main": lambda site, family: family.main,
    "sentinel": lambda site, family: family.sentinel,
    "pusher": lambda site, family: family.pusher,
    "monitor": lambda site, family: family.monitor,
    "idle worker": idle_worker,
    "asking worker": asking_worker,
    "sending worker": sending_worker,
}
TAKES_CLUSTER_DOWN = frozenset({"main", "sentinel"})
AT_WORK = frozenset({"asking worker", "sending worker"})
