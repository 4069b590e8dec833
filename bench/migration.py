"""Moving an old database of a real size: import, inspect, apply, on one database each. No queue, no platform."""

import json
import os
import random
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from bench.site import Broker, Site

SESSIONS = 2_000
GROUPS = 500  # of the sessions; the others are private chats
MIXED = 20  # sessions that hold a private chat and a group of the same number
WORDS = [
    "今天",
    "天气",
    "很好",
    "我们",
    "明天",
    "公园",
    "会议",
    "项目",
    "计划",
    "请记住",
    "周三",
    "下午",
    "读书会",
    "花生",
    "过敏",
    "hello",
    "budget",
    "plan",
    "notes",
    "meeting",
    "done",
    "later",
    "maybe",
    "tea",
    "garden",
]


def run(broker: Broker, *, turns: int, items: int) -> bool:
    with Site(broker) as site:
        old = site.data / "old.db"
        timed("generate", lambda: generate(old, turns=turns, items=items))
        seconds = timed("import", lambda: command("import_legacy", str(old)))
        print(f"  {turns / seconds:,.0f} turns/s with the transcript index")
        timed("inspect", lambda: command("migrate_session_keys", "inspect"))
        approved = approve_all()
        timed("apply", lambda: command("migrate_session_keys", "apply", "--no-backup"))
        print(f"  {approved:,} records; {outcomes()}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  peak memory {peak:,.0f} MiB")
    return True


def timed(what: str, act: Callable[[], object]) -> float:
    started = time.monotonic()
    act()
    seconds = time.monotonic() - started
    print(f"  {what:<10}{seconds:>8.1f} s", flush=True)
    return seconds


def command(*words: str) -> None:
    from django.core.management import call_command

    with open(os.devnull, "w") as nowhere:
        call_command(*words, stdout=nowhere, stderr=nowhere)


def approve_all() -> int:
    """Decide as recommended wherever that can be decided."""
    from nahida.legacy.decide import DecisionError, decide
    from sessions_app.models import Approval, MigrationLog

    approved = 0
    for record in MigrationLog.objects.filter(kind="session_keys", result="").order_by("pk"):
        with suppress(DecisionError):
            decide(record, Approval.APPROVED, who="bench")
            approved += 1
    return approved


def outcomes() -> str:
    from django.db.models import Count

    from sessions_app.models import MigrationLog

    counted = MigrationLog.objects.values_list("result").annotate(Count("pk")).order_by("result")
    return ", ".join(f"{result or 'open'} {count:,}" for result, count in counted)


def generate(path: Path, *, turns: int, items: int) -> None:
    from tests.legacy.builder import OldDatabase

    dice = random.Random(1)
    with OldDatabase(path) as old:
        old.connection.execute("PRAGMA synchronous=OFF")
        keys = [old.session(f"milky:{10_001 + number}") for number in range(SESSIONS)]
        old.many_turns(talk(keys, turns, dice))
        old.connection.execute("BEGIN")
        for number in range(items):
            evidence = {"session_id": keys[number % SESSIONS]}
            old.item(f"mem_{number:032x}", content=text(dice), evidence=evidence)
        old.connection.execute("COMMIT")


def talk(
    keys: list[str], turns: int, dice: random.Random
) -> Iterator[tuple[str, str, str, str | None]]:
    from tests.legacy.builder import BOT, envelope

    envelopes = {
        (kind, key): json.dumps({"message_context": envelope(key.replace(":", f":{kind}:"))})
        for key in keys
        for kind in ("private", "group")
    }
    bot = json.dumps({"message_context": BOT})
    for number in range(turns):
        index = number // 2 % len(keys)
        if number % 2:
            yield keys[index], "assistant", text(dice), bot
            continue
        is_group = index < GROUPS or (index >= len(keys) - MIXED and dice.random() < 0.5)
        kind = "group" if is_group else "private"
        yield keys[index], "user", text(dice), envelopes[kind, keys[index]]


def text(dice: random.Random) -> str:
    return "".join(dice.choices(WORDS, k=18))
