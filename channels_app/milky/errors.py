"""What an answer of a protocol end means for us. Pure. Source: protocols/milky.md, section 3.

Few codes are fixed by the protocol, the others are the end's own or QQ's: a positive one is QQ's refusal; after a negative one that is
not known here, such as -500, nobody knows whether the message went out.
"""

import json
from typing import Any

from channels_app.channels import ListenError, Refused, SendError

BAD_PARAMETERS = -400
LOGGED_OUT = -403
LOGGED_OUT_STATUS = "logged out"
NOT_FOUND = -404

# How long an account that is not logged in is left alone, in seconds.
LOGIN_PAUSE_S = 30.0
# How long a listener leaves alone what only a person can put right.
WAIT_FOR_PERSON_S = 60.0

UNAUTHORIZED = "the protocol end does not know the token (HTTP 401): set the same on both sides"

_NEVER = (404, 405, 413, 415)
_NO_SUCH_API = (404, 405, 415)


class RefusalError(Exception):
    """The protocol end answered that it failed, whether it calls that "failed" or "ok"."""

    def __init__(self, retcode: int, message: str) -> None:
        super().__init__(f"{retcode} {message}")
        self.retcode = retcode
        self.message = message

    def says(self, *parts: str) -> bool:
        return any(part in self.message.lower() for part in parts)


class StrangeAnswerError(Exception):
    """No answer of an API: a bare HTTP status, or something that is not of this protocol."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}" if status != 200 else "an answer that is not Milky's")
        self.status = status


def data_of(status: int, content: bytes) -> dict[str, Any]:
    """Return the data in an answer. Raises `RefusalError` or `StrangeAnswerError`."""
    if status != 200:  # only then there is a body that means something
        raise StrangeAnswerError(status)
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StrangeAnswerError(status) from error
    match answer:
        case {"status": "ok", "retcode": 0, **rest}:
            return _object(rest.get("data", {}), status)
        case {"status": "ok" | "failed", "retcode": int(retcode)}:
            raise RefusalError(retcode, str(answer.get("message") or "no reason given"))
    raise StrangeAnswerError(status)


def _object(data: Any, status: int) -> dict[str, Any]:
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise StrangeAnswerError(status)
    return data


def send_error(error: RefusalError | StrangeAnswerError) -> SendError:
    """Say what an error means for a message."""
    if isinstance(error, StrangeAnswerError):
        return _strange(error)
    text = str(error)
    match error.retcode:
        case code if code == LOGGED_OUT:
            return SendError(f"the QQ account is not logged in ({text})", retry_after=LOGIN_PAUSE_S)
        case code if code == NOT_FOUND:
            quoted = Refused.REPLY if error.says("message", "消息") else None
            return SendError(text, permanent=True, refused=quoted)
        case code if code == BAD_PARAMETERS or code > 0:
            return SendError(text, permanent=True)
    return SendError(text)


def _strange(error: StrangeAnswerError) -> SendError:
    """What something between us refused never came to the protocol end; after the rest nobody knows."""
    if error.status == 401:
        # No message is at fault, and what waits can still go out once a person has put it right.
        return SendError(UNAUTHORIZED, retry_after=WAIT_FOR_PERSON_S)
    if error.status in _NEVER:
        return SendError(str(error), permanent=True)
    return SendError(str(error), not_sent=300 <= error.status < 500)


def listen_error(error: RefusalError | StrangeAnswerError) -> ListenError:
    """Say why an account cannot be listened to, and what a person can do about it."""
    if isinstance(error, RefusalError):
        return _refused(error)
    if error.status == 401:
        return ListenError(UNAUTHORIZED, status="unauthorized", wait_s=WAIT_FOR_PERSON_S)
    if error.status in _NO_SUCH_API:
        return ListenError(
            f"what answers is no Milky protocol end ({error}): check base_url and its path",
            status="misconfigured",
            wait_s=WAIT_FOR_PERSON_S,
        )
    return ListenError(
        f"the protocol end is out of order ({error}): if it stays so, check base_url",
        status="unreachable",
    )


def _refused(error: RefusalError) -> ListenError:
    if error.retcode == LOGGED_OUT:
        return ListenError(
            "the QQ account is not logged in: log it in at the protocol end",
            status=LOGGED_OUT_STATUS,
            wait_s=LOGIN_PAUSE_S,
        )
    return ListenError(f"the protocol end refused to be read ({error})", status="refused")
