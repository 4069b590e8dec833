"""What the server answers: a result, an error of the Bot API, or something no bot expects."""

import json
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer. `ends`: "half" breaks off in the body, "none" closes the connection without a word."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    ends: Literal["whole", "half", "none"] = "whole"


HUNG_UP = Answer(ends="none")


class ApiError(Exception):
    """What the Bot API says when it refuses a call."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    def answer(self) -> Answer:
        body = {"ok": False, "error_code": self.code, "description": self.description}
        more = {"parameters": self.parameters} if self.parameters else {}
        return Answer(self.code, json.dumps(body | more).encode())


def success(result: Any) -> Answer:
    return Answer(body=json.dumps({"ok": True, "result": result}).encode())


def bad_request(reason: str, **parameters: int) -> ApiError:
    return ApiError(400, f"Bad Request: {reason}", **parameters)


def forbidden(reason: str) -> ApiError:
    return ApiError(403, f"Forbidden: {reason}")


def conflict(reason: str) -> ApiError:
    return ApiError(409, f"Conflict: {reason}")


def flood(retry_after: int) -> ApiError:
    reason = f"Too Many Requests: retry after {retry_after}"
    return ApiError(429, reason, retry_after=retry_after)
