"""Which turns of a mixed session belong to which chat. Pure. Source: acceptance list X10-X14.

A turn that names its chat belongs there. What the bot said belongs to the chat that named turns on both sides share; a missing
one behind does not object. A user's turn without a chat belongs to nobody, and neither does what answers it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A turn; `chat` is the key of the typed chat it names, or ""."""

    id: int
    role: str
    chat: str = ""


def divide(lines: Iterable[Line]) -> Iterator[tuple[int, str]]:
    """Yield the id and chat of each turn that has one; `lines` are a session's turns in the order of their ids."""
    asked_in = ""
    waiting: list[tuple[int, str]] = []  # for the next turn that names a chat
    for line in lines:
        if line.chat and line.role != "assistant":
            yield from ((id, chat) for id, chat in waiting if chat == line.chat)
            yield line.id, line.chat
            asked_in, waiting = line.chat, []
        elif line.role == "user":
            asked_in = ""
        elif asked_in and line.chat in ("", asked_in):
            waiting.append((line.id, asked_in))
    yield from waiting
