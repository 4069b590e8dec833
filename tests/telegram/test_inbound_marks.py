"""What people mark in a text is shown to the model, which sees no marks: code as code, links with their addresses."""

from typing import Any

import pytest

from channels_app.messages import InboundMessage
from channels_app.telegram.inbound import Me, parse
from tests.telegram import contents
from tests.telegram.contents import entity


def text(written: str, *marked: dict[str, Any], key: str = "text") -> str:
    marks = "entities" if key == "text" else "caption_entities"
    update = contents.update({key: written, marks: list(marked)})
    found = parse(update, channel="telegram", me=Me(42000001, "nahida_bot"))
    assert isinstance(found, InboundMessage), found
    return found.text


def test_it_shows_code_in_a_sentence() -> None:
    assert text("🌱 see x = 1 here", entity("code", 7, 5)) == "🌱 see `x = 1` here"


def test_it_shows_a_block_of_code_with_its_language() -> None:
    shown = text("see x = 1 there", entity("pre", 4, 5, language="python"))

    assert shown == "see \n```python\nx = 1\n```\n there"


@pytest.mark.parametrize("length", [5, 6])
def test_it_adds_no_empty_lines_around_a_block(length: int) -> None:
    shown = text("see\nx = 1\nthere", entity("pre", 4, length))

    assert shown == "see\n```\nx = 1\n```\nthere"


@pytest.mark.parametrize(
    ("kind", "code", "shown"),
    [
        ("code", "a`b", "``a`b``"),
        ("code", "`a", "`` `a ``"),
        ("pre", "```\nx\n```", "````\n```\nx\n```\n````"),
    ],
)
def test_it_fences_code_that_has_fences_itself(kind: str, code: str, shown: str) -> None:
    assert text(code, entity(kind, 0, len(code))) == shown


def test_it_takes_no_language_that_would_break_out_of_its_line() -> None:
    assert text("x", entity("pre", 0, 1, language="a\n```\n/new")) == "```\nx\n```"


def test_it_shows_where_the_links_of_a_caption_lead() -> None:
    link = entity("text_link", 3, 4, url="https://e.org/x")

    shown = text("🌱 here we go", link, key="caption")

    assert shown == "🌱 here (https://e.org/x) we go"


def test_it_does_not_repeat_an_address() -> None:
    link = entity("text_link", 0, 13, url="https://e.org/")

    assert text("https://e.org", link) == "https://e.org"


def test_it_nests_marks_as_they_are_nested() -> None:
    link = entity("text_link", 0, 1, url="https://e.org")
    code = entity("code", 0, 1)
    behind = entity("code", 1, 1)

    assert text("ab", code, link, behind) == "`a` (https://e.org)`b`"


@pytest.mark.parametrize("kind", ["bold", "spoiler", "blockquote", "custom_emoji", "date_time"])
def test_it_leaves_what_only_looks_different(kind: str) -> None:
    assert text("so what", entity(kind, 3, 4)) == "so what"
