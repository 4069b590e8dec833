"""What the old bot wrote beside each turn: where it came from, who said it, when. Pure. Source: legacy/LEGACY_DB.md, 5 to 7."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from channels_app.addresses import TARGET_TYPES, AddressError, ChatAddress, account
from channels_app.messages import Attachment, storable
from nahida.legacy.importing.reader import whole

LONGEST_ACCOUNT = 300  # characters
NAME_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Envelope:
    """`origin` is "" where the envelope proves no type: then nothing is guessed."""

    origin: str = ""
    sender: str = ""
    sender_name: str = ""
    sent_at: datetime | None = None


def envelope(metadata: dict[str, Any]) -> Envelope:
    context = metadata.get("message_context")
    if not isinstance(context, dict):
        return Envelope()
    channel = _word(context.get("channel"))
    return Envelope(
        origin=_origin(channel, context),
        sender=_account(channel, _word(context.get("sender_id"))),
        sender_name=storable(_word(context.get("sender_display_name")))[:NAME_LENGTH],
        sent_at=_instant(context.get("timestamp")),
    )


def _word(value: Any) -> str:
    """Return a text or whole number without the blanks around it, "" for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip() if isinstance(value, str) else ""


def _origin(channel: str, context: dict[str, Any]) -> str:
    target_type, target_id = context.get("chat_type"), _word(context.get("chat_id"))
    if target_type not in TARGET_TYPES or not channel or not target_id:
        return ""
    try:
        return str(ChatAddress(channel, target_type, target_id))
    except AddressError:
        return ""


def _account(channel: str, sender_id: str) -> str:
    if not channel or not sender_id:
        return ""
    try:
        found = account(channel, sender_id)
    except AddressError:
        return ""
    return found if len(found) <= LONGEST_ACCOUNT else ""


def _instant(seconds: Any) -> datetime | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def attachments(metadata: dict[str, Any]) -> list[Attachment]:
    """Return the files of a turn; the old bot kept them elsewhere, so they are known by name only."""
    listed = metadata.get("attachments")
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return [
        Attachment(
            kind=_word(each.get("kind"))[:16] or "file",
            text=storable(_word(each.get("description")) or _word(each.get("alt_text"))),
            platform_id=storable(_word(each.get("platform_id"))),
            mime=storable(_word(each.get("mime_type")))[:100],
            size=whole(each.get("file_size")),
        )
        for each in found
    ]
