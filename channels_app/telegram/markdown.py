"""A language model's Markdown as Telegram shows it: plain text, and entities that say what is bold, code or a link.

The library does the conversion; here is what it gets wrong for us, and the cutting into messages. Pure. Lengths and offsets on the
wire are UTF-16 units.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from telegramify_markdown import MessageEntity, RenderConfig, convert

from channels_app.messages import OutboundPart
from channels_app.splitting import cut, is_blank, split_text, units

logger = logging.getLogger(__name__)

LIMIT = 4096  # units of one message
MOST_ENTITIES = 100  # of one message; the server drops the rest
# The server refuses a message whose text and links are together longer than about 9,500.
MOST_IN_LINKS = 8000

# Characters that Unicode gives to nobody, so no text has them: they go in before the conversion and come out after it.
_LESS_THAN = "\ufdd0"
_NOTHING = "\ufdd1"
_STAR = "\ufdd2"
_OURS = str.maketrans("", "", _LESS_THAN + _NOTHING + _STAR)

_NO_AUTOLINK = re.compile(r"<(?!https?://[^\s<>]+>)")
_STAR_IN_A_WORD = re.compile(r"(?<=[0-9A-Za-z_)\]])\*(?=[0-9A-Za-z_(\[])")
_WIDE_MARKS = "　-〿︐-﹏！-／：-＠［-｀｛-･‐-‧«»·"
_BEFORE_MARK = re.compile(rf"(?<=[^\s*])(\*{{1,3}})(?=[{_WIDE_MARKS}])")
_AFTER_MARK = re.compile(rf"(?<=[{_WIDE_MARKS}])(\*{{1,3}})(?=[^\s*])")

_CODE = ("pre", "code")
_QUOTES = ("blockquote", "expandable_blockquote")


@dataclass(frozen=True, slots=True)
class _Span:
    """What an entity covers, in characters of the text."""

    start: int
    end: int
    type: str
    url: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    spans: tuple[_Span, ...] = ()


def split(text: str) -> list[OutboundPart]:
    """Return the messages that a Markdown text becomes, in order, none of them blank."""
    try:
        rendered = _rendered(text)
    except Exception:  # the parser is native code: an answer is worth more than its looks
        logger.exception("a text is sent as it was written")
        return [OutboundPart(part) for part in split_text(text, LIMIT)]
    parts = (_trimmed(part) for part in _cut_up(rendered))
    return [
        OutboundPart(part.text, markup=_entities(part)) for part in parts if not is_blank(part.text)
    ]


def _rendered(text: str) -> _Text:
    converted, entities = convert(_prepared(text), config=_config())
    return _linked(_restored(_in_characters(converted, entities)))


def _prepared(text: str) -> str:
    text = text.translate(_OURS)
    text = _NO_AUTOLINK.sub(_LESS_THAN, text)  # the library drops what looks like HTML
    text = _STAR_IN_A_WORD.sub(_STAR, text)  # 2*3*4, a_b*c
    # "Or" in code that nobody marked as code, no spoiler.
    text = text.replace("||", f"|{_NOTHING}|")
    # In Chinese no blank stands between bold and what follows, and the rules of Markdown want one.
    text = _BEFORE_MARK.sub(rf"\1{_NOTHING}", text)
    return _AFTER_MARK.sub(rf"{_NOTHING}\1", text)


def _config() -> RenderConfig:
    config = RenderConfig.isolated()
    symbol = config.markdown_symbol
    symbol.heading_level_1 = symbol.heading_level_2 = ""
    symbol.heading_level_3 = symbol.heading_level_4 = ""
    symbol.task_completed, symbol.task_uncompleted = "☑", "☐"
    symbol.unordered_list_item = "•"
    symbol.horizontal_rule = "———"
    return config


def _in_characters(text: str, entities: Iterable[MessageEntity]) -> _Text:
    place = {0: 0}
    at = 0
    for index, character in enumerate(text):
        at += 2 if character > "\uffff" else 1
        place[at] = index + 1
    spans = (
        _Span(
            place[entity.offset],
            place[entity.offset + entity.length],
            entity.type,
            entity.url,
            entity.language,
        )
        for entity in entities
    )
    return _Text(text, tuple(sorted(spans, key=lambda span: (span.start, -span.end))))


def _restored(rendered: _Text) -> _Text:
    """Take our own characters out again."""
    kept = [0]
    for character in rendered.text:
        kept.append(kept[-1] + (character != _NOTHING))
    spans = (
        replace(span, start=kept[span.start], end=kept[span.end], url=_typed(span.url))
        for span in rendered.spans
    )
    return _Text(
        _typed(rendered.text) or "", tuple(span for span in spans if span.start < span.end)
    )


def _typed(text: str | None) -> str | None:
    return text and text.replace(_NOTHING, "").replace(_LESS_THAN, "<").replace(_STAR, "*")


def _linked(rendered: _Text) -> _Text:
    """Keep the links that Telegram takes, and write the others out where a person can copy them."""
    text, spans = rendered.text, list(rendered.spans)
    for span in reversed(rendered.spans):
        if span.url is None or _is_link(span.url):
            continue
        spans.remove(span)
        shown = span.url.removeprefix("mailto:").removeprefix("tel:")
        if shown != text[span.start : span.end] and _is_worth_showing(span.url):
            text, spans = _inserted(text, spans, span.end, f" ({shown})")
    return _Text(text, tuple(_without_nested_quotes(spans)))


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


def _inserted(text: str, spans: Sequence[_Span], at: int, addition: str) -> tuple[str, list[_Span]]:
    def moved(place: int, *, is_end: bool) -> int:
        return place + len(addition) if place > at or (place == at and not is_end) else place

    shifted = [
        replace(span, start=moved(span.start, is_end=False), end=moved(span.end, is_end=True))
        for span in spans
    ]
    return text[:at] + addition + text[at:], shifted


def _without_nested_quotes(spans: Iterable[_Span]) -> Iterator[_Span]:
    """Quotes do not nest: the outermost one counts."""
    quoted_to = 0
    for span in spans:
        if span.type in _QUOTES:
            if span.end <= quoted_to:
                continue
            quoted_to = span.end
        yield span


def _cut_up(rendered: _Text) -> Iterator[_Text]:
    while units(rendered.text) > LIMIT:
        at = _end_of_part(rendered)
        yield _clipped(rendered, 0, at)
        rendered = _clipped(rendered, at, len(rendered.text))
    yield rendered


def _end_of_part(rendered: _Text) -> int:
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


def _clipped(rendered: _Text, start: int, end: int) -> _Text:
    spans = (
        replace(span, start=max(span.start, start) - start, end=min(span.end, end) - start)
        for span in rendered.spans
        if span.start < end and span.end > start
    )
    return _Text(rendered.text[start:end], tuple(spans))


def _trimmed(part: _Text) -> _Text:
    """The server trims too, and would count the entities from there."""
    start = len(part.text) - len(part.text.lstrip())
    end = max(len(part.text.rstrip()), start)
    return _clipped(part, start, end)


def _entities(part: _Text) -> list[dict[str, Any]]:
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


def _bearable(part: _Text) -> Iterator[_Span]:
    """Leave out what the server would refuse: blank entities, and links beyond what one message may hold."""
    room = MOST_IN_LINKS - units(part.text)
    for span in part.spans:
        room -= len(span.url or "")
        if room >= 0 or span.url is None:
            if not is_blank(part.text[span.start : span.end]):
                yield span
        else:
            room += len(span.url)
