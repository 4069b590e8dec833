"""The media store: whole files under names that nobody can guess, and nothing outside its directory."""

import os
import stat
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.test import SimpleTestCase
from django.utils import timezone

from channels_app import media


class KeepTests(SimpleTestCase):
    def test_it_gives_back_what_it_was_given(self):
        name = media.keep(b"\x00\xff bytes")

        self.assertEqual(media.read(name), b"\x00\xff bytes")
        self.assertEqual(media.read(name, most=2), b"\x00\xff")

    def test_it_keeps_the_same_content_twice_under_names_that_have_nothing_in_common(self):
        one, two = media.keep(b"same"), media.keep(b"same")

        media.remove(one)

        self.assertEqual(media.read(two), b"same")

    def test_it_lets_only_its_owner_read(self):
        path = Path(settings.MEDIA_ROOT, media.keep(b"private"))

        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(path.parent.stat().st_mode), 0o700)

    def test_it_says_what_is_missing_and_removes_what_is_not_there(self):
        name = media.keep(b"gone soon")
        media.remove(name)
        media.remove(name)

        with self.assertRaisesMessage(media.MissingFileError, name):
            media.read(name)

    def test_it_reads_and_removes_nothing_outside_its_directory(self):
        outside = Path(settings.DATA_DIR, "outside")
        outside.write_text("secret")

        for name in ("../outside", str(outside), "", "..", "a" * 32 + "/../../outside"):
            media.remove(name)
            with self.assertRaises(media.MissingFileError):
                media.read(name)

        self.assertTrue(outside.exists())


class AgeTests(SimpleTestCase):
    def aged(self, name: str, *, days: int) -> Path:
        path = Path(settings.MEDIA_ROOT, name)
        then = (timezone.now() - timedelta(days=days)).timestamp()
        os.utime(path, (then, then))
        return path

    def test_it_names_what_is_older_than_an_instant(self):
        old, young = media.keep(b"old"), media.keep(b"young")
        self.aged(old, days=8)

        names = list(media.older_than(timezone.now() - timedelta(days=7), prefix=""))

        self.assertIn(old, names)
        self.assertNotIn(young, names)

    def test_it_deletes_what_a_killed_writer_left(self):
        left = Path(settings.MEDIA_ROOT, "0" * 32 + ".part")
        left.write_bytes(b"half")
        self.aged(left.name, days=8)

        names = list(media.older_than(timezone.now() - timedelta(days=7), prefix=""))

        self.assertNotIn(left.name, names)
        self.assertFalse(left.exists())


class SafeNameTests(SimpleTestCase):
    def test_it_keeps_a_plain_name(self):
        self.assertEqual(media.safe_name("年度 报告.pdf"), "年度 报告.pdf")
        self.assertEqual(media.safe_name(".gitignore"), ".gitignore")

    def test_it_takes_off_paths_controls_and_turned_letters(self):
        self.assertEqual(media.safe_name("../../etc/passwd"), "passwd")
        self.assertEqual(media.safe_name("C:\\temp\\a.txt"), "a.txt")
        self.assertEqual(media.safe_name("photo\u202egpj.exe\x00\n"), "photo gpj.exe")
        self.assertEqual(media.safe_name("half \ud83d.txt"), "half \ufffd.txt")

    def test_it_leaves_nothing_of_a_name_that_is_none(self):
        for text in ("", "..", "dir/", "\u200b", "/"):
            self.assertEqual(media.safe_name(text), "")

    def test_it_shortens_a_long_name_before_its_ending(self):
        name = media.safe_name("x" * 500 + ".tar.gz")

        self.assertEqual(len(name), media.NAME_LENGTH)
        self.assertTrue(name.endswith("x.gz"))


class SpokenSizeTests(SimpleTestCase):
    def test_it_says_sizes_as_people_do(self):
        sizes = (0, 812, 150_400, 999_499, 999_500, 2_440_000, 20_000_000)

        said = [media.spoken_size(size) for size in sizes]

        self.assertEqual(
            said, ["0 bytes", "812 bytes", "150 kB", "999 kB", "1 MB", "2.4 MB", "20 MB"]
        )
