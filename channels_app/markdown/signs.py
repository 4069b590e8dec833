"""Signs that stand for parts of a Markdown text while the library reads it, so that it leaves them alone. Pure.

Unicode gives these code points to nobody and never will, so no text has them. What stood there comes back afterwards as it was typed,
in code as elsewhere: nothing here needs to know where code begins.
"""

import string

NOTHING = "\U0001fffe"
LINE = "\U0005fffe"  # a line begins or ends here
FORMULA = "\U0001ffff"  # the formula is protected and follows, with another of these behind it
FORMULA_END = "\U0002fffe"
LINK = "\U0002ffff"  # of [label](url), where the library would lose the url
IMAGE = "\U0003fffe"  # of ![label](url)
LINK_URL = "\U0003ffff"
LINK_END = "\U0004fffe"

_TYPED = {
    NOTHING: "",
    LINE: "",
    FORMULA: "",
    FORMULA_END: "",
    LINK: "[",
    IMAGE: "![",
    LINK_URL: "](",
    LINK_END: ")",
}
_PROTECTED = {character: chr(0xFDD0 + n) for n, character in enumerate(string.punctuation)}
_ALL = _TYPED | {sign: character for character, sign in _PROTECTED.items()}

SIGNS = frozenset(_ALL)
_PROTECT = str.maketrans(_PROTECTED)
_RESTORE = str.maketrans(_ALL)
_REMOVE = str.maketrans(dict.fromkeys(_ALL, ""))


def without_signs(text: str) -> str:
    return text.translate(_REMOVE)


def protected(text: str) -> str:
    """Return text in which nothing is Markdown."""
    return text.translate(_PROTECT)


def typed(text: str) -> str:
    """Return text as it was before signs stood in it."""
    return text.translate(_RESTORE)
