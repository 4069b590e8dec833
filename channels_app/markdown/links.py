"""Links that the library would lose, and addresses written out where a person can copy them. Pure."""

import re
from collections.abc import Callable

from channels_app.markdown.marked import CODE, LINK, Edit, Marked, Span, edited, in_order
from channels_app.markdown.signs import IMAGE, LINK_END, LINK_URL, typed
from channels_app.markdown.signs import LINK as LINK_SIGN
from channels_app.splitting import is_blank

PICTURE = "🖼"

_KEPT = re.compile(
    f"(?P<sign>[{LINK_SIGN}{IMAGE}])(?P<label>[^{LINK_SIGN}{IMAGE}{LINK_END}{LINK_URL}]*)"
    f"(?P<target>{LINK_URL}(?P<url>[^{LINK_END}]*){LINK_END})"
)
# What is of use as it stands; the rest names places of a page or a program that nobody sees here.
_OF_USE = re.compile(r"(?:https?|ftp|(?P<silent>mailto|tel)):", re.IGNORECASE)


def restored(text: Marked) -> Marked:
    """Make the links that were kept from the library, apart from those in code."""
    code = text.within(*CODE)
    edits, links = [], []
    for match in _KEPT.finditer(text.text):
        if code[match.start()]:
            continue
        url = typed(match["url"])
        sign = Marked(f"{PICTURE} " if match["sign"] == IMAGE else "")
        edits.append(Edit(*match.span("sign"), sign))
        shown = Marked(url, (Span(0, len(url), LINK, url),))
        is_nameless = is_blank(typed(match["label"]))
        edits.append(Edit(*match.span("target"), shown if is_nameless else Marked("")))
        if not is_nameless:
            links.append(Span(*match.span("label"), LINK, url))
    return edited(Marked(text.text, in_order([*text.spans, *links])), edits)


def written_out(text: Marked, *, unless: Callable[[str], bool]) -> Marked:
    """Write the address of each link behind its label, unless the platform takes such a link."""
    kept = tuple(span for span in text.spans if span.type != LINK or unless(span.url))
    others = [span for span in text.spans if span.type == LINK and not unless(span.url)]
    edits = [
        Edit(span.end, span.end, Marked(f" ({address})"))
        for span in sorted(others, key=lambda span: span.end)
        if (address := _address(span.url)) not in ("", text.text[span.start : span.end])
    ]
    return edited(Marked(text.text, kept), edits)


def _address(url: str) -> str:
    """Return what a person can copy, or "" if it is of no use here."""
    scheme = _OF_USE.match(url)
    if scheme is None:
        return ""
    return url[scheme.end() :] if scheme["silent"] else url
