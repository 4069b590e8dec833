"""Tables, which Telegram does not have."""

from tests.telegram.markdown_case import MarkdownCase


class TableTests(MarkdownCase):
    def test_it_aligns_a_narrow_table(self):
        part = self.show_one("| a | long name |\n|---|:-:|\n| 1 | `x` |\n| 22 | **y** |")

        self.assertEqual(part.text, "a  | long name\n--------------\n1  | x\n22 | y")
        self.assertEqual([entity["type"] for entity in part.markup], ["pre"])

    def test_it_fills_up_chinese_with_wide_blanks(self):
        part = self.show_one("| 名 | b |\n|---|---|\n| 很长的 | 1 |\n| x | 2 |")

        self.assertEqual(
            part.text.split("\n")[2:], ["很长的  | 1", "\u3000\u3000\u3000".join(["x", " | 2"])]
        )

    def test_it_shows_a_wide_table_row_by_row(self):
        part = self.show_one(
            "| 参数 | 说明 | default |\n|---|---|---|\n"
            "| sep | 分隔符，可以是任意长度的字符串 | `,` |\n| dtype | 每一列的类型，可以是字典 | |"
        )

        self.assertEqual(
            part.text,
            "参数：sep\n• 说明：分隔符，可以是任意长度的字符串\n• default: ,\n\n"
            "参数：dtype\n• 说明：每一列的类型，可以是字典",
        )
        self.assertEqual([entity["type"] for entity in part.markup], ["bold", "bold"])

    def test_it_keeps_the_links_of_a_table(self):
        marks = self.marks("| name | link |\n|---|---|\n| x | [docs](https://a.b/c_(d)) |")

        self.assertEqual(marks, [("bold", "name: x"), ("text_link", "docs")])

    def test_it_keeps_bars_in_code(self):
        text = "| type | b |\n|---|---|\n| `str | None` | `a\\|b` |\n| `` ` | ` `` | c |"
        part = self.show_one(text)

        self.assertEqual(part.text.split("\n")[2:], ["str | None | a|b", "` | `      | c"])

    def test_it_breaks_lines_in_a_cell(self):
        part = self.show_one("| a | b |\n|---|---|\n| 1 | x<br>y |")

        self.assertEqual(part.text, "a: 1\n• b: x; y")

    def test_it_shows_formulas_and_html_in_cells(self):
        part = self.show_one("| a | b |\n|---|---|\n| $O(n^2)$ | <b> |\n| $|x|$ | $5 |")

        self.assertEqual(part.text.split("\n")[2:], ["O(n²) | <b>", "|x|   | $5"])

    def test_it_shows_a_table_of_a_head_only(self):
        self.assertEqual(self.show_one("| a | b |\n|---|---|").text, "a | b")

    def test_it_takes_code_that_looks_like_a_table_for_code(self):
        code = "Title" * 20 + "\n" + "-" * 100 + "\nx"

        self.assertEqual(self.show_one(f"```\n{code}\n```").text, code)
