"""What Telegram shows of what is marked in a text, in the form that it asks for. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from channels_app.markdown.marked import BLOCK_OF_CODE, CODE, LINK, QUOTE, Marked, Span, in_order


def tidied(marked: Marked) -> Marked:
    """Bring the spans to the form that Telegram asks for.

    Nothing is marked twice with the same type, so that quotes do not nest either; nothing is bold inside of code; a link whose label
    is code stays a link; none is blank or begins or ends in white space, apart from blocks of code.
    """
    links = marked.within(LINK)
    spans = [
        span
        for span in marked.spans
        if span.type != "code" or not any(links[span.start : span.end])
    ]
    code = Marked(marked.text, tuple(spans)).within(*CODE)
    cut = (
        piece
        for span in spans
        for piece in ([span] if span.type in (*CODE, QUOTE) else _gaps(span, code))
    )
    trimmed = in_order(_trimmed(span, marked.text) for span in cut)
    return Marked(marked.text, tuple(_each_once(trimmed)))


def _gaps(span: Span, mask: bytearray) -> Iterator[Span]:
    """Yield the pieces of a span that are not masked."""
    start = mask.find(0, span.start, span.end)
    while start >= 0:
        end = mask.find(1, start, span.end)
        end = span.end if end < 0 else end
        yield replace(span, start=start, end=end)
        start = mask.find(0, end, span.end)


def _trimmed(span: Span, text: str) -> Span:
    covered = text[span.start : span.end]
    end = span.start + len(covered.rstrip())
    is_block = span.type == BLOCK_OF_CODE
    skipped = 0 if is_block else len(covered) - len(covered.lstrip())
    return replace(span, start=min(span.start + skipped, end), end=end)


def _each_once(spans: Iterable[Span]) -> Iterator[Span]:
    marked_to: dict[str, int] = {}
    for span in spans:
        done = marked_to.get(span.type, 0)
        if span.end > done:
            marked_to[span.type] = span.end
            yield replace(span, start=max(span.start, done))


def on_wire(marked: Marked) -> list[dict[str, Any]]:
    """Return the entities of a text as the Bot API has them."""
    units = [0]
    for character in marked.text:
        units.append(units[-1] + (2 if character > "\uffff" else 1))
    return [
        {
            "type": span.type,
            "offset": units[span.start],
            "length": units[span.end] - units[span.start],
            **({"url": span.url} if span.url else {}),
            **({"language": span.language} if span.language else {}),
        }
        for span in marked.spans
    ]
