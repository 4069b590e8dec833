"""Kinds of text in requests. Whatever is sent, no database gets a NUL or half a character to see."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from channels_app.addresses import AddressError, ChatAddress
from channels_app.messages import storable
from sessions_app.models import Lane

MAX_TEXT = 100_000  # characters of one message
MAX_NAME = 200
MAX_KEY = 3_000  # characters of a key as it may be typed; stored ones are shorter
MAX_THREAD = Lane._meta.get_field("thread").max_length or 0


def _storable(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


def _whole(text: str) -> str:
    if "\x00" in text:
        raise ValueError("holds a NUL character: remove it")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty: write something")
    return text


# What people read: odd characters are taken out or replaced.
AnyText = Annotated[str, BeforeValidator(_storable), Field(max_length=MAX_TEXT)]
Text = Annotated[AnyText, AfterValidator(_not_blank)]
Title = Annotated[str, BeforeValidator(_storable), Field(max_length=300)]
Words = Annotated[str, BeforeValidator(_storable), Field(max_length=MAX_NAME)]
# What names something: changed it would name something else, so it is refused.
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(_whole)]
Key = Annotated[str, Field(min_length=1, max_length=MAX_KEY), AfterValidator(_whole)]


def require_room(address: ChatAddress) -> None:
    """Raise `AddressError` for an address that is well-formed and still no platform's: its row could not be stored."""
    if any("\x00" in part for part in (address.channel, address.target_id, address.thread_id)):
        raise AddressError(f"{address} holds a NUL character (%00): remove it")
    if len(address.thread_id) > MAX_THREAD:
        raise AddressError(f"the topic of {address.chat_key} has more than {MAX_THREAD} characters")
