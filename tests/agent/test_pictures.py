"""Pictures are known by their bytes, whatever name or platform says of them."""

from django.test import SimpleTestCase
from hypothesis import given
from hypothesis import strategies as st

from nahida.agent.pictures import Picture, picture
from tests.fakes import pictures

REAL = {
    pictures.PNG: Picture("image/png", 7, 5),
    pictures.JPEG: Picture("image/jpeg", 7, 5),
    pictures.WEBP_LOSSY: Picture("image/webp", 7, 5),
    pictures.WEBP_LOSSLESS: Picture("image/webp", 7, 5),
    pictures.WEBP_EXTENDED: Picture("image/webp", 7, 5),
    pictures.GIF: Picture("image/gif", 1, 1),
}
APP1 = b"\xff\xe1\x00\x08Exif\x00\x00"


class PictureTests(SimpleTestCase):
    def test_it_knows_the_kinds_that_models_take(self):
        for content, kind in REAL.items():
            self.assertEqual(picture(content), kind)

    def test_it_finds_the_size_behind_what_a_camera_writes_first(self):
        content = pictures.JPEG[:2] + 50 * APP1 + b"\xff\xff" + pictures.JPEG[2:]

        self.assertEqual(picture(content), Picture("image/jpeg", 7, 5))

    def test_it_takes_nothing_else_for_a_picture(self):
        for content in (b"", b"%PDF-1.7", b"<svg/>", b"BM6\x00", b"RIFF\x00\x00\x00\x00WAVEfmt "):
            self.assertIsNone(picture(content))

    def test_it_takes_no_picture_without_an_area(self):
        flat = pictures.PNG[:16] + b"\x00" * 4 + pictures.PNG[20:]

        self.assertIsNone(picture(flat))

    def test_it_takes_no_head_that_breaks_off(self):
        for content in REAL:
            for length in range(10):
                self.assertIsNone(picture(content[:length]))

    @given(st.sampled_from(sorted(REAL)), st.integers(0, 80), st.binary(max_size=40))
    def test_it_never_raises(self, content: bytes, at: int, noise: bytes):
        picture(content[:at] + noise + content[at + len(noise) :])
        picture(content[:at] + noise)
