"""Pictures by their bytes: what kind they are and how large, without decoding them. Pure."""

import struct
from dataclasses import dataclass

_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length


@dataclass(frozen=True, slots=True)
class Picture:
    """`width` and `height` are in pixels."""

    mime: str
    width: int
    height: int


def picture(content: bytes) -> Picture | None:
    """Return what picture `content` is; None if none that models take, whatever its name says."""
    for mime, size in _KINDS:
        try:
            found = size(content)
        except (struct.error, IndexError):  # it ends in the midst of its head
            continue
        if found and all(found):
            return Picture(mime, *found)
    return None


def _png(content: bytes) -> tuple[int, int] | None:
    if not content.startswith(b"\x89PNG\r\n\x1a\n") or content[12:16] != b"IHDR":
        return None
    return _pair(">II", content, 16)


def _gif(content: bytes) -> tuple[int, int] | None:
    return _pair("<HH", content, 6) if content[:6] in (b"GIF87a", b"GIF89a") else None


def _jpeg(content: bytes) -> tuple[int, int] | None:
    """Walk the segments up to the frame's head, which comes before any pixel."""
    if not content.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    while content[at] == 0xFF:
        marker = content[at + 1]
        if marker in _JPEG_SIZES:
            height, width = _pair(">HH", content, at + 5)
            return width, height
        if marker == 0xFF:  # padding
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        else:
            at += 2 + struct.unpack_from(">H", content, at + 2)[0]
    return None


def _webp(content: bytes) -> tuple[int, int] | None:
    if content[:4] != b"RIFF" or content[8:12] != b"WEBP":
        return None
    kind = content[12:16]
    if kind == b"VP8X":
        width, height = (int.from_bytes(content[at : at + 3], "little") for at in (24, 27))
        return (width + 1, height + 1) if len(content) >= 30 else None
    if kind == b"VP8L" and content[20] == 0x2F:
        packed = struct.unpack_from("<I", content, 21)[0]
        return (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and content[23:26] == b"\x9d\x01\x2a":
        width, height = _pair("<HH", content, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _pair(form: str, content: bytes, at: int) -> tuple[int, int]:
    one, two = struct.unpack_from(form, content, at)
    return one, two


_KINDS = (
    ("image/png", _png),
    ("image/jpeg", _jpeg),
    ("image/gif", _gif),
    ("image/webp", _webp),
)
