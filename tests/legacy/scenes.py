"""Old sessions with all that can hang on one, decided and ready to be applied, and faults at any write of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from channels_app.addresses import ChatAddress
from memory_app.models import DreamState, MemoryCandidate, MemoryItem
from nahida.legacy.decide import decide
from nahida.legacy.inspect import inspect
from sessions_app.models import Lane, Session
from sessions_app.routing import chat_for
from tests.legacy.imported import (
    BASE,
    GROUP,
    PRIVATE,
    old_job,
    old_session,
    old_task,
    old_turn,
    override,
    record,
)

WRITES = ("INSERT", "UPDATE", "DELETE")


def furnish(*origins: str) -> Session:
    """Make an old session whose turns name these chats, with everything that can hang on one."""
    base = old_session(BASE, *origins)
    old_task(base, old_session(f"{BASE}:subagent:t1"))
    override(BASE, base)
    old_job()
    DreamState.objects.create(session=base, dreamt_to=1)
    scope = {"scope_type": "session", "scope_id": BASE, "source_session": base}
    MemoryItem.objects.create(
        kind="fact", search_tokens="tea", source_turn=base.turns.first(), imported={}, **scope
    )
    MemoryCandidate.objects.create(kind="fact", **scope)
    return base


def rename() -> int:
    furnish(GROUP, GROUP)
    return _approved()


def merge() -> int:
    """The typed chat is there, with a lane of its own and turns between the old ones."""
    base = furnish(GROUP)
    chat = chat_for(ChatAddress("milky", "group", "10001"))
    typed = Session.objects.create(key=GROUP, chat=chat)
    Lane.objects.create(chat=chat, active_session=typed)
    old_turn(typed, GROUP)
    old_turn(base, GROUP)
    return _approved()


def split() -> int:
    furnish(PRIVATE, GROUP, PRIVATE)
    return _approved()


SCENES: dict[str, Callable[[], int]] = {"renamed": rename, "merged": merge, "split": split}


def _approved() -> int:
    inspect(who="alice")
    return decide(record(), "approved", who="alice").pk


@contextmanager
def before_write(number: int, act: Callable[[], object]) -> Iterator[list[int]]:
    """Let something happen just before the `number`th write. Yields a list whose one number is 0 once it has happened."""
    left = [number]

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(WRITES) and left[0]:
            left[0] -= 1
            if not left[0]:
                act()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        yield left
