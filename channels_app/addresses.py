"""The only grammar of addresses and session keys. Source: DESIGN 3.

    address      channel ":" type ":" id [":topic:" thread]
    session key  address [":" suffix]

Typed text is percent-escaped, so a part may hold anything. Untyped ("legacy") text came from a bot
that escaped nothing: it is read and printed literally.

`channel:id` and `channel:unknown:id` are the same untyped value, which prints as the latter. Every
untyped text equals `str(x)` or `x.legacy_key` of what it parses to, byte for byte; a stored row
keeps whichever it had.

Read literally, no text is left for an untyped channel or id with a ":" of its own. No old row can
have one, but an inbound message without a type may. Those print escaped behind an empty part
(`matrix:unknown::!room%3Ax.org`), where all other text is invalid: an old row with an empty id is
not taken for one of them.
"""

import re
import secrets
from dataclasses import dataclass, replace
from typing import Literal, Self

TARGET_TYPES = ("private", "group", "channel", "thread")
UNKNOWN = "unknown"

WEB = "web"
API = "api"
AGENT = "agent"
RESERVED_CHANNELS = (WEB, API, AGENT)

MAX_KEY_BYTES = 1_000  # UTF-8 bytes of the printed text

KeyKind = Literal["typed", "typed-derived", "legacy", "legacy-derived", "invalid"]

_FORM = "write <channel>:<type>:<id>, for example milky:group:20001"
_SHOWN_CHARACTERS = 80  # of a refused text, in its error

