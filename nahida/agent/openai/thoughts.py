"""What a model says, apart from what it thinks between <think> tags."""

from __future__ import annotations

import re

TAG = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
TAGS = ("<think>", "</think>", "<thinking>", "</thinking>")


class Visible:
    """Splits a model's text, as it grows, into what may be shown and its thoughts.

    The opening tag may be missing, because the server's template wrote it. Tags in code are text.
    """

    def __init__(self) -> None:
        self.text = ""
        self.thoughts = ""
        self._opening = ""  # the tag of the block we are in
        self._block = ""
        self._tail = ""  # held back: it may become a tag, or half a character

    def feed(self, piece: str) -> None:
        data = self._tail + piece
        keep = _held_back(data)
        self._tail, data = data[keep:], clean(data[:keep])
        while match := TAG.search(data):
            self._put(data[: match.start()])
            self._turn(match[0])
            data = data[match.end() :]
        self._put(data)

    def end(self, *, whole: bool) -> None:
        """Take what was held back; `whole` if the model came to its own end."""
        self._put(clean(self._tail))
        self._tail = ""
        if self._opening and whole and self.text.strip():
            self.text += self._opening + self._block  # it was speaking of the tag
        else:
            self.thoughts += self._block
        self._opening = self._block = ""

    def _put(self, data: str) -> None:
        if self._opening:
            self._block += data
        else:
            self.text = self.text + data if self.text else data.lstrip()

    def _turn(self, tag: str) -> None:
        closing = tag.startswith("</")
        if self._opening:
            if closing:
                self.thoughts += self._block
                self._opening = self._block = ""
        elif _in_code(self.text):
            self.text += tag
        elif not closing:
            self._opening = tag
        elif not self.thoughts:
            self.thoughts, self.text = self.text, ""


def _held_back(data: str) -> int:
    """Return the place from which `data` may be the beginning of something."""
    if data and "\ud800" <= data[-1] <= "\udbff":  # a pair cut in two
        return len(data) - 1
    start = data.rfind("<")
    begun = start >= 0 and any(tag.startswith(data[start:].lower()) for tag in TAGS)
    return start if begun else len(data)


def _in_code(text: str) -> bool:
    if text.count("```") % 2:
        return True
    line = text[text.rfind("\n") + 1 :].replace("```", "")
    return line.count("`") % 2 == 1


def clean(text: str) -> str:
    """Replace what no database takes: lone surrogates and NUL."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "\ufffd")
