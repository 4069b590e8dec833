"""Siege: in each round people write, one process is killed with SIGKILL, and people write on.

A round ends when a new chat gets its answer, so the next kill meets the work that the last one left behind.
"""

import itertools
import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from bench.processes import Family
from bench.site import Broker, Site, Wire, eventually
from bench.victims import AT_WORK, KINDS, TAKES_CLUSTER_DOWN

# Telegram tells groups by the sign of their numbers; QQ has none below 10001, and no topics.
CHATS = (
    *(f"bench:private:{number}" for number in range(10001, 10006)),
    *(f"bench:group:-{number}" for number in range(10001, 10004)),
    "bench:group:-10001:topic:7",
)
CHATS_OF_QQ = (
    *(f"bench:private:{number}" for number in range(10001, 10006)),
    *(f"bench:group:{number}" for number in range(10001, 10005)),
)
STALL_S = 5
ASKING_S = 0.2
SENDING_S = 0.2  # before and after a send counts
FIND_S = 20  # to meet a process of a kind
BACK_S = 90  # to answer a new chat after a kill
GONE_S = 30  # for the forks of a dead sentinel: its parent ends first, slowly on a busy machine
QUIET_S = 180  # for the leases of the dead to run out, and what waits behind them


@dataclass(slots=True)
class Siege:
    site: Site
    seed: int
    chats: tuple[str, ...] = CHATS
    said: list[str] = field(default_factory=list)
    back_after: dict[str, list[float]] = field(default_factory=dict)
    lost_at_work: int = 0
    faults: list[str] = field(default_factory=list)
    dice: random.Random = field(init=False)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)

    def begin(self) -> None:
        """Let every chat be known: on some platforms only then it is known what was missed there."""
        self.say(list(self.chats))
        if not eventually(lambda: all(map(self.has_answer, self.chats)), within=BACK_S):
            self.faults.append(f"not all chats were answered {BACK_S} s after the start")

    def round(self, number: int, kind: str) -> None:
        self.say(self.dice.choices(self.chats, k=6))
        if not self.kill(kind):
            self.faults.append(f"round {number}: no {kind} to kill within {FIND_S} s")
            return
        killed_at = time.monotonic()
        self.say(self.dice.choices(self.chats, k=3))
        newcomer = f"bench:private:{11000 + number}"
        self.say([newcomer])
        if not eventually(lambda: self.is_done(newcomer), within=BACK_S):
            self.faults.append(f"round {number}: no answer {BACK_S} s after the end of {kind}")
        self.back_after.setdefault(kind, []).append(time.monotonic() - killed_at)
        eventually(lambda: not self.site.strays(), within=GONE_S)
        self.faults += [f"round {number}: process {pid} is orphaned" for pid in self.site.strays()]

    def say(self, addresses: list[str]) -> None:
        messages = [(address, f"m{next(self.numbers)}") for address in addresses]
        self.said += [text for _, text in messages]
        self.site.say(*messages)

    def kill(self, kind: str) -> bool:
        end = time.monotonic() + FIND_S
        while time.monotonic() < end:
            family = self.site.family()
            victim = KINDS[kind](self.site, family)
            if victim and (kind not in AT_WORK or self.is_caught(kind, victim)):
                os.kill(victim, signal.SIGKILL)
                self.lost_at_work += kind in AT_WORK
                self.lost_at_work += len(family.workers) * (kind in TAKES_CLUSTER_DOWN)
                return True
            if kind in AT_WORK and not is_something_due():
                self.say(self.dice.choices(self.chats, k=2))
            time.sleep(0.02)
        return False

    def is_caught(self, kind: str, worker: int) -> bool:
        """Halt a worker, and say whether it is still at the work it was seen at; else it goes on."""
        os.kill(worker, signal.SIGSTOP)
        if KINDS[kind](self.site, Family(workers=(worker,))):
            return True
        os.kill(worker, signal.SIGCONT)
        return False

    def is_done(self, address: str) -> bool:
        """A worker that outlived its sentinel for a moment may have died over this very answer."""
        from channels_app.models import Delivery, DeliveryState

        lost = Delivery.objects.filter(address=address, state=DeliveryState.UNKNOWN)
        return self.has_answer(address) or lost.exists()

    def has_answer(self, address: str) -> bool:
        return any(message["address"] == address for message in self.site.platform.get("/sent"))


def is_something_due() -> bool:
    """Will a worker soon be at work?"""
    from memory_app.models import MemoryTurn

    return MemoryTurn.objects.unfinished().exists()


def run(broker: Broker, *, wire: Wire, rounds: int, seed: int) -> bool:
    """Print how it went; True if no promise was broken."""
    started = time.monotonic()
    with Site(broker, wire=wire, stall_s=STALL_S) as site:
        from bench.verdict import is_quiet, judge

        site.model.post("/delay", {"seconds": ASKING_S})
        site.platform.post("/delay", {"before": SENDING_S, "after": SENDING_S})
        site.start()
        siege = Siege(site, seed, CHATS_OF_QQ if wire == "milky" else CHATS)
        siege.begin()
        for number, kind in enumerate(itertools.islice(itertools.cycle(KINDS), rounds), start=1):
            siege.round(number, kind)
        if not eventually(lambda: is_quiet(site), within=QUIET_S, every=1):
            siege.faults.append(f"not quiet after {QUIET_S} s")
        restarts = site.log.read_text().count(" is restarted: ")
        siege.lost_at_work += restarts * site.workers
        verdict = judge(site, siege.said, lost_at_work=siege.lost_at_work)
        code = site.stop()
        orphans = site.alive()
    faults = [*siege.faults, *verdict.faults]
    if code != 0:
        faults.append(f"the supervisor ended with {code}")
    faults += [f"process {pid} outlived the supervisor" for pid in orphans]

    print(
        f"chaos, {broker}, {wire}: {rounds} rounds in {time.monotonic() - started:.0f} s, seed {seed}"
    )
    print(f"  {'killed':<16}{'times':>6}{'next answer after, median':>28}{'longest':>10}")
    for kind, seconds in siege.back_after.items():
        print(f"  {kind:<16}{len(seconds):>6}{median(seconds):>26.1f} s{max(seconds):>8.1f} s")
    print(f"  messages {verdict.said}, answers {verdict.answers} (a batch has one)")
    print(f"  given up after three attempts {verdict.gave_up}")
    print(f"  seen by the platform {verdict.seen}")
    print(
        f"  deliveries unknown {verdict.unknown}, of these not seen {verdict.unknown_unseen}; "
        f"workers lost at work at most {siege.lost_at_work}"
    )
    print(f"  restarts of a stalled cluster {restarts}")
    for fault in faults:
        print(f"  FAULT {fault}")
    print("  every promise held" if not faults else f"  {len(faults)} promises broken")
    return not faults
