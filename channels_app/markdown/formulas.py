"""Formulas in LaTeX, shown with the signs that Unicode has for them: ∑ᵢ₌₁ⁿ i. Pure."""

import re

from telegramify_markdown.latex_escape.helper import LatexToUnicodeHelper

from channels_app.markdown.marked import BLOCK_OF_CODE, CODE, Edit, Marked, Span, edited
from channels_app.markdown.signs import FORMULA, FORMULA_END, protected, typed
from channels_app.splitting import is_blank

_LONGEST = 1000  # characters
# No blank line is between the marks, nor code, which would only happen to stand between two of them.
_BODY = rf"(?:(?!\n[ \t]*\n|\\[(\[])[^`$]){{1,{_LONGEST}}}?"
_FORMULA = re.compile(
    rf"(?<!\\)(?:\\\[(?P<block>{_BODY})\\\]|\\\((?P<inline>{_BODY})\\\)"
    rf"|\$\$(?P<dollars>{_BODY})\$\$|\$(?=\S)(?P<dollar>[^`$\n]{{1,{_LONGEST}}}?)(?<=\S)\$(?![A-Za-z0-9_{{(]))"
)
# A command, an index, an equation, or a single letter; `$5` and `$HOME` are none of these.
_MATHEMATICAL = re.compile(
    r"\\[A-Za-z]|[\^=<>≤≥]|(?<![A-Za-z])[A-Za-z]_|^\s*\|?[A-Za-z]\|?(\([\w, ]+\))?\s*$"
)
_PROSE = re.compile("[\u3001-\u9fff\uff01-\uff60¥€£]")  # between two sums of money
_QUOTED = re.compile(r"[ \t]*>[ \t>]*")
_MARKED = re.compile(f"{FORMULA}([^{FORMULA_END}]*){FORMULA_END}")
_helper = LatexToUnicodeHelper()


def marked(text: str) -> str:
    """Mark the formulas of a Markdown text, and protect them from being read as Markdown."""
    return _FORMULA.sub(lambda match: _mark(match) if _is_mathematical(match) else match[0], text)


def shown_in(text: Marked) -> Marked:
    """Replace the marked formulas, apart from those in code."""
    code = text.within(*CODE)
    found = (match for match in _MARKED.finditer(text.text) if not code[match.start()])
    return edited(text, [_edit(match) for match in found])


def shown_in_cell(text: str) -> str:
    return _MARKED.sub(lambda match: _shown(match[1]), text)


def _is_mathematical(match: re.Match[str]) -> bool:
    if match["dollars"]:
        return True
    body = _body(match)
    is_prose = match["dollar"] and _PROSE.search(body) and "\\text" not in body
    return bool(_MATHEMATICAL.search(body)) and not is_prose


def _mark(match: re.Match[str]) -> str:
    line = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    first, *others = match[0].split("\n")
    lines = [protected(first)]
    for other in others:
        quote = _QUOTED.match(other) if line.lstrip().startswith(">") else None
        end = quote.end() if quote else 0
        lines.append(other[:end] + protected(other[end:]))
    return FORMULA + "\n".join(lines) + FORMULA_END


def _edit(match: re.Match[str]) -> Edit:
    shown, text = _shown(match[1]), match.string
    if "\n" not in shown:
        return Edit(match.start(), match.end(), Marked(shown))
    block = Marked(shown, (Span(0, len(shown), BLOCK_OF_CODE),))
    behind = text[match.end() :].lstrip(" ")
    above = "" if text[: match.start()].endswith("\n") or match.start() == 0 else "\n"
    below = "" if behind.startswith("\n") or not behind else "\n"
    return Edit(match.start(), len(text) - len(behind), Marked(above) + block + Marked(below))


def _shown(source: str) -> str:
    """Return a formula as Unicode, or as it was typed if the library makes nothing of it."""
    source = typed(source)
    match = _FORMULA.fullmatch(source)
    if match is None or not _is_balanced(_body(match)):
        return source
    converted = _helper.convert(_body(match))  # type: ignore[no-untyped-call]  # the library's
    lines = [line.rstrip() for line in converted.strip().splitlines() if not is_blank(line)]
    # Blanks in a row are those of LaTeX between signs; only in several lines do they make columns.
    return "\n".join(lines) if len(lines) > 1 else " ".join(" ".join(lines).split()) or source


def _body(match: re.Match[str]) -> str:
    return next(body for body in match.groups() if body is not None)


def _is_balanced(body: str) -> bool:
    depth = 0
    for brace in re.findall(r"\\.|[{}]", body, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        if depth < 0:
            return False
    return depth == 0 and body.count("\\begin") == body.count("\\end")
