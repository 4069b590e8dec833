"""Cut a long text into parts that a platform takes, at the gentlest place that fits.

A code fence that a cut would break is closed before it and opened again behind it. Pure.
"""

import re
import unicodedata

# A fence with more marks than this is taken for text: it could not be repeated within any limit.
_MOST_MARKS = 16
_FENCE = re.compile(
    rf"^ {{0,3}}((`{{3,{_MOST_MARKS}}})(?!`)[^`\n]*|(~{{3,{_MOST_MARKS}}})(?!~)[^\n]*)$",
    re.MULTILINE,
)
_BREAKS = ("\n\n", "\n", "。", "！", "？", ". ", "! ", "? ", "，", ", ", " ")
_EMPTY_SIGNS = (
    "\u2800\u3164\ufffc"  # a Braille cell without dots, a Korean filler, the place of an object
)
_JOINER = "\u200d"
_TONES = "".join(map(chr, range(0x1F3FB, 0x1F400)))  # of skin, behind the emoji they colour
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))  # two of them make a flag
_FLAGS = frozenset(_FLAG_LETTERS)
_LONGEST_CHARACTER = 40  # code points; a longer heap of accents is cut
# A break in the first third would leave a needlessly short part.
_EARLIEST = 1 / 3
# A longer info string is not worth repeating in every part.
_LONGEST_OPENING = 40  # UTF-16 units


def split_text(text: str, limit: int) -> list[str]:
    """Return parts of at most `limit` UTF-16 units, none of them blank."""
    assert limit >= 100, "a part must hold a fence and some text"
    parts = []
    opening = ""
    rest = text.strip("\n")
    while units(opening) + units(rest) > limit:
        room = limit - units(opening) - len("\n") - _MOST_MARKS
        head = rest[: _beside_fences(rest, cut(rest, room), opening=opening)]
        rest = rest[len(head) :].lstrip("\n")
        fence = _open_fence(opening + head)
        if not is_blank(head):
            parts.append(opening + head.rstrip("\n") + (f"\n{_marks(fence)}" if fence else ""))
        if fence and (closing := _closing_line(rest, fence)):
            fence = ""
            rest = rest[len(closing) :].lstrip("\n")
        opening = f"{fence}\n" if fence else ""
    return [*parts, opening + rest] if not is_blank(rest) else parts


def units(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)


def is_blank(text: str) -> bool:
    """Does it show nothing? Platforms refuse a text of spaces, zero-width ones included."""
    return all(
        character.isspace()
        or character in _EMPTY_SIGNS
        or unicodedata.category(character) in ("Cf", "Cc")
        for character in text
    )


def cut(text: str, room: int) -> int:
    """Return how many characters of `text` fit into `room` units and end at the best break."""
    end = _fitting(text, room)
    for mark in _BREAKS:
        at = text.rfind(mark, int(end * _EARLIEST), end)
        if at > 0:
            return at + len(mark)
    return _between_characters(text, end)


def _beside_fences(text: str, at: int, *, opening: str) -> int:
    """Move a cut that would fall into the line of a fence, or right behind one that opens, in front of it."""
    line = text.rfind("\n", 0, len(text[:at].rstrip("\n"))) + 1
    fence = _FENCE.match(text, line)
    if fence is None or line == 0:
        return at
    opens = not _open_fence(opening + text[:line])
    return line if opens or at < fence.end() else at


def _fitting(text: str, room: int) -> int:
    used = 0
    for index, character in enumerate(text[:room]):
        used += 2 if character > "\uffff" else 1
        if used > room:
            return max(index, 1)
    return max(min(len(text), room), 1)


def _between_characters(text: str, at: int) -> int:
    """Move a cut out of what a person sees as one character: a letter with its accent, an emoji of many parts, a flag."""
    earliest = max(at - _LONGEST_CHARACTER, 1)
    for place in range(at, earliest - 1, -1):
        if not _is_inside_character(text, place):
            return place
    return at


def _is_inside_character(text: str, at: int) -> bool:
    if at >= len(text):
        return False
    before, behind = text[at - 1], text[at]
    if before == _JOINER or behind == _JOINER or behind in _TONES:
        return True
    if behind in _FLAGS and before in _FLAGS:
        letters = len(text[:at]) - len(text[:at].rstrip(_FLAG_LETTERS))
        return letters % 2 == 1
    return unicodedata.category(behind) in ("Mn", "Me", "Mc")


def _open_fence(text: str) -> str:
    """Return the line that opened a fence still open at the end of `text`, or ""."""
    opened = ""
    for match in _FENCE.finditer(text):
        line = match[0].strip()
        if not opened:
            opened = line
        elif line.startswith(_marks(opened)) and line == _marks(line):
            opened = ""
    return opened if units(opened) <= _LONGEST_OPENING else _marks(opened)


def _closing_line(text: str, fence: str) -> str:
    """Return the first line of `text` if it does nothing but close `fence`, else ""."""
    match = _FENCE.match(text)
    if match is None:
        return ""
    line = match[0].strip()
    return match[0] if line.startswith(_marks(fence)) and line == _marks(line) else ""


def _marks(fence: str) -> str:
    match = re.match(r"`+|~+", fence)
    assert match is not None, "a fence begins with its marks"
    return match[0]
