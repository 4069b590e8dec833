"""Words by which a model says that nothing is to be said. Pure."""

import json
import re

from channels_app.splitting import is_blank

NO_REPLY = "NO_REPLY"
TOKENS = (NO_REPLY, "HEARTBEAT_OK", "[SILENT]")

_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_])(?:NO_REPLY|HEARTBEAT_OK)(?![A-Za-z0-9_])|\[SILENT\]", re.ASCII
)
# What a model wraps a word in: a code fence with its language, a tag, markup, quotes, an end mark.
_WRAPPING = r"(?:```\w*|<[^<>]{0,40}>|[_*`~\"'“”‘’「」()（）。.!！\s\u200b])"
_ONLY_TOKENS = re.compile(
    rf"{_WRAPPING}*(?:(?:NO_REPLY|HEARTBEAT_OK|\[SILENT\]){_WRAPPING}*)+", re.ASCII
)
_LONGEST_SIGNAL = 400  # characters, with everything that may be wrapped around it


def spoken(text: str) -> str:
    """Return what of an answer is to be delivered: "" if it only says that nothing is."""
    bare = "" if is_blank(text) else text.strip()
    if len(bare) <= _LONGEST_SIGNAL and _ONLY_TOKENS.fullmatch(_out_of_envelope(bare)):
        return ""
    if not _TOKEN.search(bare):
        return bare
    return re.sub(r"(?<=\S) {2,}(?=\S)", " ", _TOKEN.sub(" ", bare)).strip()


def showable(text: str) -> str:
    """Return what of a growing answer may be shown: held back while it could still be a signal."""
    bare = text.strip()
    if bare.startswith(("{", "```")) and len(bare) < 80:
        return ""  # may become an envelope
    core = re.sub(rf"^{_WRAPPING}+", "", bare)
    if any(token.startswith(core) for token in TOKENS):
        return ""
    shown = spoken(text)
    return shown[: len(shown) - _length_of_beginning(shown)]


def _length_of_beginning(text: str) -> int:
    """Return how many of the last characters could be the beginning of a token."""
    beginnings = (token[:length] for token in TOKENS for length in range(len(token) - 1, 0, -1))
    return max((len(start) for start in beginnings if text.endswith(start)), default=0)


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
