"""Whatever a model writes."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from channels_app.splitting import is_blank
from channels_app.telegram.markdown import split
from tests.telegram.markdown_case import MarkdownCase

PIECES = st.sampled_from(
    [
        *"*_~`#>|-+[]()!<>&$\\:=.1a中，（”🌱 \n",
        *["**", "***", "~~", "||", "```", "```py\n", "\n```\n", "$$", "\\[", "\\]", "\\(", "\\)"],
        *[
            "\n\n",
            "\n- ",
            "\n1. ",
            "\n> ",
            "\n> > ",
            "\n# ",
            "\n|",
            "|\n|--|--|\n|",
            "    ",
            "- [x] ",
        ],
        *[
            "https://a.b/c",
            "[a](https://b.c)",
            "![](http://d.e)",
            "[](f)",
            "[1]: ",
            "][",
            "<b>",
            "</b>",
        ],
        *[
            "👨‍👩‍👧‍👦",
            "🇨🇳",
            "👍🏽",
            "e\u0301",
            "\u200b",
            "\u3000",
            "&lt;",
            "<br>",
            "x^2",
            "\\frac{a}{b}",
        ],
    ]
)
TEXTS = st.lists(PIECES, max_size=60).map("".join)


WORD = st.integers(0, 10**9).map("w{}".format)
SPOKEN = st.lists(WORD, min_size=1, max_size=4).map(" ".join)


SHAPES = [
    *[
        "{}",
        "# {}",
        "**{}**，",
        "*{}*",
        "~~{}~~",
        "`{}`",
        "> {}",
        "> > {}",
        "- {}",
        "7. {}",
        "- [ ] {}",
    ],
    *["[{}](https://{hidden}.org)", "[{}]({hidden})", "![{}](https://{hidden}.org)", "<b>{}</b>"],
    *[
        "```{hidden}\n{}\n```",
        "    {}",
        "***{}***",
        "- a\n  - {}\n",
        "**{}",
        "`{}",
        "$x^2$ {}",
        "|| {} ||",
    ],
    *[
        "[{}]: x",
        "{}\n---",
        "<div>\n{}\n</div>",
        "> ```\n> {}\n> ```",
        "a|{}|[b](https://{hidden}.org)",
    ],
    *[
        "| a |\n|---|\n| {} |",
        "| a | b |\n|---|---|\n| [{}](https://{hidden}.org) | " + "c" * 50 + " |",
    ],
]


@st.composite
def documents(draw):
    """Return a text and the words that a person must see of it, in order; what only marks or points is none of them."""
    said = draw(st.lists(SPOKEN, min_size=1, max_size=12))
    shapes = st.sampled_from(SHAPES)
    blocks = [draw(shapes).format(words, hidden="h1d") for words in said]
    return "\n\n".join(blocks), " ".join(said).split()


class AnyTextTests(MarkdownCase):
    @given(TEXTS)
    @settings(max_examples=500, deadline=None)
    def test_it_makes_messages_that_telegram_takes(self, text):
        self.show(text)

    @given(TEXTS)
    @settings(max_examples=200, deadline=None)
    def test_it_is_silent_only_about_a_blank_text(self, text):
        self.assertEqual(split(text) == [], is_blank(text))

    @given(documents())
    @settings(max_examples=300, deadline=None)
    def test_it_shows_every_word_once_and_in_order(self, document):
        text, said = document

        shown = " ".join(part.text for part in self.show(text))

        self.assertEqual(re.findall(r"\bw\d+\b", shown), said)

    @given(st.text())
    @settings(deadline=None)
    def test_it_takes_all_of_unicode(self, text):
        for part in split(text):
            self.assert_telegram_takes(part)
