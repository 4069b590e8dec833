"""What a Markdown text needs before the library reads it, which would otherwise lose or spoil parts of it. Pure."""

import re
import unicodedata

from channels_app.markdown import formulas
from channels_app.markdown.signs import (
    IMAGE,
    LINE,
    LINK,
    LINK_END,
    LINK_URL,
    NOTHING,
    protected,
    without_signs,
)

_HEADING = re.compile(r"^(?P<before>[ \t>*+\-\d.)]*#{1,6}[ \t]+)(?P<title>\S.*)$", re.MULTILINE)
# Bold and struck-through text, whose marks must not touch punctuation in Markdown: Chinese has no blank to stand between.
_MARKS = re.compile(r"(?<![\\*~])(?:\*{2,3}|~~)(?![*~])")
_CHINESE_MARKS = "“”‘’…—·"
# 2*3*4, n*(n+1)*2: between two of these would be italic text.
_TIMES = re.compile(r"(?<![\\*])(?:(?<=[0-9)])\*(?=[\w(])|(?<=\w)\*(?=[0-9(]))")
_ESCAPE_OR_SIGN = re.compile(r"\\[\\<$]|<(?!https?://[^\s<>]+>)|\$|\|(?=\|)")
_DEFINITION = re.compile(
    r"^(?P<before>[ \t>*+\-\d.)]*)"
    r"(?P<definition>\[(?P<label>(?:[^\[\]\\]|\\.){1,999})\]:[ \t]*(?P<target>\S*))",
    re.MULTILINE | re.DOTALL,
)
# What of a web address could be read as italic.
_BARE_URL = re.compile(r"https?://(?:(?![<>*()\[\]|])[!-~])*[A-Za-z0-9/]")
_URL = r"https?://(?:[^\s()<>|]|\([^\s()<>|]*\))+"
_LINE_OF_TABLE = re.compile(r"^.*\|.*$", re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_BAR = re.compile(r"(?<!\\)\|")
_LINK = re.compile(rf"(?P<sign>!?)\[(?P<label>[^\[\]\n|]*)\]\((?P<url>{_URL})\)")
_LINK_WITHOUT_LABEL = re.compile(rf"(?P<sign>!?)\[(?P<label>\s*)\]\((?P<url>{_URL})\)")


def prepared(text: str) -> str:
    text = formulas.marked(without_signs(text))
    text = _HEADING.sub(_on_its_line, text)
    text = _MARKS.sub(_beside_punctuation, text)
    text = _TIMES.sub(protected("*"), text)
    text = _BARE_URL.sub(lambda url: url[0].replace("_", protected("_")), text)
    text = _LINE_OF_TABLE.sub(_without_loss, text)
    text = _LINK_WITHOUT_LABEL.sub(_kept_link, text)
    return _ESCAPE_OR_SIGN.sub(_as_typed, _with_definitions(text))


def _on_its_line(heading: re.Match[str]) -> str:
    """In a list the library lets a heading follow what is above it, and be followed, on the same line."""
    title = heading["title"].rstrip()
    unclosed = title.rstrip("#")
    shown = (unclosed if unclosed.endswith((" ", "\t")) else title).rstrip()
    return f"{heading['before']}{LINE}{shown}{LINE}{heading['title'][len(shown) :]}"


def _beside_punctuation(marks: re.Match[str]) -> str:
    """Let marks that touch Chinese on one side and punctuation on the other begin or end what they mark."""
    before = marks.string[marks.start() - 1 : marks.start()]
    behind = marks.string[marks.end() : marks.end() + 1]
    if not (_is_chinese(before) or _is_chinese(behind)):
        return marks[0]
    left = NOTHING if _is_punctuation(before) else ""
    right = NOTHING if _is_punctuation(behind) else ""
    return left + marks[0] + right


def _is_chinese(character: str) -> bool:
    """Is it wide, as the writing of East Asia is? So are emoji, which no blank follows either."""
    return bool(character) and (
        unicodedata.east_asian_width(character) in "WF" or character in _CHINESE_MARKS
    )


def _is_punctuation(character: str) -> bool:
    return bool(character) and unicodedata.category(character)[0] in "PS"


def _without_loss(line: re.Match[str]) -> str:
    """Keep what is lost in tables: links, and what stands behind a bar in code, which would begin another cell."""
    text = _CODE.sub(lambda code: _BAR.sub(protected("|"), code[0]), line[0])
    return _LINK.sub(_kept_link, text)


def _kept_link(link: re.Match[str]) -> str:
    """Put a link where the library does not see it. One without a label it keeps nowhere."""
    begin = IMAGE if link["sign"] else LINK
    return f"{begin}{link['label']}{LINK_URL}{protected(link['url'])}{LINK_END}"


def _with_definitions(text: str) -> str:
    """`[1]: https://…` is not shown in Markdown: that is lost unless a label refers to it, as in [label][1]."""
    used_in = text.lower()
    if all(_is_used(definition, used_in) for definition in _DEFINITION.finditer(text)):
        return text
    return _DEFINITION.sub(rf"\g<before>{NOTHING}\g<definition>", text)


def _is_used(definition: re.Match[str], text: str) -> bool:
    is_web = definition["target"].startswith(("http://", "https://"))
    return is_web and f"][{definition['label'].lower()}]" in text


def _as_typed(match: re.Match[str]) -> str:
    """What looks like HTML the library drops; between `$` it sees formulas and between `||` something to hide."""
    found = match[0]
    if found == "|":
        return f"|{NOTHING}"
    return protected(found) if len(found) == 1 else found
