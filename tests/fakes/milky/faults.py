"""How a protocol end may misbehave at one call, before what was asked for is done or after."""

import threading
from dataclasses import dataclass, field
from typing import Any

_PASSED = threading.Event()
_PASSED.set()


@dataclass(frozen=True, slots=True)
class Fault:
    """`answer` takes the place of the real one, None: the connection breaks. `waits` comes first and ends when set; `reached` says that it began."""

    status: int = 200
    answer: bytes | dict[str, Any] | None = None
    after_effect: bool = False
    goes_on: bool = False  # the real answer is given, late
    waits: threading.Event = _PASSED
    reached: threading.Event = field(default_factory=threading.Event)


def refused(retcode: int, message: str = "Refused") -> Fault:
    return Fault(answer={"status": "failed", "retcode": retcode, "message": message})


def ok_with(retcode: int) -> Fault:
    """The end says "ok", and a code that says the opposite."""
    return Fault(answer={"status": "ok", "retcode": retcode, "data": {}})


def http(status: int, body: bytes = b"") -> Fault:
    return Fault(status=status, answer=body)


def garbled(body: bytes = b"<html>") -> Fault:
    """What comes is no envelope, though all was done."""
    return Fault(answer=body, after_effect=True)


def dropped(*, after_effect: bool) -> Fault:
    """The connection breaks."""
    return Fault(after_effect=after_effect)


def held(until: threading.Event, *, after_effect: bool) -> Fault:
    """The real answer waits for an event, what was asked for is done before the wait or after it."""
    return Fault(goes_on=True, after_effect=after_effect, waits=until)
