"""Text files by their bytes. Pure."""

import codecs
import re

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What text does not hold; a form feed and an escape sequence of a terminal it may.
_BINARY = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
BYTES_A_CHARACTER = 4  # at most
_NO_TEXT = (b"%PDF-", b"{\\rtf")  # readable, and still nothing to read
_TEXT_ENDINGS = (".txt", ".md", ".csv", ".tsv", ".log", ".json", ".xml", ".html", ".srt", ".ini")


def text_of(content: bytes, *, name: str, mime: str, limit: int) -> str | None:
    """Return the text of a file, cut to one character more than `limit`; None if it is none.

    UTF-8, or UTF-16 with its mark. An older Chinese encoding looks like much else, so it is tried only where name or type say text.
    """
    head = content[: (limit + 1) * BYTES_A_CHARACTER]
    if head.startswith(_NO_TEXT):
        return None
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return _decoded(head[len(mark) :], encoding, limit=limit)
    says_text = mime.startswith("text/") or name.lower().endswith(_TEXT_ENDINGS)
    text = _decoded(head, "utf-8", limit=limit)
    if text is None and says_text:
        text = _decoded(head, "gb18030", limit=limit)
    return text


def _decoded(head: bytes, encoding: str, *, limit: int) -> str | None:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return None
    return None if _BINARY.search(text) else text[: limit + 1]
