"""What a message of the Bot API holds: its text, its files, and words for what is neither. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from channels_app.messages import Attachment
from channels_app.telegram import marks, rich
from channels_app.telegram.wire import Node

PLACEHOLDER_LENGTH = 1000  # characters


@dataclass(frozen=True, slots=True)
class Content:
    """`skipped` says why there is nothing, where that is known."""

    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    entities: tuple[marks.Entity, ...] = ()
    skipped: str = ""

    @property
    def shown(self) -> str:
        """What a person would quote."""
        return self.text or " ".join(
            f"[{file.kind}] {file.text}".strip() for file in self.attachments
        )


def read(message: Node) -> Content:
    written = message.text("text") or message.text("caption")
    entities = (*marks.entities(message, written), *rich.mentions(message))
    holders = (message, *rich.blocks(message))
    lines = (
        marks.written_out(written, entities),
        rich.text(message),
        *(line for holder in holders for line in _placeholders(holder)),
    )
    found = Content(
        "\n".join(line for line in lines if line.strip()),
        tuple(file for holder in holders for file in _attachments(holder)),
        entities,
    )
    service = next((key for key in message if key in SERVICE or key.endswith(SERVICE_ENDS)), "")
    return replace(found, skipped=f"a service message ({service})") if service else found


def _attachments(message: Node) -> Iterator[Attachment]:
    if photos := message.nodes("photo"):
        best = max(
            photos, key=lambda photo: (photo.number("width") or 0) * (photo.number("height") or 0)
        )
        yield _file("image", best, text=_size(best), mime="image/jpeg")
    for key, kind in FILES.items():
        if message.has(SHOWN_AS.get(key, "")):
            continue
        if file := message.node(key):
            yield _file(kind, file, text=_described(key, file), mime=file.text("mime_type"))


def _file(kind: str, file: Node, *, text: str, mime: str) -> Attachment:
    return Attachment(
        kind,
        text=text,
        platform_id=file.text("file_id"),
        name=file.text("file_name"),
        mime=mime,
        size=file.number("file_size"),
    )


def _described(key: str, file: Node) -> str:
    if key == "sticker":
        return file.text("emoji")
    words = (file.text("title"), file.text("performer"), _size(file), _duration(file))
    return " ".join(word for word in words if word)


def _size(file: Node) -> str:
    width, height = file.number("width"), file.number("height")
    return f"{width}x{height}" if width and height else ""


def _duration(file: Node) -> str:
    seconds = file.number("duration")
    return f"{seconds} s" if seconds else ""


# The same thing again, for clients that do not know the newer kind, and a picture that the model can see.
SHOWN_AS: Mapping[str, str] = {"document": "animation", "live_photo": "photo"}
FILES: Mapping[str, str] = {
    "animation": "video",
    "document": "file",
    "audio": "audio",
    "voice": "voice",
    "video": "video",
    "video_note": "video",
    "live_photo": "video",
    "voice_note": "voice",  # of a rich message
    "sticker": "sticker",
}


def _placeholders(message: Node) -> Iterator[str]:
    for key, describe in DESCRIBED.items():
        if found := message.node(key):
            word = key.replace("_", " ")
            yield f"[{word} {describe(found)}".strip()[:PLACEHOLDER_LENGTH] + "]"
            if key == "venue":
                return  # its place comes a second time, as a location


def _place(location: Node) -> str:
    return f"{location.real('latitude') or 0:.5f}, {location.real('longitude') or 0:.5f}"


def _poll(poll: Node) -> str:
    options = "; ".join(option.text("text") for option in poll.nodes("options"))
    return f'"{poll.text("question")}": {options}'


def _contact(contact: Node) -> str:
    name = f"{contact.text('first_name')} {contact.text('last_name')}".strip()
    return f"{name} {contact.text('phone_number')}"


def _checklist(checklist: Node) -> str:
    tasks = "; ".join(task.text("text") for task in checklist.nodes("tasks"))
    return f'"{checklist.text("title")}": {tasks}'


def _nothing(found: Node) -> str:
    return ""


DESCRIBED: Mapping[str, Callable[[Node], str]] = {
    "venue": lambda venue: (
        f"{venue.text('title')}, {venue.text('address')}, {_place(venue.node('location'))}"
    ),
    "location": _place,
    "contact": _contact,
    "poll": _poll,
    "dice": lambda dice: f"{dice.text('emoji')} {dice.number('value') or ''}".strip(),
    "game": lambda game: game.text("title"),
    "checklist": _checklist,
    "invoice": lambda invoice: invoice.text("title"),
    "story": _nothing,
    "paid_media": _nothing,
    "giveaway": _nothing,
}

# What a chat tells about itself; most of them have one of these endings.
SERVICE_ENDS = (
    "_created",
    "_deleted",
    "_changed",
    "_edited",
    "_closed",
    "_reopened",
    "_hidden",
    "_unhidden",
)
SERVICE = frozenset(
    {
        "new_chat_members",
        "left_chat_member",
        "new_chat_title",
        "new_chat_photo",
        "delete_chat_photo",
        "message_auto_delete_timer_changed",
        "pinned_message",
        "successful_payment",
        "refunded_payment",
        "users_shared",
        "chat_shared",
        "connected_website",
        "write_access_allowed",
        "passport_data",
        "proximity_alert_triggered",
        "boost_added",
        "chat_background_set",
        "gift",
        "unique_gift",
        "giveaway_completed",
        "giveaway_winners",
        "video_chat_scheduled",
        "video_chat_started",
        "video_chat_ended",
        "video_chat_participants_invited",
        "web_app_data",
        "checklist_tasks_done",
        "checklist_tasks_added",
    }
)
