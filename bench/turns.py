"""How much, how fast, how big: figures of one site with an instant model. The machine is noisy: medians, and ratios."""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median, quantiles

from bench import processes
from bench.site import Broker, Site, eventually

ACCEPTED = 400  # updates, over CHATS chats
CHATS = 50
STEADY_HZ = 20
STEADY_S = 10
TURNS = 200  # each in a chat of its own, so that none is joined with another
PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Figures:
    accepted: float
    queued_p50: float
    queued_p95: float
    turns: float


def run(broker: Broker, *, repeats: int) -> bool:
    """Print the figures; True if everything said was answered."""
    with Site(broker) as site:
        accepted = [accepted_per_second(number) for number in range(repeats)]
        forget_the_accepted()
        site.start()
        turns_per_second(site, batch=0)  # the first asks of each worker open connections
        rows = [
            Figures(accepted[number], *queued_ms(site), turns_per_second(site, batch=number + 1))
            for number in range(repeats)
        ]
        memory = [
            (kind, *sizes)
            for kind, pid in site.family().named()
            if (sizes := processes.memory(pid))  # a recycled worker has just ended
        ]
    show(broker, rows, memory)
    return True


def accepted_per_second(repeat: int) -> float:
    """Let updates of many chats be stored, one after the other; nobody works on them."""
    from channels_app.addresses import ChatAddress, account
    from channels_app.messages import InboundMessage, Sender
    from nahida.agent.intake import accept

    messages = [
        InboundMessage(
            ChatAddress("bench", "private", f"accept{number % CHATS}"),
            event_key=f"accept-{repeat}-{number}",
            text="hello",
            sender=Sender(account("bench", "10001"), "Alice"),
            addressed=True,
        )
        for number in range(ACCEPTED)
    ]
    started = time.monotonic()
    for message in messages:
        accept(message)
    return ACCEPTED / (time.monotonic() - started)


def forget_the_accepted() -> None:
    """End what nobody is to answer, and throw its wake-ups away."""
    from django_q.brokers import get_broker

    from memory_app.models import MemoryTurn, TurnState
    from sessions_app.models import Lane

    MemoryTurn.objects.unfinished().update(state=TurnState.STOPPED)
    Lane.objects.update(wake_at=None, woken_at=None)
    get_broker().purge_queue()


def queued_ms(site: Site) -> tuple[float, float]:
    """Return p50 and p95 of the milliseconds from an update's arrival at the platform until it is told that it is stored."""
    before = len(site.platform.get("/stored"))
    number = STEADY_HZ * STEADY_S
    started = time.monotonic()
    for index in range(number):
        time.sleep(max(0.0, started + index / STEADY_HZ - time.monotonic()))
        site.say((f"bench:private:steady{index % CHATS}", f"m{index}"))
    expect(lambda: len(site.platform.get("/stored")) == before + number, "updates are stored")
    took = sorted(site.platform.get("/stored")[before:])
    settle(site)
    return 1000 * median(took), 1000 * quantiles(took, n=20)[-1]


def turns_per_second(site: Site, *, batch: int) -> float:
    """Return how many turns a second go all the way, from the platform and back to it."""
    before = len(site.platform.get("/sent"))
    started = time.monotonic()
    site.say(*((f"bench:private:turn{batch}x{index}", f"m{index}") for index in range(TURNS)))
    expect(lambda: len(site.platform.get("/sent")) == before + TURNS, "turns are answered")
    last: float = site.platform.get("/sent")[-1]["at"]  # one clock for all processes of a machine
    settle(site)
    return TURNS / (last - started)


def settle(site: Site) -> None:
    from bench.verdict import is_quiet

    expect(lambda: is_quiet(site), "everything ends")


def expect(condition: Callable[[], object], what: str) -> None:
    assert eventually(condition, within=PATIENCE_S), f"not all {what} within {PATIENCE_S} s"


def show(broker: Broker, rows: list[Figures], memory: Iterable[tuple[str, float, float]]) -> None:
    def middle(name: str) -> float:
        return float(median(getattr(row, name) for row in rows))

    storage = "SQLite, ORM queue" if broker == "orm" else "PostgreSQL, Redis queue"
    print(f"turns, {storage}: medians of {len(rows)}, {os.cpu_count()} cores, shared and noisy")
    print(f"  updates accepted in one process   {middle('accepted'):8.0f} /s")
    print(f"  received -> queued at {STEADY_HZ}/s, p50   {middle('queued_p50'):8.1f} ms")
    print(f"                              p95   {middle('queued_p95'):8.1f} ms")
    print(f"  turns, end to end                 {middle('turns'):8.1f} /s")
    print(f"  {'memory':<32}{'RSS':>8}{'PSS':>8} MB")
    for kind, resident, proportional in memory:
        print(f"    {kind:<30}{resident:8.0f}{proportional:8.0f}")
