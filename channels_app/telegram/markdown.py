"""A language model's Markdown as Telegram shows it: plain text, and entities that say what is bold, code or a link.

Here is which of it Telegram takes, and the cutting into messages. Pure. Lengths and offsets on the wire are UTF-16 units.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from telegramify_markdown import MessageEntity

from channels_app.markdown import Rendered, Span, inserted, render
from channels_app.messages import OutboundPart
from channels_app.splitting import cut, is_blank, split_text, units

logger = logging.getLogger(__name__)

LIMIT = 4096  # units of one message
MOST_ENTITIES = 100  # of one message; the server drops the rest
# The server refuses a message whose text and links are together longer than about 9,500.
MOST_IN_LINKS = 8000

_QUOTES = ("blockquote", "expandable_blockquote")


def split(text: str) -> list[OutboundPart]:
    """Return the messages that a Markdown text becomes, in order, none of them blank."""
    try:
        rendered = _linked(render(text))
    except Exception:  # the parser is native code: an answer is worth more than its looks
        logger.exception("a text is sent as it was written")
        return [OutboundPart(part) for part in split_text(text, LIMIT)]
    parts = (_trimmed(part) for part in _cut_up(rendered))
    return [
        OutboundPart(part.text, markup=_entities(part)) for part in parts if not is_blank(part.text)
    ]


def _linked(rendered: Rendered) -> Rendered:
    """Keep the links that Telegram takes, and write the others out where a person can copy them."""
    text, spans = rendered.text, list(rendered.spans)
    for span in reversed(rendered.spans):
        if span.url is None or _is_link(span.url):
            continue
        spans.remove(span)
        shown = span.url.removeprefix("mailto:").removeprefix("tel:")
        if shown != text[span.start : span.end] and _is_worth_showing(span.url):
            text, spans = inserted(text, spans, span.end, f" ({shown})")
    return Rendered(text, tuple(_without_nested_quotes(spans)))


def _is_link(url: str) -> bool:
    """The server refuses a whole message for a link to a host without a dot, and for other schemes."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    is_web = parts.scheme in ("http", "https") and "." in host.strip(".") and port != 0
    return is_web and not re.search(r"[\s<>\"\\^`{|}]", url)


def _is_worth_showing(url: str) -> bool:
    return url.partition(":")[0] in ("http", "https", "mailto", "tel", "ftp")


def _without_nested_quotes(spans: Iterable[Span]) -> Iterator[Span]:
    """Quotes do not nest: the outermost one counts."""
    quoted_to = 0
    for span in spans:
        if span.type in _QUOTES:
            if span.end <= quoted_to:
                continue
            quoted_to = span.end
        yield span


def _cut_up(rendered: Rendered) -> Iterator[Rendered]:
    while units(rendered.text) > LIMIT:
        at = _end_of_part(rendered)
        yield _clipped(rendered, 0, at)
        rendered = _clipped(rendered, at, len(rendered.text))
    yield rendered


def _end_of_part(rendered: Rendered) -> int:
    """Return where the first message ends: in front of a block of code that fits into the next one, else at the best break."""
    at = cut(rendered.text, LIMIT)
    for span in rendered.spans:
        if span.type != "pre" or not span.start < at < span.end:
            continue
        fits = units(rendered.text[span.start : span.end]) <= LIMIT
        if fits and not is_blank(rendered.text[: span.start]):
            return span.start
        line = rendered.text.rfind("\n", span.start, at)
        return line + 1 if line > span.start else at
    return at


def _clipped(rendered: Rendered, start: int, end: int) -> Rendered:
    spans = (
        replace(span, start=max(span.start, start) - start, end=min(span.end, end) - start)
        for span in rendered.spans
        if span.start < end and span.end > start
    )
    return Rendered(rendered.text[start:end], tuple(spans))


def _trimmed(part: Rendered) -> Rendered:
    """The server trims too, and would count the entities from there."""
    start = len(part.text) - len(part.text.lstrip())
    end = max(len(part.text.rstrip()), start)
    return _clipped(part, start, end)


def _entities(part: Rendered) -> list[dict[str, Any]]:
    offsets = [0]
    for character in part.text:
        offsets.append(offsets[-1] + (2 if character > "\uffff" else 1))
    return [
        MessageEntity(
            span.type,
            offsets[span.start],
            offsets[span.end] - offsets[span.start],
            url=span.url,
            language=span.language or None,
        ).to_dict()
        for span in _bearable(part)
    ][:MOST_ENTITIES]


def _bearable(part: Rendered) -> Iterator[Span]:
    """Leave out what the server would refuse: blank entities, and links beyond what one message may hold."""
    room = MOST_IN_LINKS - units(part.text)
    for span in part.spans:
        room -= len(span.url or "")
        if room >= 0 or span.url is None:
            if not is_blank(part.text[span.start : span.end]):
                yield span
        else:
            room += len(span.url)
