"""LaTeX in the text of a model."""

from tests.telegram.markdown_case import MarkdownCase


class FormulaTests(MarkdownCase):
    def test_it_shows_formulas_with_the_signs_of_unicode(self):
        for text, shown in [
            ("so $E = mc^2$.", "so E = mc²."),
            (r"且 \(a_i \leq b\)。", "且 aᵢ ≤ b。"),
            ("设 $x$ 与 $f(x)$", "设 x 与 f(x)"),
            (r"\[\sum_{i=1}^{n} i = \frac{n(n+1)}{2}\]", "∑ᵢ₌₁ⁿ i = (n(n+1))/2"),
            ("$$a + b$$", "a + b"),
            ("$$\n\\int_0^1 x^2 \\, dx\n$$", "∫₀¹ x² dx"),
            ("**$x^2$**的", "x²的"),
            ("$1 + 1 = 2$ 且 $0 < x < 1$", "1 + 1 = 2 且 0 < x < 1"),
            (r"$x > 0 \text{，若 } y$", "x > 0 ，若 y"),
            ("> $$\n> a_1 * b_1 * c_1\n> $$", "a₁ * b₁ * c₁"),
        ]:
            with self.subTest(text):
                self.assertEqual(self.show_one(text).text, shown)

    def test_it_shows_lines_of_a_formula_as_a_block(self):
        text = r"so $$\begin{aligned} x &= 1 \\ y &= 2 \end{aligned}$$ and"

        self.assertEqual(self.show_one(text).text, "so \nx = 1\ny = 2\nand")
        self.assertEqual(self.marks(text), [("pre", "x = 1\ny = 2")])

    def test_it_leaves_money_and_shells_alone(self):
        for text in [
            "from $5 to $10, or $10.49 (~$11.20)",
            "$HOME/bin:$PATH and ${A}/${B}",
            "$FOO_BAR/$BAZ",
            "US$5-10/US$20",
            "原价$5=¥35，现价更低$",
        ]:
            with self.subTest(text):
                self.assertEqual(self.show_one(text).text, text)

    def test_it_does_not_look_across_code(self):
        part = self.show_one("`echo $$` and `kill $$`, `$a` = `$b`")

        self.assertEqual(part.text, "echo $$ and kill $$, $a = $b")

    def test_it_leaves_formulas_in_code_as_they_are(self):
        for code in [
            "\\[ \\frac{a}{b} \\]",
            "$x^2 * y^2 * z$",
            "re.match(r'\\(\\w+\\)')",
            "\\$x_1$",
        ]:
            with self.subTest(code):
                self.assertEqual(self.show_one(f"```\n{code}\n```").text, code)
                self.assertEqual(self.show_one(f"`{code}`").text, code)

    def test_it_shows_what_it_cannot_read_as_typed(self):
        for text in [r"$\frac{a}{b$", r"\(x^{2\)", r"$\begin{x}^2$", "so $^$ is"]:
            with self.subTest(text):
                self.assertEqual(self.show_one(text).text, text)
