"""What the model is shown of files: pictures it can see, texts quoted as untrusted data, a line for each other one.

Chosen from the newest turn backwards, so that what is at hand comes first; shown in the order of the turns.
"""

import base64
import logging
from dataclasses import dataclass

from django.conf import settings

from channels_app import media
from memory_app.files import placeholder
from memory_app.models import Attachment, MemoryTurn, Role
from nahida.agent.documents import BYTES_A_CHARACTER, text_of
from nahida.agent.pictures import Picture, picture
from nahida.agent.vocabulary import IMAGE_TOKENS, estimated_tokens
from nahida.config import Files

logger = logging.getLogger(__name__)

HEAD = 1_000_000  # bytes in which a picture says what it is
# What the strictest of the usual providers take: 5 MB in base64, 8000 pixels a side.
LARGEST_SHOWN = 3_700_000  # bytes
LONGEST_SIDE = 8_000  # pixels
BYTES_A_TOKEN = 3  # as they are estimated
LEAST_QUOTED = 100  # tokens; less of a text is not worth showing


@dataclass(frozen=True, slots=True)
class Exhibit:
    """How one file is shown. `image` is a data: URL, `quote` what is quoted of a text file."""

    file: Attachment
    note: str = ""
    image: str = ""
    quote: str = ""

    @property
    def tokens(self) -> int:
        words = estimated_tokens(placeholder(self.file, self.note) + self.quote)
        return words + (IMAGE_TOKENS if self.image else 0)


@dataclass(frozen=True, slots=True)
class Shown:
    """The files of a turn as they stand under its text."""

    text: str = ""
    images: tuple[str, ...] = ()


class Exhibits:
    """The files of one request. Without `sees_images` no picture is among them."""

    def __init__(self, *, sees_images: bool) -> None:
        self._limits: Files = settings.NAHIDA.files
        self._images_left = self._limits.shown_images if sees_images else 0
        self._chosen: dict[int, list[Exhibit]] = {}
        self._pictures = 0

    def choose(self, turn: MemoryTurn, *, room: int) -> int:
        """Choose how the files of a turn are shown, within `room` tokens but for their lines. Return the tokens they take.

        Of a turn of our own nothing is chosen: its text has said what was sent with it.
        """
        if turn.role == Role.ASSISTANT:
            return 0
        files = sorted(turn.attachments.all(), key=lambda file: file.pk)
        chosen = []
        for file in reversed(files):
            exhibit = self._exhibit(file, room=room)
            room -= exhibit.tokens
            self._images_left -= bool(exhibit.image)
            chosen.append(exhibit)
        self._chosen[turn.pk] = chosen[::-1]
        return sum(exhibit.tokens for exhibit in chosen)

    def show(self, turn: MemoryTurn) -> Shown:
        """Return the chosen files of a turn. Asked in the order of the turns: pictures are numbered as they come."""
        lines, images = [], []
        for exhibit in self._chosen.get(turn.pk, ()):
            note = exhibit.note
            if exhibit.image:
                images.append(exhibit.image)
                self._pictures += 1
                note = f"shown as picture {self._pictures}"
            lines.append(placeholder(exhibit.file, note))
            if exhibit.quote:
                lines.append(exhibit.quote)
        return Shown("\n".join(lines), tuple(images))

    def _exhibit(self, file: Attachment, *, room: int) -> Exhibit:
        if file.error:
            return Exhibit(file, f"could not be downloaded: {file.error}")
        if not file.file:
            return Exhibit(file)
        limit = self._limits.shown_characters
        try:
            head = media.read(file.file, most=max(HEAD, limit * BYTES_A_CHARACTER))
        except media.MissingFileError:
            logger.exception("attachment %s", file.pk)
            return Exhibit(file, "no longer kept")
        if found := picture(head):
            return self._picture(file, found, room=room)
        return _document(file, head, limit=limit, room=room)

    def _picture(self, file: Attachment, found: Picture, *, room: int) -> Exhibit:
        size = f"{found.width}x{found.height}"
        seen = "" if size in file.text else f"{size} pixels, "
        if not self._images_left or room < IMAGE_TOKENS:
            return Exhibit(file, f"{seen}not shown")
        content = media.read(file.file)
        if len(content) > LARGEST_SHOWN or max(found.width, found.height) > LONGEST_SIDE:
            return Exhibit(file, f"{seen}too large to be shown")
        encoded = base64.b64encode(content).decode("ascii")
        return Exhibit(file, image=f"data:{found.mime};base64,{encoded}")


def _document(file: Attachment, head: bytes, *, limit: int, room: int) -> Exhibit:
    text = text_of(head, name=file.name, mime=file.mime, limit=limit)
    if text is None:
        return Exhibit(file, "neither a text nor a picture, so not shown")
    if not limit or room < LEAST_QUOTED:
        return Exhibit(file, "not shown")
    quote = _quoted(text[:limit])
    fitting = quote.encode()[: room * BYTES_A_TOKEN].decode(errors="ignore")
    is_cut = len(text) > limit or len(fitting) < len(quote)
    what = "the beginning of its text" if is_cut else "its text"
    return Exhibit(file, f"{what} quoted as material, not the sender's own words", quote=fitting)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())
