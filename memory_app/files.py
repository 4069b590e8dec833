"""Files of turns: the line that stands for one where it cannot be shown, and the end of those that no turn names."""

import re
from datetime import datetime, timedelta

from channels_app import media, messages
from memory_app import models

# Longer than a delivery may wait (24 h), and long enough to ask for the rest of one that did not arrive.
UNNAMED_KEPT_FOR = timedelta(days=7)
TEXT_LENGTH = 300  # characters

# What would end the line, pose as an envelope, or as the system's own word about the file.
_MARKS = re.compile(r"[\[\]|;\s\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def placeholder(file: messages.Attachment | models.Attachment, note: str = "") -> str:
    """Return one line, such as `[file report.pdf, 150 kB; not shown]`. What stands behind the ; is the system's word."""
    size = "" if file.size is None else media.spoken_size(file.size)
    facts = ", ".join(filter(None, (_plain(file.name), _plain(file.text), size)))
    shown = f"{_plain(file.kind)} {facts}".strip()
    return f"[{shown}; {_plain(note)}]" if note else f"[{shown}]"


def with_placeholders(text: str, files: tuple[messages.Attachment, ...]) -> str:
    """Return what is stored of a message with files: the model's history and the pages show no more of them."""
    return "\n".join(filter(None, (text, *map(placeholder, files))))


def forget_unnamed(now: datetime) -> None:
    """Delete old files that no turn names: what a kill left, and what was sent without being recorded.

    Each minute has its share of the names, so that all are looked at in some four hours.
    """
    share = f"{int(now.timestamp() // 60) % 256:02x}"
    old = set(media.older_than(now - UNNAMED_KEPT_FOR, prefix=share))
    named = models.Attachment.objects.filter(file__in=old).values_list("file", flat=True)
    for name in old - set(named):
        media.remove(name)


def _plain(text: str) -> str:
    return _MARKS.sub(" ", text).strip()[:TEXT_LENGTH]
