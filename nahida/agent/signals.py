"""Words by which a model says that nothing is to be said. Pure."""

import json
import re

TOKENS = ("NO_REPLY", "HEARTBEAT_OK", "[SILENT]")

_TOKEN = re.compile("|".join(rf"(?<![\w]){re.escape(token)}(?![\w])" for token in TOKENS))
# What a model wraps a word in: markup, quotes, a code fence with its language.
_WRAPPING = re.compile(r"```\w*\n?|[*_`~\"'“”‘’「」。.!\s\u200b]+|<[^<>]{0,40}>")
_MARK = "\x01"


def spoken(text: str) -> str:
    """Return what of an answer is to be delivered: "" if it only says that nothing is."""
    if _is_silent(text):
        return ""
    return _TOKEN.sub("", text).strip() if _TOKEN.search(text) else text.strip()


def showable(text: str) -> str:
    """Return what of a growing answer may be shown: held back while it could still become a signal."""
    if _could_become_silent(text):
        return ""
    shown = _TOKEN.sub("", text)
    for token in TOKENS:
        for length in range(min(len(token), len(shown)), 0, -1):
            if shown.endswith(token[:length]):
                return shown[:-length]
    return shown


def _is_silent(text: str) -> bool:
    if not _TOKEN.search(text):
        return False
    marked = _TOKEN.sub(_MARK, _out_of_envelope(text))
    return _WRAPPING.sub("", marked).replace(_MARK, "") == ""


def _out_of_envelope(text: str) -> str:
    """Return the one text of a JSON envelope such as {"reply": "NO_REPLY"}; other text unchanged."""
    bare = re.sub(r"^```\w*|```$", "", text.strip()).strip()
    try:
        value = json.loads(bare)
    except ValueError:
        return text
    while isinstance(value, dict | list) and len(value) == 1:
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return value if isinstance(value, str) else text


def _could_become_silent(text: str) -> bool:
    bare = text.strip()
    if bare.startswith(("{", "```")) and len(bare) < 80:
        return True
    # The wrapping must not eat the token's own marks.
    core = _WRAPPING.sub("", bare)
    return any(re.sub(r"_", "", token).startswith(core) for token in TOKENS) or _is_silent(text)
