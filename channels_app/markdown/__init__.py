"""A language model's Markdown as plain text, and what of it is bold, code or a link. Pure.

prepared -> converted by the library -> tables, formulas, links -> signs taken out
"""

import re
from collections.abc import Iterable, Iterator

from telegramify_markdown import MessageEntity, RenderConfig
from telegramify_markdown.converter import convert_with_segments

from channels_app.markdown import formulas, links, tables
from channels_app.markdown.marked import (
    BLOCK_OF_CODE,
    ORDER,
    TABLE,
    Edit,
    Marked,
    Span,
    edited,
    in_order,
)
from channels_app.markdown.preparing import prepared
from channels_app.markdown.signs import LINE, SIGNS, typed

_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")
_LONGEST_BESIDES = 100_000  # characters
_MOST_GROWTH = 30


def render(text: str) -> Marked:
    """Return a text as it will be seen. It may raise anything: the parser is not ours."""
    marked = _with_tables(_apart(_converted(prepared(text))))
    return _typed(links.restored(formulas.shown_in(marked)))


def _converted(text: str) -> Marked:
    converted, entities, segments = convert_with_segments(
        text, latex_escape=False, config=_config()
    )
    if len(converted) > _LONGEST_BESIDES + _MOST_GROWTH * len(text):
        raise ValueError("lists in lists by the thousand are nothing but indentation")
    code = {segment.utf16_start for segment in segments}
    return Marked(converted, in_order(_spans(entities, _places(converted), code=code)))


def _config() -> RenderConfig:
    config = RenderConfig.isolated()
    config.cite_expandable = False
    symbol = config.markdown_symbol
    symbol.heading_level_1 = symbol.heading_level_2 = ""
    symbol.heading_level_3 = symbol.heading_level_4 = ""
    symbol.image = f"{links.PICTURE} "
    symbol.task_completed, symbol.task_uncompleted = "☑", "☐"
    symbol.unordered_list_item = "•"
    symbol.horizontal_rule = f"{LINE}———{LINE}"
    return config


def _places(text: str) -> dict[int, int]:
    """Return at which character each UTF-16 unit is that begins one."""
    places, unit = {}, 0
    for index, character in enumerate(text):
        places[unit] = index
        unit += 2 if character > "\uffff" else 1
    return places | {unit: len(text)}


def _spans(
    entities: Iterable[MessageEntity], places: dict[int, int], *, code: set[int]
) -> Iterator[Span]:
    """Say what is marked, and which blocks are none of `code` but tables."""
    for entity in entities:
        if entity.type in ORDER:  # others are headings, underlined beside being bold
            is_table = entity.type == BLOCK_OF_CODE and entity.offset not in code
            yield Span(
                places[entity.offset],
                places[entity.offset + entity.length],
                TABLE if is_table else entity.type,
                typed(entity.url or ""),
                _language(entity.language),
            )


def _language(info: str | None) -> str:
    """Of `python title="x.py"`, the first word."""
    word = _LANGUAGE.match(typed(info or ""))
    return word[0] if word else ""


def _apart(text: Marked) -> Marked:
    """Put blocks on lines of their own: in a list the library lets the next paragraph follow at once."""
    blocks = [span for span in text.spans if span.type in (BLOCK_OF_CODE, TABLE)]
    borders = sorted({place for span in blocks for place in (span.start, span.end)})
    return edited(
        text,
        [
            Edit(place, place, Marked("\n"))
            for place in borders
            if 0 < place < len(text.text) and "\n" not in text.text[place - 1 : place + 1]
        ],
    )


def _with_tables(text: Marked) -> Marked:
    found = [span for span in text.spans if span.type == TABLE]
    edits = [
        Edit(span.start, span.end, tables.laid_out(text.text[span.start : span.end]))
        for span in found
    ]
    others = tuple(span for span in text.spans if span.type != TABLE)
    return edited(Marked(text.text, others), edits)


def _typed(text: Marked) -> Marked:
    edits = []
    for place, character in enumerate(text.text):
        if character in SIGNS:
            breaks = character == LINE and _is_in_a_line(text.text, place)
            edits.append(Edit(place, place + 1, Marked("\n" if breaks else typed(character))))
    return edited(text, edits)


def _is_in_a_line(text: str, place: int) -> bool:
    before, behind = text[max(place - 1, 0) : place], text[place + 1 : place + 2]
    return not any(beside in ("", LINE) or beside.isspace() for beside in (before, behind))
