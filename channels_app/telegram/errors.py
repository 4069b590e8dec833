"""What an answer of the Bot API means for us. Pure. Source: protocols/telegram.md, section 6.

Code first, then small lower-cased parts of the description: both may change at any time, so what is not known counts as permanent if the
server refused a message, and as unknown if it may have taken it.
"""

import json
import re
from typing import Any

from channels_app.addresses import ChatAddress
from channels_app.channels import ListenError, Refused, SendError

# Where a flood says no time of its own, in seconds.
FLOOD_S = 30.0
# How long a listener leaves alone what only a person can put right.
WAIT_FOR_PERSON_S = 60.0

_THREAD = ("message thread not found", "topic_deleted", "topic_id_invalid")
_REPLY = ("message to be replied", "message to reply", "replied message", "quote_text_invalid")
_MARKUP = ("entit",)  # "can't parse entities", "entity beginning at …", ENTITY_BOUNDS_INVALID
_NO_CHAT = ("chat not found", "peer_id_invalid", "channel_private", "user not found")


class RefusalError(Exception):
    """The Bot API answered with an error."""

    def __init__(
        self, code: int, description: str, *, retry_after: float | None, moved_to: int | None
    ) -> None:
        super().__init__(f"{code} {description}")
        self.code = code
        self.description = description
        self.retry_after = retry_after
        self.moved_to = moved_to

    def says(self, *parts: str) -> bool:
        return any(part in self.description.lower() for part in parts)


class StrangeAnswerError(Exception):
    """What answered does not speak the Bot API: something between us, or a server that breaks down."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status} with a body that is not the Bot API's")
        self.status = status


def result_of(status: int, content: bytes) -> Any:
    """Return the result in an answer. Raises `RefusalError` or `StrangeAnswerError`."""
    try:
        answer = json.loads(content)
    except ValueError as error:
        raise StrangeAnswerError(status) from error
    match answer:
        case {"ok": True, "result": result}:
            return result
        case {"ok": False}:
            raise _refused(status, answer)
    raise StrangeAnswerError(status)


def send_error(error: RefusalError | StrangeAnswerError, *, channel: str) -> SendError:
    """Say what an error means for a message. `channel` is whose chats the server's numbers name."""
    if isinstance(error, StrangeAnswerError):
        return _strange(error)
    text = str(error)
    match error.code:
        case 400:
            return _bad_request(error, channel=channel)
        case 403:
            return SendError(text, permanent=True, unreachable=True)
        case 409:
            return SendError(text, not_sent=True)
        case 429:
            return SendError(text, retry_after=_flood_s(error))
        case code if 400 <= code < 500:
            return SendError(text, permanent=True)
    return SendError(text)


def listen_error(error: RefusalError | StrangeAnswerError) -> ListenError:
    """Say why a bot cannot be listened to, and what a person can do about it."""
    if isinstance(error, StrangeAnswerError):
        return ListenError(
            f"what answers is not the Bot API ({error}): if it stays so, check base_url",
            status="unreachable",
        )
    match error.code:
        case 401:
            return _needs_person(
                "unauthorized",
                "Telegram does not know the token: it was revoked or mistyped. Copy it again from @BotFather",
            )
        case 404:
            return _needs_person(
                "misconfigured",
                "the Bot API knows no such address (404): check the form of the token, and base_url",
            )
        case 409:
            return _conflict(error)
        case 429:
            return ListenError(str(error), status="flooded", wait_s=_flood_s(error))
        case code if code >= 500:
            return ListenError(f"the Bot API is out of order ({error})", status="unreachable")
    return ListenError(f"the Bot API refused to be read ({error})", status="refused")


def _refused(status: int, answer: dict[str, Any]) -> RefusalError:
    code, parameters = answer.get("error_code"), answer.get("parameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    return RefusalError(
        code if isinstance(code, int) else status,
        str(answer.get("description") or "no reason given"),
        retry_after=_number(parameters.get("retry_after")),
        moved_to=_number(parameters.get("migrate_to_chat_id")),
    )


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _bad_request(error: RefusalError, *, channel: str) -> SendError:
    text = str(error)
    if error.moved_to is not None:
        return SendError(text, migrated_to=ChatAddress(channel, "group", str(error.moved_to)))
    if error.says(*_THREAD):
        return SendError(text, refused=Refused.THREAD)
    if error.says(*_REPLY):
        return SendError(text, refused=Refused.REPLY)
    if error.says(*_MARKUP):
        return SendError(text, refused=Refused.MARKUP)
    return SendError(text, permanent=True, unreachable=error.says(*_NO_CHAT))


def _strange(error: StrangeAnswerError) -> SendError:
    """A redirect or a refusal of something between us never came to Telegram; after the rest nobody knows."""
    if error.status == 413:
        return SendError(str(error), permanent=True)
    return SendError(str(error), not_sent=300 <= error.status < 500)


def _flood_s(error: RefusalError) -> float:
    if error.retry_after is not None:
        return error.retry_after
    written = re.search(r"retry after (\d+)", error.description, re.IGNORECASE)
    return float(written[1]) if written else FLOOD_S


def _conflict(error: RefusalError) -> ListenError:
    if error.says("webhook"):
        return _needs_person(
            "conflict",
            "a webhook is set for this bot, so it cannot be polled: "
            'run with mode = "webhook" or let Nahida delete it',
        )
    return _needs_person(
        "conflict",
        "another program reads this bot's updates: stop it, or give this one a bot of its own",
    )


def _needs_person(status: str, message: str) -> ListenError:
    return ListenError(message, status=status, wait_s=WAIT_FOR_PERSON_S)
