"""Which process of a site is which. Everything here reads /proc; only descendants of our own supervisor are named."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
# The queue's processes are forks that look alike; each says in the log what it is.
SAID = {
    "worker": re.compile(r"ready for work at (\d+)"),
    "monitor": re.compile(r"monitoring at (\d+)"),
    "pusher": re.compile(r"pushing tasks at (\d+)"),
}


@dataclass(frozen=True, slots=True)
class Family:
    """The processes of a site by kind, as far as they live at this moment."""

    serve: int | None = None
    main: int | None = None
    sentinel: int | None = None
    pusher: int | None = None
    monitor: int | None = None
    workers: tuple[int, ...] = ()

    def named(self) -> Iterator[tuple[str, int]]:
        for kind in ("serve", "main", "sentinel", "pusher", "monitor"):
            if pid := getattr(self, kind):
                yield kind, pid
        yield from (("worker", pid) for pid in self.workers)


def family(supervisor: int, log: str) -> Family:
    """Return who lives under a supervisor, given what its processes have logged so far."""
    tree = _tree()
    serve = main = None
    for guard in tree.get(supervisor, ()):
        for program in tree.get(guard, ()):
            command = words(program)
            serve = program if "serve" in command else serve
            main = program if "qcluster" in command else main
    sentinel = _first(tree.get(main, ())) if main else None
    forks = set(tree.get(sentinel, ())) if sentinel else set()
    alive = {kind: [pid for pid in _said(log, kind) if pid in forks] for kind in SAID}
    pusher, monitor = _first(alive["pusher"]), _first(alive["monitor"])
    return Family(serve, main, sentinel, pusher, monitor, tuple(alive["worker"]))


def _said(log: str, kind: str) -> list[int]:
    """Return the pids that said they are of a kind, the newest first."""
    return [int(pid) for pid in reversed(SAID[kind].findall(log))]


def _first(pids: Sequence[int]) -> int | None:
    return pids[0] if pids else None


def descendants(ancestor: int) -> set[int]:
    tree = _tree()

    def below(parent: int) -> set[int]:
        return {parent}.union(*(below(child) for child in tree.get(parent, ())))

    return below(ancestor) - {ancestor}


def _tree() -> dict[int, list[int]]:
    """Return the living children of every process."""
    tree: dict[int, list[int]] = defaultdict(list)
    for pid in pids():
        tree[_parent(pid)].append(pid)
    return tree


def marked(mark: str) -> set[int]:
    """Return the living processes whose first environment holds a text, wherever they hang in the tree."""
    return {pid for pid in pids() if mark.encode() in _read(pid, "environ")}


def pids() -> list[int]:
    """Return all processes that live; a zombie does not."""
    numbers = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    return [pid for pid in numbers if _status(pid)[:1] not in ([], ["Z"])]


def words(pid: int) -> list[str]:
    return _read(pid, "cmdline").decode(errors="replace").split("\0")


def waits_for_task(pid: int) -> bool:
    """Is it the worker whose turn it is to read the next task? It holds the lock the others wait for."""
    return b"pipe_read" in _read(pid, "wchan")


def has_port(pid: int, ports: list[int]) -> bool:
    """Does the process hold a TCP connection that begins at one of these ports?"""
    wanted = {f"{port:04X}" for port in ports}
    inodes = {
        fields[9]
        for line in _read(pid, "net/tcp").decode().splitlines()[1:]
        if (fields := line.split())[1].rpartition(":")[2] in wanted
    }
    return bool(inodes & _sockets(pid))


def memory(pid: int) -> tuple[float, float] | None:
    """Return resident and proportional memory in MB, None for a process that has ended."""
    lines = _read(pid, "smaps_rollup").decode().splitlines()[1:]
    sizes = {name: rest.split()[0] for name, _, rest in (line.partition(":") for line in lines)}
    return (int(sizes["Rss"]) / 1024, int(sizes["Pss"]) / 1024) if sizes else None


def _sockets(pid: int) -> set[str]:
    found = set()
    try:
        for link in (PROC / str(pid) / "fd").iterdir():
            target = str(link.readlink())
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except OSError:
        pass  # it ended
    return found


def _parent(pid: int) -> int:
    status = _status(pid)
    return int(status[1]) if status else 0


def _status(pid: int) -> list[str]:
    # The name before the last bracket may hold anything.
    return _read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def _read(pid: int, file: str) -> bytes:
    try:
        return (PROC / str(pid) / file).read_bytes()
    except OSError:  # it ended
        return b""
