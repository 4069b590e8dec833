"""A text and what is marked in it: bold, code, links. Places are counted in characters. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

BLOCK_OF_CODE = "pre"
CODE = (BLOCK_OF_CODE, "code")
LINK = "text_link"
QUOTE = "blockquote"
TABLE = "table"  # until it is laid out
ORDER = (QUOTE, LINK, "bold", "italic", "strikethrough", *CODE, TABLE)


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int
    type: str
    url: str = ""
    language: str = ""

    def moved(self, by: int) -> "Span":
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True, slots=True)
class Marked:
    """`spans` are in order of their starts, the longer ones first."""

    text: str
    spans: tuple[Span, ...] = ()

    def __add__(self, other: "Marked") -> "Marked":
        behind = tuple(span.moved(len(self.text)) for span in other.spans)
        return Marked(self.text + other.text, self.spans + behind)

    def __getitem__(self, piece: slice) -> "Marked":
        """Cut a piece out; what is marked across its borders is marked up to them."""
        start, end, _ = piece.indices(len(self.text))
        spans = (
            replace(span, start=max(span.start, start) - start, end=min(span.end, end) - start)
            for span in self.spans
            if span.start < end and span.end > start
        )
        return Marked(self.text[start:end], tuple(spans))

    def within(self, *types: str) -> bytearray:
        """Return for each character whether it lies in a span of one of these types, as 1 or 0."""
        mask = bytearray(len(self.text))
        for span in self.spans:
            if span.type in types:
                mask[span.start : span.end] = b"\x01" * (span.end - span.start)
        return mask


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `new` where a text goes from `start` to `end`."""

    start: int
    end: int
    new: Marked


def edited(marked: Marked, edits: Sequence[Edit]) -> Marked:
    """Apply edits, which are in order and do not overlap. What is marked around one of them is marked around its new text too."""
    pieces, moves = [], [0]
    at = 0
    for edit in edits:
        pieces += [marked.text[at : edit.start], edit.new.text]
        moves.append(moves[-1] + len(edit.new.text) - (edit.end - edit.start))
        at = edit.end
    pieces.append(marked.text[at:])
    starts = [edit.start for edit in edits]

    def place(old: int, *, is_end: bool) -> int:
        """Where a border of a span is now. One that fell into an edit goes to the edit's own border."""
        index = bisect_right(starts, old - is_end) - 1
        if index >= 0 and old < edits[index].end + is_end:
            edit = edits[index]
            edge = len(edit.new.text) if is_end else 0
            return edit.start + moves[index] + edge
        return old + moves[index + 1]

    kept = (
        replace(span, start=place(span.start, is_end=False), end=place(span.end, is_end=True))
        for span in marked.spans
    )
    new = (
        span.moved(edit.start + move)
        for edit, move in zip(edits, moves, strict=False)
        for span in edit.new.spans
    )
    return Marked("".join(pieces), in_order([*kept, *new]))


def in_order(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Outer spans before inner ones, also of those that cover the same."""
    filled = (span for span in spans if span.start < span.end)
    return tuple(sorted(filled, key=lambda span: (span.start, -span.end, ORDER.index(span.type))))
