"""Links of every kind."""

from hypothesis import given, settings
from hypothesis import strategies as st

from channels_app.telegram.links import is_link
from tests.fakes.telegram import tdlib
from tests.telegram.markdown_case import MarkdownCase


class LinkTests(MarkdownCase):
    def links(self, text: str) -> list[str]:
        return [entity["url"] for entity in self.show_one(text).markup if "url" in entity]

    def test_it_links(self):
        for text, url in [
            ("[a](https://a.b/c_(d)?e=f#g)", "https://a.b/c_(d)?e=f#g"),
            ('[a](http://a.b "title")', "http://a.b"),
            ("<https://a.b/c>", "https://a.b/c"),
            ("[a](tg://resolve?domain=x)", "tg://resolve?domain=x"),
            ("[文献][2]\n\n[2]: https://a.b/c", "https://a.b/c"),
            ("![图](https://a.b/c.png)", "https://a.b/c.png"),
            ("[![图](https://a.b/c.png)](https://d.e)", "https://d.e"),
            ("[x](https://例子.测试/路径)", "https://例子.测试/路径"),
        ]:
            with self.subTest(text):
                self.assertEqual(self.links(text), [url])

    def test_it_leaves_bare_addresses_as_they_are(self):
        for url in ["https://a.b/_x_/y_z", "https://a.b/?q=_&c=_d_#_e_f", "http://a.b/~~x~y"]:
            with self.subTest(url):
                self.assertEqual(self.show_one(f"see {url} ok").text, f"see {url} ok")
                self.assertEqual(self.links(f"[x]({url})"), [url])

    def test_it_links_code(self):
        self.assertEqual(self.marks("[`f()`](https://a.b)"), [("text_link", "f()")])

    def test_it_writes_out_what_telegram_does_not_link(self):
        for text, shown in [
            ("[mail](mailto:a@b.org)", "mail (a@b.org)"),
            ("[call](tel:+123)", "call (+123)"),
            ("[here](http://localhost:8000/x)", "here (http://localhost:8000/x)"),
            ("[files](ftp://a.b/c)", "files (ftp://a.b/c)"),
            ("[port](http://a.b:70000)", "port (http://a.b:70000)"),
            (f"[long](https://a.b/{'x' * 2000})", f"long (https://a.b/{'x' * 2000})"),
            ("**[a@b.org](mailto:a@b.org)**", "a@b.org"),
        ]:
            with self.subTest(text):
                self.assertEqual(self.show_one(text).text, shown)
                self.assertEqual(self.links(text), [])

    def test_it_drops_targets_that_are_of_no_use_to_anybody(self):
        for target in ["javascript:alert(1)", "data:text/html,x", "#top", "/docs/x.md", "x.md"]:
            with self.subTest(target):
                part = self.show_one(f"[label]({target})")

                self.assertEqual((part.text, part.markup), ("label", []))

    def test_it_shows_the_target_of_a_link_without_a_label(self):
        for text in ["[](https://a.b/c)", "![](https://a.b/c)"]:
            with self.subTest(text):
                self.assertEqual(self.marks(text), [("text_link", "https://a.b/c")])

    def test_it_keeps_sources_that_nothing_refers_to(self):
        for text in [
            "见 [1]。\n\n[1]: https://a.b/c\n[2]: https://d.e",
            "[注]: 这是说明",
            "> [a]: b",
        ]:
            with self.subTest(text):
                self.assertEqual(self.show_one(text).text, text.removeprefix("> "))

    def test_it_links_in_a_line_with_bars(self):
        self.assertEqual(
            self.marks("[**a**](https://b.c) | [d](https://e.f)"),
            [("text_link", "a"), ("bold", "a"), ("text_link", "d")],
        )

    @given(
        st.from_regex(r"(https?|tg|ftp|mailto|HTTP):(//)?[\w.:@%/?#\[\]-]{1,30}", fullmatch=True)
        | st.text(max_size=20).map("https://{}".format)
        | st.text(max_size=20).map("https://a.b/{}".format)
    )
    @settings(max_examples=500, deadline=None)
    def test_it_links_only_what_telegram_takes(self, url):
        if is_link(url):
            entity = {"type": "text_link", "offset": 0, "length": 1, "url": url}

            tdlib.require_sound("x", [entity])
