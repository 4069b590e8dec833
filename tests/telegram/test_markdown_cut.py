"""Answers that are longer than one message."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from channels_app.markdown.marked import Marked, Span, in_order
from channels_app.telegram.markdown import split
from channels_app.telegram.parts import LIMIT, messages
from tests.telegram.markdown_case import MarkdownCase, covered

SENTENCE = "这是一个句子，它说了一些话。"


def paragraphs(count: int) -> str:
    return "\n\n".join(f"{number}. {SENTENCE * 10}" for number in range(count))


def code(lines: int) -> str:
    """With a blank line after every tenth, where a text would be cut."""
    return "\n".join(
        f"    line {number} = compute({number})" + "\n" * (number % 10 == 9)
        for number in range(lines)
    ).rstrip()


class CutTests(MarkdownCase):
    def test_it_sends_a_very_long_answer_in_order(self):
        for text in [paragraphs(70), paragraphs(750), "x" * 5000, "🌱" * 5000]:
            parts = self.show(text)

            self.assertEqual(solid("".join(part.text for part in parts)), solid(text))

    def test_it_cuts_between_paragraphs(self):
        first, second = self.show(paragraphs(40))

        self.assertTrue(first.text.endswith("。"))
        self.assertRegex(second.text, r"^\d+\. 这")

    def test_it_cuts_lines_then_sentences_then_words(self):
        for text, end in [
            ((SENTENCE * 40 + "\n") * 10, "。"),
            (SENTENCE * 400, "。"),
            ("lorem ipsum " * 600, "m"),
        ]:
            first, *_ = self.show(text)

            self.assertTrue(first.text.endswith(end))
            self.assertGreater(len(first.text), LIMIT / 2)

    def test_it_repeats_bold_text_that_it_cuts(self):
        first, second = self.show("开" * 3900 + "**" + "粗" * 300 + "**" + "尾" * 100)

        self.assertEqual(first.markup, [{"type": "bold", "offset": 3900, "length": 196}])
        self.assertEqual(second.markup, [{"type": "bold", "offset": 0, "length": 104}])

    def test_it_repeats_a_link_and_a_quote_that_it_cuts(self):
        label = "word " * 1000
        for part in self.show(f"> [{label}](https://a.b)"):
            (quote, link) = part.markup

            self.assertEqual(link["url"], "https://a.b")
            self.assertEqual(covered(part.text, quote), part.text)

    def test_it_begins_a_message_rather_than_cut_code_that_fits_into_one(self):
        before, block = self.show(f"{paragraphs(20)}\n\n```py\n{code(100)}\n```")

        self.assertEqual(before.markup, [])
        self.assertEqual(block.text, code(100))

    def test_it_cuts_longer_code_between_lines_and_repeats_its_language(self):
        parts = self.show(f"Look:\n\n```py\n{code(300)}\n```\n\nSee?")

        blocks = [(part.text, entity) for part in parts for entity in part.markup]
        self.assertEqual({entity["language"] for _, entity in blocks}, {"py"})
        self.assertEqual("\n\n".join(covered(*block) for block in blocks), code(300))

    def test_it_leaves_no_heading_and_no_announcement_behind(self):
        first, second = self.show(
            f"{paragraphs(20)}\n\n### Example\n\nLike this:\n\n```py\n{code(100)}\n```"
        )

        self.assertTrue(first.text.endswith("。"))
        self.assertTrue(second.text.startswith("Example\n\nLike this:\n\n    line 0"))

    def test_it_sends_many_headings_in_few_messages(self):
        self.assertLess(len(self.show("# heading\n" * 900)), 12)

    def test_it_marks_at_most_a_hundred_things_in_a_message(self):
        parts = self.show(" ".join(f"`c{number}`" for number in range(350)))

        self.assertEqual([len(part.markup) for part in parts], [100, 100, 100, 50])

    def test_it_keeps_the_links_of_a_message_below_what_the_server_takes(self):
        for count in 60, 90:
            text = " ".join(f"[w{n}](https://example.com/{'p' * 80}{n})" for n in range(count))
            parts = self.show(f"{text}\n\n{paragraphs(30)}")

            for part in parts:
                links = sum(len(entity.get("url", "")) for entity in part.markup)
                self.assertLessEqual(len(part.text) + links, 8000)
            self.assertEqual(sum(len(part.markup) for part in parts), count)

    def test_it_cuts_no_character_that_a_person_sees_as_one(self):
        for character in ["👨‍👩‍👧‍👦", "🇨🇳", "👍🏽", "e\u0301"]:
            for shift in "", "x", "xx":
                parts = self.show(shift + character * 1500)

                seen = "".join(part.text for part in parts)
                self.assertEqual(seen, shift + character * 1500)
                for part in parts[1:]:
                    self.assertTrue(part.text.startswith(character))

    def test_it_sends_a_text_as_typed_that_would_grow_beyond_measure(self):
        with self.assertLogs("channels_app.telegram", "ERROR"):
            (part,) = split("1. " * 1000)

        self.assertTrue(part.text.startswith("1. 1. 1."))


WORDS = st.sampled_from(
    ["字", "word ", "🌱", "👨‍👩‍👧‍👦", "\n", "\n\n", "    ", "。", ", ", "x" * 500, "粗" * 900]
)
KINDS = st.sampled_from(["bold", "italic", "code", "pre", "blockquote", "text_link"])


@st.composite
def marked_texts(draw):
    text = "".join(draw(st.lists(WORDS, min_size=1, max_size=200)))
    places = st.integers(0, len(text))
    spans = []
    for kind, first, second in draw(st.lists(st.tuples(KINDS, places, places), max_size=150)):
        url = "https://a.b/" + "u" * 300 if kind == "text_link" else ""
        spans.append(Span(min(first, second), max(first, second), kind, url))
    return Marked(text, in_order(spans))


class NothingLostTests(MarkdownCase):
    @given(marked_texts())
    @settings(max_examples=100, deadline=None)
    def test_it_neither_loses_nor_adds_what_shows_and_how_it_is_marked(self, text):
        whole = shown(text)

        cut = [pair for message in messages(text) for pair in shown(message)]

        self.assertEqual(cut, whole)


def shown(text: Marked) -> list[tuple[str, Counter[tuple[str, ...]]]]:
    """Return each character that is not white space, and how it is marked."""
    marks: list[Counter[tuple[str, ...]]] = [Counter() for _ in text.text]
    for span in text.spans:
        for place in range(span.start, span.end):
            marks[place][(span.type, span.url, span.language)] += 1
    return [(c, mark) for c, mark in zip(text.text, marks, strict=True) if not c.isspace()]


def solid(text: str) -> str:
    return "".join(text.split())
