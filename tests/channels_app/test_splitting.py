"""Long texts in parts: nothing lost, nothing cut that hurts."""

import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels_app.splitting import split_text, units

LIMITS = st.integers(100, 400)
TEXTS = st.text(
    st.sampled_from("ab é。，.!? \n\n\t中\U0001f600\u200b`~*_")
    | st.characters(exclude_categories=["Cs"]),
    max_size=2000,
)
LINES = st.lists(
    st.sampled_from(
        [
            "```",
            "```python",
            "~~~",
            "````",
            "~~~~~ title=a.py",
            "   ```",
            "```inline``` code",
            "`" * 30,
            "```" + "x" * 60,
            "",
            "    indented code",
            "some words, and then some more. And a sentence!",
            "一句话。又一句话。",
            "x" * 150,
            "\U0001f600" * 40,
        ]
    ),
    max_size=60,
).map("\n".join)

FENCE = re.compile(r"^ {0,3}(`{3,16}(?!`)[^`\n]*|~{3,16}(?!~)[^\n]*)$", re.MULTILINE)


def visible(text: str) -> str:
    return "".join(
        character
        for character in text
        if not character.isspace() and unicodedata.category(character) not in ("Cf", "Cc")
    )


def without_fences(text: str) -> str:
    return FENCE.sub("", text)


def is_balanced(text: str) -> bool:
    """Is every fence that opens in a text closed in it?"""
    opened = ""
    for match in FENCE.finditer(text):
        line = match[0].strip()
        marks = re.match(r"`+|~+", line)
        assert marks is not None
        if not opened:
            opened = marks[0]
        elif line == marks[0] and line.startswith(opened):
            opened = ""
    return not opened


@given(TEXTS | LINES, LIMITS)
def test_it_keeps_every_part_within_the_limit(text, limit):
    """Counted as the platforms do: a character beyond the first plane is two units."""
    assert all(units(part) <= limit for part in split_text(text, limit))


@given(TEXTS | LINES, LIMITS)
def test_it_makes_no_blank_part(text, limit):
    assert all(visible(part) for part in split_text(text, limit))


@given(TEXTS | LINES, LIMITS)
def test_it_keeps_every_character_that_shows(text, limit):
    """In order; only lines that are nothing but fences may be added or left out."""
    parts = split_text(text, limit)

    lost = Counter(visible(text)) - Counter(visible("".join(parts)))
    assert set(lost) <= set("`~")


@given(st.text(st.sampled_from("ab。，.!? \n\t中é\U0001f600*_"), max_size=3000), LIMITS)
def test_it_keeps_a_text_without_fences_exactly_but_for_blanks(text, limit):
    assert visible("".join(split_text(text, limit))) == visible(text)


@given(LINES, LIMITS)
def test_it_closes_every_fence_it_cuts(text, limit):
    """All parts but the last show their code as code; the last is as the text left it."""
    *before, _ = split_text(text, limit) or [""]

    assert all(is_balanced(part) for part in before)


@given(TEXTS | LINES, LIMITS)
def test_it_leaves_alone_what_fits(text, limit):
    """So that splitting a second time changes nothing."""
    for part in split_text(text, limit):
        assert split_text(part, limit) == [part]


def test_it_cuts_between_paragraphs_before_lines_before_sentences_before_words():
    paragraphs, lines = "a" * 60 + "\n\n" + "b" * 30, "a" * 60 + "\n" + "b" * 30
    sentences, words = "a" * 60 + ". " + "b" * 30, "a" * 60 + " " + "b" * 30
    rest = " " + "c" * 50

    for text in (paragraphs, lines, sentences, words):
        first, *_ = split_text(text + rest, 120)
        assert first.startswith("a" * 60)
    assert split_text(paragraphs + rest, 120)[0] == "a" * 60
    assert split_text(lines + rest, 120)[0] == "a" * 60
    assert split_text(sentences + rest, 120)[0] == "a" * 60 + ". "


@pytest.mark.parametrize("length", [9_000, 100_000])
def test_it_cuts_an_over_long_answer(length):
    text = ("A sentence of words. " * (length // 21 + 1))[:length]

    parts = split_text(text, 4096)

    assert len(parts) <= length // 4000 + 2
    assert "".join(parts).split() == text.split()
    assert all(part.endswith(". ") for part in parts[:-1])


def test_it_cuts_one_word_of_5000_characters():
    parts = split_text("x" * 5000, 4096)

    assert "".join(parts) == "x" * 5000
    assert len(parts) == 2


def test_it_closes_and_reopens_a_fence_of_6000_characters():
    code = "\n".join(f"line_{number} = {number}" for number in range(350))
    text = f"Here it is:\n\n```python\n{code}\n```\n\nThat was it."

    parts = split_text(text, 4096)

    assert len(parts) == 2
    assert parts[0].endswith("\n```")
    assert parts[1].startswith("```python\nline_")
    assert all(is_balanced(part) for part in parts)
    shown = "\n".join(without_fences(part).strip() for part in parts)
    assert shown == f"Here it is:\n\n\n{code}\n\n\nThat was it."


def test_it_opens_no_fence_at_the_end_of_a_part():
    """An empty box of code would be shown."""
    text = "words " * 30 + "\n```python\n" + "code " * 40 + "\n```"

    for limit in range(150, 260):
        for part in split_text(text, limit):
            assert not re.search(r"```\w*\s*```$", part), (limit, part)


def test_it_opens_no_fence_only_to_close_it():
    for length in range(60, 140):
        text = f"```\n{'x' * length}\n```\nand then words that follow it to the end of the text"
        for part in split_text(text, 100):
            assert not re.search(r"^```\s*```$", part, re.MULTILINE), (length, part)


def test_it_cuts_no_character_in_two():
    parts = split_text("\U0001f600" * 3000, 4095)

    assert [len(part) for part in parts] == [2039, 961]
    assert all(part.encode("utf-8") for part in parts)


@pytest.mark.parametrize("blank", [" ", "\u200b", "\t\n"])
def test_it_leaves_out_a_part_that_would_show_nothing(blank):
    parts = split_text(f"before{blank * 500}after", 100)

    assert [visible(part) for part in parts] == ["before", "after"]


@pytest.mark.parametrize(
    "text", ["", " \n\n ", "\u200b", "  \n\u200b", "\ufeff\u2060\u00ad", "\u2800\u3164\ufffc"]
)
def test_it_makes_nothing_of_a_blank_text(text):
    assert split_text(text, 4096) == []
