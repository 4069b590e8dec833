"""Files in requests: base64 in the JSON, checked as a whole before any of them is kept."""

import binascii
import mimetypes
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum

from django.conf import settings
from ninja import Field, Schema
from pydantic import ConfigDict

from channels_app import media
from channels_app.messages import Attachment
from nahida.agent.pictures import Picture, picture
from nahida.gateway.fields import Words
from nahida.gateway.problems import InvalidRequestError, TooLargeError

MOST_FILES = 10  # of one message


class FileKind(StrEnum):
    IMAGE = "image"
    VOICE = "voice"
    FILE = "file"


class FileToSend(Schema):
    model_config = ConfigDict(extra="forbid", from_attributes=True)

    kind: FileKind = Field(description="how it is shown; image: PNG, JPEG, GIF or WebP")
    name: Words = Field("", description="what it is called there, such as report.pdf")
    data: str = Field(
        min_length=1,
        description="its content in base64, without line breaks or a data: in front",
        json_schema_extra={"contentEncoding": "base64"},
    )


@contextmanager
def kept(files: Sequence[FileToSend]) -> Iterator[tuple[Attachment, ...]]:
    """Keep the files of a message for as long as rows will name them: what is raised inside removes them again.

    Raises `InvalidRequestError` and `TooLargeError` before anything is kept.
    """
    checked = [_checked(file, place=f"body.attachments.{at}") for at, file in enumerate(files)]
    largest = settings.NAHIDA.files.largest
    if (size := sum(len(content) for content, _ in checked)) > largest:
        raise TooLargeError(
            f"the attachments have {media.spoken_size(size)} together: at most"
            f" {media.spoken_size(largest)} are sent at once (files.largest_mb)"
        )
    stored = tuple(_stored(content, like=like) for content, like in checked)
    try:
        yield stored
    except Exception:
        for file in stored:
            media.remove(file.file)
        raise


def _checked(file: FileToSend, *, place: str) -> tuple[bytes, Attachment]:
    try:
        content = b64decode(file.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRequestError(f"{place}.data is not base64 ({error})") from error
    found = picture(content)
    if file.kind == FileKind.IMAGE and found is None:
        raise InvalidRequestError(
            f"{place} is no PNG, JPEG, GIF or WebP: send it with the kind file"
        )
    name = media.safe_name(file.name) or _unnamed(file.kind, found)
    mime = found.mime if found else _mime(content, name)
    return content, Attachment(file.kind.value, name=name, mime=mime, size=len(content))


def _unnamed(kind: FileKind, found: Picture | None) -> str:
    """Some platforms go by the ending of a name."""
    return f"{kind.value}.{found.mime.removeprefix('image/')}" if found else kind.value


def _mime(content: bytes, name: str) -> str:
    """Return the type of a file that is no picture. Voice is Ogg on some platforms or no voice at all, whatever its name."""
    if content.startswith(b"OggS"):
        return "audio/ogg"
    return mimetypes.guess_type(name)[0] or ""


def _stored(content: bytes, *, like: Attachment) -> Attachment:
    return replace(like, file=media.keep(content))
