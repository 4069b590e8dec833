"""A language model's Markdown as plain text, and what of it is bold, code or a link.

The library does the conversion; here is what it gets wrong for us. Pure.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from telegramify_markdown import MessageEntity, RenderConfig, convert

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


@dataclass(frozen=True, slots=True)
class Span:
    """What an entity covers, in characters of the text."""

    start: int
    end: int
    type: str
    url: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    text: str
    spans: tuple[Span, ...] = ()


def render(text: str) -> Rendered:
    """Convert a Markdown text. It may raise anything: the parser is native code."""
    converted, entities = convert(_prepared(text), config=_config())
    return _restored(_in_characters(converted, entities))


def inserted(text: str, spans: Sequence[Span], at: int, addition: str) -> tuple[str, list[Span]]:
    """Write `addition` into a text; what stood there before it still covers what it did."""

    def moved(place: int, *, is_end: bool) -> int:
        return place + len(addition) if place > at or (place == at and not is_end) else place

    shifted = [
        replace(span, start=moved(span.start, is_end=False), end=moved(span.end, is_end=True))
        for span in spans
    ]
    return text[:at] + addition + text[at:], shifted


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


def _in_characters(text: str, entities: Iterable[MessageEntity]) -> Rendered:
    place = {0: 0}
    at = 0
    for index, character in enumerate(text):
        at += 2 if character > "\uffff" else 1
        place[at] = index + 1
    spans = (
        Span(
            place[entity.offset],
            place[entity.offset + entity.length],
            entity.type,
            entity.url,
            entity.language,
        )
        for entity in entities
    )
    return Rendered(text, tuple(sorted(spans, key=lambda span: (span.start, -span.end))))


def _restored(rendered: Rendered) -> Rendered:
    """Take our own characters out again."""
    kept = [0]
    for character in rendered.text:
        kept.append(kept[-1] + (character != _NOTHING))
    spans = (
        replace(span, start=kept[span.start], end=kept[span.end], url=_typed(span.url))
        for span in rendered.spans
    )
    return Rendered(
        _typed(rendered.text) or "", tuple(span for span in spans if span.start < span.end)
    )


def _typed(text: str | None) -> str | None:
    return text and text.replace(_NOTHING, "").replace(_LESS_THAN, "<").replace(_STAR, "*")
