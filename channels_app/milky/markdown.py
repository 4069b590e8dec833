"""A language model's Markdown as QQ shows it, which is letter by letter: no marks, links written out. Pure.

The library does the conversion; here is what it gets wrong for us.
"""

import logging
import re

from telegramify_markdown import MessageEntity, RenderConfig, convert

from channels_app.messages import storable

logger = logging.getLogger(__name__)

# Characters that Unicode gives to nobody, so no text has them: they go in before the conversion and come out after it.
_LESS_THAN = "\ufdd0"
_NOTHING = "\ufdd1"
_STAR = "\ufdd2"
_OURS = str.maketrans("", "", _LESS_THAN + _NOTHING + _STAR)
_TYPED = str.maketrans({_LESS_THAN: "<", _NOTHING: "", _STAR: "*"})

_NO_AUTOLINK = re.compile(r"<(?!https?://[^\s<>]+>)")
_STAR_IN_A_WORD = re.compile(r"(?<=[0-9A-Za-z_)\]])\*(?=[0-9A-Za-z_(\[])")
_WIDE_MARKS = "　-〿︐-﹏！-／：-＠［-｀｛-･‐-‧«»·"
_BEFORE_MARK = re.compile(rf"(?<=[^\s*])(\*{{1,3}})(?=[{_WIDE_MARKS}])")
_AFTER_MARK = re.compile(rf"(?<=[{_WIDE_MARKS}])(\*{{1,3}})(?=[^\s*])")
_LINKS = ("http", "https", "mailto", "tel", "ftp")


def flattened(markdown: str) -> str:
    markdown = storable(markdown)
    try:
        text, entities = convert(_prepared(markdown), config=_config())
    except Exception:  # the parser is native code: an answer is worth more than its looks
        logger.exception("a text is sent as it was written")
        return markdown.strip()
    return _with_links(text, entities).translate(_TYPED).strip()


def _prepared(text: str) -> str:
    text = text.translate(_OURS)
    text = _NO_AUTOLINK.sub(_LESS_THAN, text)  # the library drops what looks like HTML
    text = _STAR_IN_A_WORD.sub(_STAR, text)  # 2*3*4
    text = text.replace("||", f"|{_NOTHING}|")  # "or" in code that nobody marked, no spoiler
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


def _with_links(text: str, entities: list[MessageEntity]) -> str:
    """Write each link's address behind its words. The library counts in UTF-16 units."""
    units = text.encode("utf-16-le")
    for entity in sorted(entities, key=lambda each: each.offset, reverse=True):
        url = entity.url or ""
        if url.partition(":")[0] not in _LINKS:
            continue
        start, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
        shown = units[start:end].decode("utf-16-le", "replace")
        url = url.removeprefix("mailto:").removeprefix("tel:")
        if url.rstrip("/") != shown.rstrip("/"):
            units = units[:end] + f" ({url})".encode("utf-16-le") + units[end:]
    return units.decode("utf-16-le", "replace")
