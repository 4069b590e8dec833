"""Who may do what: one table for commands and tools alike, the same on every channel."""

from collections.abc import Iterable, Mapping
from enum import IntEnum

from channels_app.messages import Sender
from sessions_app.models import Chat


class Rights(IntEnum):
    """In rising order. In a private chat the person is the admin of his chat."""

    MEMBER = 0
    ADMIN = 1
    OWNER = 2

    @property
    def word(self) -> str:
        return self.name.lower()

    @classmethod
    def parse(cls, word: str) -> "Rights":
        """Read a turn's stored rights; a turn without any has the least."""
        return cls[word.upper()] if word else cls.MEMBER


NEEDED: Mapping[str, Rights] = {
    "/help": Rights.MEMBER,
    "/whoami": Rights.MEMBER,
    "/status": Rights.MEMBER,
    "/sessions": Rights.MEMBER,
    "/stop": Rights.MEMBER,
    "/new": Rights.MEMBER,
    "/reset": Rights.MEMBER,
    "/model": Rights.ADMIN,
    "message": Rights.MEMBER,
    "message to another chat": Rights.OWNER,
}


class RefusedError(Exception):
    """The sender may not do this; the message says who may."""


def rights_of(sender: Sender, chat: Chat) -> Rights:
    """Return what a sender may do in a chat. A chat marked as the owner's lifts its admins to owners."""
    if not (chat.is_private or sender.is_admin):
        return Rights.MEMBER
    return Rights.OWNER if chat.is_owner else Rights.ADMIN


def least(words: Iterable[str]) -> Rights:
    return min(Rights.parse(word) for word in words)


def require(act: str, rights: Rights) -> None:
    """Raise `RefusedError` unless the table lets these rights do `act`."""
    needed = NEEDED[act]
    if rights < needed:
        who = "an admin of this chat" if needed == Rights.ADMIN else "the owner"
        raise RefusedError(f"{act} needs {who}.")
