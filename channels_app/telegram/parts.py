"""Cut a marked text into messages where a person would cut it. Pure."""

from collections.abc import Iterator

from channels_app.markdown.marked import BLOCK_OF_CODE, Marked, Span
from channels_app.splitting import cut, is_blank, units

LIMIT = 4096  # UTF-16 units of one message
MOST_SPANS = 100  # of one message: the server drops the rest
# The server refuses a message whose text and links are together longer than about 9,500.
MOST_WITH_LINKS = 8000  # bytes of links, and units
_LONGEST_LEAD = 120  # characters of a line that may go with what it announces
_MOST_LEADS = 2  # a heading, and a line that introduces what follows


def messages(text: Marked) -> Iterator[Marked]:
    """Yield what one message each carries, none of them blank."""
    while text.text:
        end = _end_of_first(text)
        message = _trimmed(text[:end])
        if not is_blank(message.text):
            yield message
        text = text[end:]


def _end_of_first(text: Marked) -> int:
    """Return where the first message ends: not in a block of code if that fits into the next one."""
    most = _fitting(text)
    if most == len(text.text):
        return most
    at = cut(text.text, units(text.text[:most]))
    block = next((span for span in text.spans if _is_cut(span, at)), None)
    if block is None:
        return _before_leads(text, at)
    fits = units(text.text[block.start : block.end]) <= LIMIT
    if fits and not is_blank(text.text[: block.start]):
        return _before_leads(text, block.start)
    return at


def _is_cut(span: Span, at: int) -> bool:
    return span.type == BLOCK_OF_CODE and span.start < at < span.end


def _fitting(text: Marked) -> int:
    """Return how many characters fit into one message, with what is marked in them."""
    most = _fitting_units(text.text, LIMIT)
    if len(text.spans) > MOST_SPANS:
        most = min(most, text.spans[MOST_SPANS].start or most)
    links = 0
    for span in text.spans:
        if span.url and span.start < most:
            links += len(span.url.encode())
            if links + units(text.text[: min(span.end, most)]) > MOST_WITH_LINKS:
                return span.start or most
    return min(most, _fitting_units(text.text, MOST_WITH_LINKS - links))


def _fitting_units(text: str, room: int) -> int:
    used = 0
    for index, character in enumerate(text):
        used += 2 if character > "\uffff" else 1
        if used > room:
            return index
    return len(text)


def _before_leads(text: Marked, at: int) -> int:
    """Move a cut in front of a heading, or a short line that ends in a colon: they go with what follows them."""
    for _ in range(_MOST_LEADS):
        above = text.text[:at].rstrip()
        line = above.rfind("\n") + 1
        is_whole_line = "\n" in text.text[len(above) : at] + text.text[at : at + 1]
        if line == 0 or not is_whole_line or not _leads(text, line, len(above)):
            break
        at = line
    return at


def _leads(text: Marked, start: int, end: int) -> bool:
    is_short = end - start <= _LONGEST_LEAD
    is_heading = any(
        span.type == "bold" and span.start <= start and span.end >= end for span in text.spans
    )
    return is_short and (is_heading or text.text[:end].endswith((":", "：")))


def _trimmed(message: Marked) -> Marked:
    """Cut white space off as the server does, which would count from there; code keeps its first indentation."""
    lines = len(message.text) - len(message.text.lstrip("\n"))
    skipped = len(message.text) - len(message.text.lstrip())
    starts_in_code = any(
        span.type == BLOCK_OF_CODE and span.start <= skipped < span.end for span in message.spans
    )
    return message[lines if starts_in_code else skipped : len(message.text.rstrip())]
