"""What each answer of a protocol end means for a message on its way out, and for a listener."""

import json
from typing import Any

import pytest

from channels_app.channels import ListenError, Refused, SendError
from channels_app.milky.errors import (
    RefusalError,
    StrangeAnswerError,
    data_of,
    listen_error,
    send_error,
)


def failed(retcode: int, message: str = "no") -> RefusalError:
    return RefusalError(retcode, message)


def http(status: int) -> StrangeAnswerError:
    return StrangeAnswerError(status)


def verdict(error: SendError) -> str:
    if error.refused:
        return f"without {error.refused}"
    if error.permanent:
        return "permanent"
    if error.not_sent:
        return f"again after {error.retry_after}"
    return "unknown"


@pytest.mark.parametrize(
    ("answer", "data"),
    [
        ({"status": "ok", "retcode": 0, "data": {"uin": 10001}}, {"uin": 10001}),
        ({"status": "ok", "retcode": 0, "data": {}, "new_key": 1}, {}),
        ({"status": "ok", "retcode": 0, "data": None}, {}),
        ({"status": "ok", "retcode": 0}, {}),
    ],
)
def test_it_returns_the_data(answer: dict[str, Any], data: dict[str, Any]):
    assert data_of(200, json.dumps(answer).encode()) == data


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"status": "failed", "retcode": -404, "message": "Friend not found"}, "Friend not found"),
        ({"status": "failed", "retcode": -500}, "-500 no reason given"),
        ({"status": "failed", "retcode": 0, "message": "no"}, "0 no"),
        ({"status": "ok", "retcode": 120, "data": {"message_seq": 7}}, "120"),
    ],
)
def test_it_takes_either_sign_for_a_failure(answer: dict[str, Any], text: str):
    with pytest.raises(RefusalError, match=text):
        data_of(200, json.dumps(answer).encode())


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (401, b""),
        (404, b'{"status":"ok","retcode":0,"data":{}}'),
        (502, b"<html>"),
        (200, b"<html>"),
        (200, b""),
        (200, b"null"),
        (200, b"[" * 100_000),
        (200, b'{"status":"ok"}'),
        (200, b'{"status":"ok","retcode":"0","data":{}}'),
        (200, b'{"status":"ok","retcode":0,"data":[]}'),
    ],
)
def test_it_takes_nothing_else_for_an_answer(status: int, content: bytes):
    with pytest.raises(StrangeAnswerError) as caught:
        data_of(status, content)

    assert caught.value.status == status


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (failed(-400), "permanent"),
        (failed(-403), "again after 30.0"),
        (failed(-404, "Friend not found"), "permanent"),
        (failed(-404, "Message not found"), "without reply"),
        (failed(-500), "unknown"),
        (failed(0), "unknown"),
        (failed(120), "permanent"),
        (http(200), "unknown"),
        (http(302), "again after None"),
        (http(401), "again after 60.0"),
        (http(403), "again after None"),
        (http(404), "permanent"),
        (http(405), "permanent"),
        (http(413), "permanent"),
        (http(415), "permanent"),
        (http(429), "again after None"),
        (http(500), "unknown"),
        (http(502), "unknown"),
    ],
    ids=str,
)
def test_it_says_what_became_of_a_message(error: RefusalError | StrangeAnswerError, expected: str):
    assert verdict(send_error(error)) == expected


def test_it_fails_a_message_that_is_refused_without_its_reply_too():
    error = send_error(failed(-404, "消息不存在"))

    assert (error.permanent, error.refused) == (True, Refused.REPLY)


@pytest.mark.parametrize(
    ("error", "status", "wait_s"),
    [
        (http(401), "unauthorized", 60),
        (http(404), "misconfigured", 60),
        (http(405), "misconfigured", 60),
        (http(502), "unreachable", None),
        (http(200), "unreachable", None),
        (failed(-403), "logged out", 30),
        (failed(-500), "refused", None),
    ],
    ids=str,
)
def test_it_says_why_nobody_can_be_heard(
    error: RefusalError | StrangeAnswerError, status: str, wait_s: float | None
):
    found: ListenError = listen_error(error)

    assert (found.status, found.wait_s) == (status, wait_s)
