"""Cut a long text into parts that a platform takes, at the gentlest place that fits.

A code fence that a cut would break is closed before it and opened again behind it. Pure.
"""

import re

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_BREAKS = ("\n\n", "\n", "。", "！", "？", ". ", "! ", "? ", "，", ", ", " ")
# A break in the first third would leave a needlessly short part.
_EARLIEST = 1 / 3


def split_text(text: str, limit: int) -> list[str]:
    """Return parts of at most `limit` UTF-16 units, none of them blank."""
    assert limit >= 100, "a part must hold a fence and some text"
    parts = []
    opening = ""
    rest = text.strip("\n")
    while units(opening) + units(rest) > limit:
        room = limit - units(opening) - len("\n```````")
        head = rest[: _cut(rest, room)]
        rest = rest[len(head) :].lstrip("\n")
        fence = _open_fence(opening + head)
        parts.append(opening + head.rstrip("\n") + (f"\n{_marks(fence)}" if fence else ""))
        opening = f"{fence}\n" if fence else ""
    parts.append(opening + rest)
    return [part for part in parts if part.strip()]


def units(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)


def _cut(text: str, room: int) -> int:
    """Return how many characters of `text` fit into `room` units and end at the best break."""
    end = _fitting(text, room)
    for mark in _BREAKS:
        at = text.rfind(mark, int(end * _EARLIEST), end)
        if at > 0:
            return at + len(mark)
    return end


def _fitting(text: str, room: int) -> int:
    used = 0
    for index, character in enumerate(text[:room]):
        used += 2 if character > "\uffff" else 1
        if used > room:
            return max(index, 1)
    return max(min(len(text), room), 1)


def _open_fence(text: str) -> str:
    """Return the line that opened a fence still open at the end of `text`, or ""."""
    opened = ""
    for match in _FENCE.finditer(text):
        if not opened:
            opened = match[0].strip()
        elif match[1].startswith(_marks(opened)) and match[0].strip() == match[1]:
            opened = ""
    # A long info string is not worth repeating in every part.
    return opened if len(opened) <= 40 else _marks(opened)


def _marks(fence: str) -> str:
    match = re.match(r"`+|~+", fence)
    assert match is not None, "a fence begins with its marks"
    return match[0]
