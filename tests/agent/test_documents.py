"""Text files are known by their bytes; only an old encoding needs a name that says text."""

from django.test import SimpleTestCase
from hypothesis import given
from hypothesis import strategies as st

from nahida.agent.documents import text_of


def text(content: bytes, *, name: str = "", mime: str = "", limit: int = 100) -> str | None:
    return text_of(content, name=name, mime=mime, limit=limit)


class TextTests(SimpleTestCase):
    def test_it_reads_utf_8_whatever_it_is_called(self):
        self.assertEqual(text("早上好\n".encode(), name="x.bin"), "早上好\n")
        self.assertEqual(text(b'{"a": 1}', mime="application/json"), '{"a": 1}')

    def test_it_reads_what_carries_a_mark(self):
        self.assertEqual(text("早".encode("utf-8-sig")), "早")
        self.assertEqual(text("早".encode("utf-16")), "早")
        self.assertEqual(text(b"\xfe\xff" + "早".encode("utf-16-be")), "早")

    def test_it_reads_old_chinese_where_name_or_type_say_text(self):
        old = "早上好".encode("gb18030")

        self.assertEqual(text(old, name="a.TXT"), "早上好")
        self.assertEqual(text(old, mime="text/plain"), "早上好")
        self.assertIsNone(text(old, name="a.bin"))

    def test_it_takes_nothing_else_for_text(self):
        for content in (
            b"\x00\x01",
            b"\x89PNG\r\n\x1a\n",
            b"%PDF-1.7\n1 0 obj",
            b"{\\rtf1 hi}",
            b"a\x00b",
        ):
            self.assertIsNone(text(content, name="a.txt"))

    def test_it_cuts_without_halving_a_character(self):
        shown = text("早".encode() * 1000, limit=10)

        self.assertEqual(shown, "早" * 11)  # one more, so that it shows as cut

    def test_it_reads_an_empty_file(self):
        self.assertEqual(text(b""), "")

    @given(st.binary(max_size=200), st.sampled_from(["", "a.txt"]))
    def test_it_never_raises(self, content: bytes, name: str):
        text(content, name=name, limit=20)
