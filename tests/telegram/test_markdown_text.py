"""Running text, headings, lists, quotes and code."""

from telegramify_markdown.config import get_runtime_config

from tests.telegram.markdown_case import MarkdownCase


class BoldTests(MarkdownCase):
    def test_it_makes_chinese_bold_beside_punctuation(self):
        for text, bold in [
            ("中文**加粗**，和", "加粗"),
            ("**注意：**请看", "注意："),
            ("这是**“引号”**的", "“引号”"),
            ("编码**（encoding）**的", "（encoding）"),
            ("用**C++**写", "C++"),
            ("**注意:**请看", "注意:"),
            ("好**哇！**🌱", "哇！"),
        ]:
            with self.subTest(text):
                self.assertEqual(self.marks(text), [("bold", bold)])

    def test_it_marks_what_is_struck_through_and_italic(self):
        self.assertEqual(
            self.marks("~~旧的。~~新的 *it* _too_"),
            [("strikethrough", "旧的。"), ("italic", "it"), ("italic", "too")],
        )

    def test_it_nests(self):
        self.assertEqual(
            self.marks("**bold *both* ~~gone~~**"),
            [("bold", "bold both gone"), ("italic", "both"), ("strikethrough", "gone")],
        )

    def test_it_marks_nothing_bold_inside_of_code(self):
        self.assertEqual(
            self.marks("**use `x` now**"), [("bold", "use"), ("code", "x"), ("bold", "now")]
        )

    def test_it_leaves_products_and_names_alone(self):
        for text in ["2*3*4", "n*(n+1)*2", "snake_case_name", "a ~ b ~ c", "5 * 3 * 2"]:
            with self.subTest(text):
                part = self.show_one(text)

                self.assertEqual((part.text, part.markup), (text, []))


class TypedTests(MarkdownCase):
    def test_it_delivers_errors_full_of_markup(self):
        for text in [
            "KeyError: 'user_name*[",
            "a_b*c",
            "<b>",
            "Tool `x failed: [Errno 2] *args, **kwargs",
            "expected '</b>' at <module> line 3 & column_4",
        ]:
            with self.subTest(text):
                self.assertEqual(self.show_one(text).text, text)

    def test_it_reads_entities_as_a_browser_would(self):
        self.assertEqual(self.show_one("a &amp; b &lt;x&gt;").text, "a & b <x>")

    def test_it_keeps_what_looks_like_html(self):
        for text in [
            "vector<int> v; a<b && c>d",
            "<thinking>hm</thinking> ok",
            "<div>\nblock\n</div>",
            "<!-- note -->",
        ]:
            with self.subTest(text):
                self.assertEqual(self.show_one(text).text, text)

    def test_it_keeps_an_escaped_one(self):
        self.assertEqual(self.show_one(r"\<b> \*no\* \$5").text, "<b> *no* $5")

    def test_it_hides_nothing_between_bars(self):
        self.assertEqual(self.show_one("a || b || c").text, "a || b || c")

    def test_it_sends_nothing_for_a_blank_text(self):
        for text in ["", "  \n\u200b", "\u3000\n\t", "\u2060\ufeff"]:
            with self.subTest(text):
                self.assertEqual(self.show(text), [])

    def test_it_shows_markup_that_marks_nothing_as_typed(self):
        for text in ["```\n```", "#", "[]()", ">"]:
            with self.subTest(text):
                self.assertEqual(self.show_one(text).text, text)

    def test_it_has_no_use_for_code_points_that_unicode_gives_to_nobody(self):
        self.assertEqual(self.show_one("a\ufdd0b\U0001fffe\U0002ffffc").text, "abc")

    def test_it_replaces_what_cannot_be_sent(self):
        self.assertEqual(self.show_one("a\ud800b\x00c").text, "a\ufffdbc")


class BlockTests(MarkdownCase):
    def test_it_shows_headings_in_bold_and_without_pictures(self):
        part = self.show_one("# 一\n\ntext\n\n### Three `x`\n\nmore")

        self.assertEqual(part.text, "一\n\ntext\n\nThree x\n\nmore")
        self.assertEqual(
            self.marks(part_source := "# 一\n\n### Three"), [("bold", "一"), ("bold", "Three")]
        )
        self.assertNotIn("📌", part_source)

    def test_it_shows_lists_tasks_and_rules(self):
        text = "3. three\n   - in\n4. four\n\n- [x] done\n- [ ] open\n\n---\n\nend"

        self.assertEqual(
            self.show_one(text).text,
            "3. three\n  • in\n4. four\n\n☑ done\n☐ open\n\n———\n\nend",
        )

    def test_it_flattens_quotes_in_quotes(self):
        part = self.show_one("> a\n>\n> > b\n>\n> c\n\nd")

        self.assertEqual(part.text, "a\n\nb\n\nc\n\nd")
        self.assertEqual(part.markup, [{"type": "blockquote", "offset": 0, "length": 7}])

    def test_it_shows_a_long_quote_unfolded(self):
        (entity,) = self.show_one("> " + "long " * 100).markup

        self.assertEqual(entity["type"], "blockquote")

    def test_it_keeps_code_as_it_is_with_its_language(self):
        code = (
            '    if a < b || c:\n        x = "**[l](http://a.b)** $x^2$"  # <b>\n'
            "# [a](http://b.c_d) | ![](http://e.f)\n[1]: x\n2*3*4"
        )
        part = self.show_one(f'```python title="x.py"\n{code}\n```')

        self.assertEqual(part.text, code)
        self.assertEqual(
            part.markup, [{"type": "pre", "offset": 0, "length": len(code), "language": "python"}]
        )

    def test_it_keeps_blocks_in_a_list_apart_from_what_follows(self):
        text = "1. run:\n\n   ```sh\n   ls\n   ```\n\n   then\n\n   | a |\n   |---|\n   | 1 |\n\n   end\n2. two"

        self.assertEqual(self.show_one(text).text, "1. run:\nls\nthen\n\na\n-\n1\nend\n2. two")

    def test_it_keeps_headings_and_rules_in_a_list_on_lines_of_their_own(self):
        for text, shown in [
            ("1. ### Title ###\n\n   text\n2. b", "1. Title\ntext\n2. b"),
            ("- a\n  # h\n  # i\n  b", "• a\nh\ni\nb"),
            ("- a\n\n  ---\n\n  b", "• a\n———\nb"),
            ("> # h\n> b", "h\nb"),
            ("# C# and F#", "C# and F#"),
            ("```\n# comment\nx\n```", "# comment\nx"),
        ]:
            with self.subTest(text):
                self.assertEqual(self.show_one(text).text, shown)

    def test_it_keeps_code_in_a_quote(self):
        self.assertEqual(
            self.marks("> see:\n> ```py\n> x\n> ```"), [("blockquote", "see:\nx"), ("pre", "x")]
        )

    def test_it_counts_in_utf_16_units(self):
        part = self.show_one("👨‍👩‍👧‍👦🌱 **粗** `x`")

        self.assertEqual(
            part.markup,
            [
                {"type": "bold", "offset": 14, "length": 1},
                {"type": "code", "offset": 16, "length": 1},
            ],
        )

    def test_it_leaves_the_library_as_others_know_it(self):
        self.show("# heading")

        self.assertEqual(get_runtime_config().markdown_symbol.heading_level_1, "📌")