_UNSAFE = re.compile("[%:\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ESCAPES = re.compile("(?:%[0-9A-Fa-f]{2})+")


class AddressError(ValueError):
    """Text or parts that name no chat or session; the message says the right form."""


@dataclass(frozen=True, slots=True)
class ChatAddress:
    """Where a message comes from or goes to. Fields hold plain text, never escapes."""

    channel: str
    target_type: str
    target_id: str
    thread_id: str = ""

    def __post_init__(self) -> None:
        _require_unicode(self.channel, self.target_type, self.target_id, self.thread_id)
        if not self.channel:
            raise AddressError(f"an address has an empty channel: {_FORM}")
        if not self.target_id:
            raise AddressError(f"an address on {_shown(self.channel)} has an empty id: {_FORM}")
        if self.target_type not in (*TARGET_TYPES, UNKNOWN):
            raise AddressError(
                f"{_shown(self.target_type)} is not a chat type: use {', '.join(TARGET_TYPES)}"
            )
        if self.thread_id and not self.typed:
            raise AddressError(
                f"{_shown(str(self))} has no chat type, so it cannot have the topic "
                f"{_shown(self.thread_id)}: only a typed address has topics"
            )
        _require_storable(str(self))

    @classmethod
    def of(
        cls,
        channel: str,
        target_type: str | None,
        target_id: str,
        *,
        is_group: bool = False,
        thread_id: str = "",
    ) -> Self:
        """An inbound message's address: a stated type wins, a missing one is never private."""
        known_type = target_type or ("group" if is_group else UNKNOWN)
        return cls(channel, known_type, target_id, thread_id)

    @classmethod
    def web(cls, user_pk: int) -> Self:
        return cls(WEB, "private", str(user_pk))

    @classmethod
    def api(cls, key_pk: int, *, user: str) -> Self:
        """The chat of one user of an API key; the number ends at the first dot."""
        if not user:
            raise AddressError(f"API key {key_pk} named no user: without one a turn has no chat")
        return cls(API, "private", f"{key_pk}.{user}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address, also the old four-part form whose fourth part is a topic.

        For the import and for text we printed; what people and models write goes through
        `target`. The suffix of an untyped session key is dropped, a typed session key is refused.
        """
        channel, target_type, target_id, rest = _read(text)
        if target_type == UNKNOWN:
            return cls(channel, target_type, target_id)
        match rest:
            case []:
                return cls(channel, target_type, target_id)
            case [thread] | ["topic", thread]:
                return cls(channel, target_type, target_id, _unescape(thread))
        base = SessionKey.parse(text).address
        raise AddressError(f"{_shown(text)} is a session key: write its address, {base}")

    @classmethod
    def target(cls, text: str | None) -> Self:
        """Read a `target` field: typed, printed as we print it, with no suffix and no old form."""
        if not text:
            raise AddressError(f"the target is missing: {_FORM}")
        match text.split(":"):
            case [target_id]:
                raise AddressError(
                    f"{_shown(text)} has no channel and no chat type: "
                    f"{_typed_forms('<channel>', target_id)}"
                )
            case [target_type, target_id] if target_type in TARGET_TYPES:
                raise AddressError(
                    f"{_shown(text)} has no channel: "
                    f"write <channel>:{target_type}:{_plain(target_id) or '<id>'}"
                )
            case [channel, target_type] if channel and target_type in TARGET_TYPES:
                raise AddressError(f"{_shown(text)} has no id: write {_plain(text)}:<id>")
            case [channel, word, target_id] if channel and target_id and _looks_like_a_type(word):
                raise AddressError(
                    f"{_shown(text)} has no chat type, {_shown(word)} is none: "
                    f"{_typed_forms(channel, target_id)}"
                )
        channel, target_type, target_id, rest = _read(text)
        if target_type == UNKNOWN:
            raise AddressError(
                f"{_shown(text)} has no chat type: {_typed_forms(channel, target_id)}"
            )
        chat = cls(channel, target_type, target_id)
        match rest:
            case []:
                return chat
            case ["topic", thread]:
                return chat.with_thread(_unescape(thread))
            case ["topic"]:
                raise AddressError(
                    f"{_shown(text)} has no topic: write {chat} or {chat}:topic:<topic>"
                )
            case [thread]:
                raise AddressError(
                    f"{_shown(text)} is a session key or an old topic address: write {chat} "
                    f"for the chat or {chat.with_thread(_unescape(thread))} for its topic"
                )
        raise AddressError(
            f"{_shown(text)} is a session key: write {SessionKey.parse(text).address}"
        )

    @property
    def typed(self) -> bool:
        return self.target_type != UNKNOWN

    @property
    def chat_key(self) -> str:
        """The text of the chat itself, the same for all its topics and sessions."""
        if self.typed:
            return f"{_escape(self.channel)}:{self.target_type}:{_escape(self.target_id)}"
        if ":" in self.channel or ":" in self.target_id:
            return f"{_escape(self.channel)}:{UNKNOWN}::{_escape(self.target_id)}"
        return f"{self.channel}:{UNKNOWN}:{self.target_id}"

    @property
    def legacy_key(self) -> str:
        """What the old bot called this chat, and every other chat of the same number."""
        return f"{self.channel}:{self.target_id}"

    def with_thread(self, thread_id: str) -> Self:
        """The same chat's address at a topic, or with "" at none."""
        return replace(self, thread_id=thread_id)

    def __str__(self) -> str:
        if not self.thread_id:
            return self.chat_key
        return f"{self.chat_key}:topic:{_escape(self.thread_id)}"


@dataclass(frozen=True, slots=True)
class SessionKey:
    """One session at an address.

    `suffix` is text with its escapes, since a ":" in it separates parts. That of a typed key is
    brought to the one form we print, so that equal sessions are equal values.
    """

    address: ChatAddress
    suffix: str = ""

    def __post_init__(self) -> None:
        if not self.suffix:
            return
        _require_unicode(self.suffix)
        parts = self.suffix.split(":")
        if not all(parts):
            raise AddressError(
                f"the suffix {_shown(self.suffix)} has an empty part: leave out the extra ':'"
            )
        if self.typed:
            object.__setattr__(self, "suffix", ":".join(_escape(_unescape(part)) for part in parts))
        # Tested after that: an escaped spelling of "topic" would print as a topic of the chat.
        if self.suffix.startswith("topic:"):
            raise AddressError(
                f"the suffix {_shown(self.suffix)} reads as a topic: "
                "give the address a thread_id instead"
            )
        _require_storable(str(self))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a session key; a fourth part without `topic` is a suffix."""
        channel, target_type, target_id, rest = _read(text)
        thread_id = ""
        if target_type != UNKNOWN and len(rest) > 1 and rest[0] == "topic":
            thread_id = _unescape(rest[1])
            rest = rest[2:]
        return cls(ChatAddress(channel, target_type, target_id, thread_id), ":".join(rest))

    @property
    def typed(self) -> bool:
        return self.address.typed

    @property
    def derived(self) -> bool:
        return bool(self.suffix)

    @property
    def kind(self) -> KeyKind:
        if self.typed:
            return "typed-derived" if self.derived else "typed"
        return "legacy-derived" if self.derived else "legacy"

    @property
    def chat_key(self) -> str:
        return self.address.chat_key

    @property
    def legacy_key(self) -> str:
        return _joined(self.address.legacy_key, self.suffix)

    @property
    def base(self) -> Self:
        return replace(self, suffix="")

    def at(self, address: ChatAddress) -> Self:
        """The same session at another address; an untyped suffix keeps its literal meaning."""
        if self.typed or not address.typed:
            return replace(self, address=address)
        escaped = ":".join(_escape(part) for part in self.suffix.split(":"))
        return replace(self, address=address, suffix=escaped)

    def new(self) -> Self:
        """A fresh session beside this one."""
        return self._made(secrets.token_hex(4))

    def cron(self, name: str) -> Self:
        """The session of a job, by its id or its session name, beside this one."""
        return self._made(f"cron:{_named(name, what='a cron session')}")

    def subagent(self, task_id: str) -> Self:
        """The session of a subagent that this session started."""
        if "subagent" in self.suffix.split(":"):
            raise AddressError(
                f"{_shown(str(self))} is a subagent's session and starts none of its own"
            )
        return self._made(
            _joined(self.suffix, f"subagent:{_named(task_id, what='a subagent session')}")
        )

    def _made(self, suffix: str) -> Self:
        if not self.typed:
            raise AddressError(
                f"{_shown(str(self))} has no chat type, so no session is made from it: "
                "migrate its key first"
            )
        return replace(self, suffix=suffix)

    def __str__(self) -> str:
        return _joined(str(self.address), self.suffix)


def classify(text: str) -> KeyKind:
    try:
        return SessionKey.parse(text).kind
    except AddressError:
        return "invalid"


def account(channel: str, user_id: str) -> str:
    """The text that names one person's account on a channel."""
    _require_unicode(channel, user_id)
    if not channel:
        raise AddressError(
            f"the account of {_shown(user_id)} has an empty channel: name the channel"
        )
    if not user_id:
        raise AddressError(f"an account on {_shown(channel)} has an empty id: name the user")
    text = f"{_escape(channel)}:user:{_escape(user_id)}"
    _require_storable(text)
    return text


def _read(text: str) -> tuple[str, str, str, list[str]]:
    """Return channel, type, id and the parts behind them, still escaped and none of them empty."""
    if not text:
        raise AddressError(f"the text is empty: {_FORM}")
    _require_unicode(text)
    match text.split(":"):
        case [_]:
            raise AddressError(f"{_shown(text)} has too few parts: {_FORM}")
        case ["", *_]:
            raise AddressError(f"{_shown(text)} has an empty channel: {_FORM}")
        case [channel, target_type, target_id, *rest] if target_type in TARGET_TYPES:
            parts = _unescape(channel), target_type, _unescape(target_id), rest
        case [channel, "unknown", "", target_id, *rest] if _had_colon(channel, target_id):
            parts = _unescape(channel), UNKNOWN, _unescape(target_id), rest
        case [channel, "unknown", target_id, *rest]:
            parts = channel, UNKNOWN, target_id, rest
        case [channel, target_id, *rest]:
            parts = channel, UNKNOWN, target_id, rest
    channel, target_type, target_id, rest = parts
    if not target_id:
        typed_form = f"write {_plain(channel)}:{target_type}:<id>"
        forms = _typed_forms(channel, "<id>") if target_type == UNKNOWN else typed_form
        raise AddressError(f"{_shown(text)} has an empty id: {forms}")
    if not all(rest):
        raise AddressError(f"{_shown(text)} has an empty part: leave out the extra ':'")
    return parts


def _had_colon(channel: str, target_id: str) -> bool:
    """Is this exactly how the parts of an untyped address that holds a colon print?"""
    parts = _unescape(channel), _unescape(target_id)
    return any(":" in part for part in parts) and (channel, target_id) == tuple(map(_escape, parts))


def _escape(part: str) -> str:
    return _UNSAFE.sub(lambda match: "".join(f"%{octet:02X}" for octet in match[0].encode()), part)


def _unescape(part: str) -> str:
    return _ESCAPES.sub(_decoded, part)


def _decoded(escapes: re.Match[str]) -> str:
    text = escapes[0]
    characters = []
    octets_read = 0
    for character in bytes.fromhex(text.replace("%", "")).decode(errors="surrogateescape"):
        if "\ud800" <= character <= "\udfff":  # an octet that is no UTF-8 keeps its spelling
            start = 3 * octets_read
            characters.append(text[start : start + 3])
            octets_read += 1
        else:
            characters.append(character)
            octets_read += len(character.encode())
    return "".join(characters)


def _joined(head: str, tail: str) -> str:
    return f"{head}:{tail}" if head and tail else head or tail


def _named(name: str, *, what: str) -> str:
    _require_unicode(name)
    if not name:
        raise AddressError(f"{what} has an empty name: give the job or task it belongs to")
    return _escape(name)


def _require_unicode(*parts: str) -> None:
    for part in parts:
        try:
            part.encode()
        except UnicodeEncodeError:
            raise AddressError(
                f"{_shown(part)} holds half a character (a lone surrogate), which cannot be "
                "stored: remove it"
            ) from None


def _require_storable(text: str) -> None:
    size = len(text.encode())
    if size > MAX_KEY_BYTES:
        raise AddressError(
            f"{_shown(text)} is {size} bytes long: a key has at most {MAX_KEY_BYTES}"
        )


def _looks_like_a_type(word: str) -> bool:
    """A word in the type's place that is none (`friend`), not the id of an old session key."""
    return word.isalpha() and word not in (*TARGET_TYPES, UNKNOWN)


def _typed_forms(channel: str, target_id: str) -> str:
    channel, target_id = _plain(channel), _plain(target_id)
    return f"write {channel}:private:{target_id} or {channel}:group:{target_id}"


def _shown(text: str) -> str:
    return f'"{_plain(text)}"'


def _plain(text: str) -> str:
    """One line of printable text, cut when long: errors go to logs, terminals and models."""
    cut = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
