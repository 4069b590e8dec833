"""The media store: bytes of files that came or go, under random names in the data directory. Nothing in it has a URL.

Written before the row that names it, removed after that row: a kill leaves a file that no row names, never a row without its file.
"""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from django.conf import settings

from channels_app.messages import storable

NAME_LENGTH = 200  # characters of a name that people see
_NAME = re.compile(r"[0-9a-f]{32}")
_UNFINISHED = ".part"
# Controls, and characters that show nothing or turn the reading direction so that an ending looks like another.
_UNSAFE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


class MissingFileError(Exception):
    """A name under which nothing is kept."""

    def __init__(self, name: str) -> None:
        super().__init__(f'the file "{name}" is no longer kept')


def keep(content: bytes) -> str:
    """Store `content` and return its name. When this returns, a loss of power does not lose it."""
    name = secrets.token_hex(16)
    path = _path(name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_suffix(_UNFINISHED)
    with open(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    _sync(path.parent)
    return name


def read(name: str, *, most: int = -1) -> bytes:
    """Return what is kept under `name`, or its first `most` bytes. Raises `MissingFileError`."""
    try:
        with _path(name).open("rb") as file:
            return file.read(most)
    except FileNotFoundError as error:
        raise MissingFileError(name) from error


def remove(name: str) -> None:
    """Forget what is kept under `name`, if anything is."""
    with suppress(MissingFileError):
        _path(name).unlink(missing_ok=True)


def older_than(instant: datetime, *, prefix: str) -> Iterator[str]:
    """Yield the names that begin with `prefix` (of hex digits) and were written before `instant`.

    What a killed writer left unfinished is deleted on the way.
    """
    for path in Path(settings.MEDIA_ROOT).glob(f"{prefix}*"):
        try:
            is_young = path.stat().st_mtime >= instant.timestamp()
        except FileNotFoundError:  # removed meanwhile
            continue
        if is_young:
            continue
        if path.suffix == _UNFINISHED:
            path.unlink(missing_ok=True)
        elif _NAME.fullmatch(path.name):
            yield path.name


def safe_name(text: str) -> str:
    """Return a file's name as it may be shown and sent: no path, no controls, no turned letters, "" if nothing is left."""
    name = " ".join(_UNSAFE.sub(" ", re.split(r"[/\\]", storable(text))[-1]).split())
    if len(name) > NAME_LENGTH:
        stem, _, ending = name.rpartition(".")
        ending = f".{ending}" if stem and len(ending) < NAME_LENGTH // 2 else ""
        name = name[: NAME_LENGTH - len(ending)] + ending
    return "" if name.strip(".") == "" else name


def spoken_size(size: int) -> str:
    """Return a number of bytes as people say it: 812 bytes, 150 kB, 2.4 MB."""
    if size < 1_000:
        return f"{size} bytes"
    if size < 999_500:
        return f"{size / 1_000:.0f} kB"
    return f"{size / 1_000_000:.1f}".removesuffix(".0") + " MB"


def _path(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise MissingFileError(name)
    return Path(settings.MEDIA_ROOT, name)


def _sync(directory: Path) -> None:
    """Make the names in a directory as durable as its files."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
