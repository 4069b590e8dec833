"""What every answer of the Bot API means: for a message that was sent, and for a listener."""

import json
from typing import TypeVar
from unittest import TestCase

from channels_app.addresses import ChatAddress
from channels_app.channels import ListenError, Refused, SendError
from channels_app.telegram.errors import (
    RefusalError,
    StrangeAnswerError,
    listen_error,
    result_of,
    send_error,
)

E = TypeVar("E", bound=Exception)

FLAGS = ("permanent", "unreachable", "not_sent", "refused", "retry_after", "migrated_to")
NOBODY_KNOWS = {"permanent": False, "unreachable": False, "not_sent": False} | {
    "refused": None,
    "retry_after": None,
    "migrated_to": None,
}
PERMANENT: dict[str, object] = {"permanent": True}
GONE: dict[str, object] = {"permanent": True, "unreachable": True}
NEW = ChatAddress("telegram", "group", "-1001234500004")

SENDING: list[tuple[int, str, dict[str, object]]] = [
    (400, "Bad Request: chat not found", GONE),
    (400, "Bad Request: PEER_ID_INVALID", GONE),
    (400, "Bad Request: message thread not found", {"refused": Refused.THREAD}),
    (400, "Bad Request: TOPIC_DELETED", {"refused": Refused.THREAD}),
    (400, "Bad Request: TOPIC_CLOSED", PERMANENT),
    (400, "Bad Request: message to be replied not found", {"refused": Refused.REPLY}),
    (400, "Bad Request: QUOTE_TEXT_INVALID", {"refused": Refused.REPLY}),
    (400, "Bad Request: can't parse entities: Unexpected end tag", {"refused": Refused.MARKUP}),
    (400, "Bad Request: can't parse MessageEntity: Unsupported", {"refused": Refused.MARKUP}),
    (400, "Bad Request: entity beginning at UTF-16 offset 0 ends", {"refused": Refused.MARKUP}),
    (400, "Bad Request: entity URL 'tel:1' is invalid", {"refused": Refused.MARKUP}),
    (400, "Bad Request: ENTITY_BOUNDS_INVALID", {"refused": Refused.MARKUP}),
    (400, "Bad Request: message is too long", PERMANENT),
    (400, "Bad Request: message caption is too long", PERMANENT),
    (400, "Bad Request: message text is empty", PERMANENT),
    (400, "Bad Request: text must be non-empty", PERMANENT),
    (400, "Bad Request: not enough rights to send text messages to the chat", PERMANENT),
    (400, "Bad Request: have no rights to send a message", PERMANENT),
    (400, "Bad Request: CHAT_WRITE_FORBIDDEN", PERMANENT),
    (400, "Bad Request: file is too big", PERMANENT),
    (400, "Bad Request: something new", PERMANENT),
    (401, "Unauthorized", PERMANENT),
    (403, "Forbidden: bot was blocked by the user", GONE),
    (403, "Forbidden: user is deactivated", GONE),
    (403, "Forbidden: bot can't initiate conversation with a user", GONE),
    (403, "Forbidden: bot was kicked from the supergroup chat", GONE),
    (404, "Not Found", PERMANENT),
    (409, "Conflict: terminated by other getUpdates request", {"not_sent": True}),
    (413, "Request Entity Too Large", PERMANENT),
    (500, "Internal Server Error", {}),
    (502, "Bad Gateway", {}),
]

LISTENING: list[tuple[int, str, str, str]] = [
    (401, "Unauthorized", "unauthorized", "@BotFather"),
    (404, "Not Found", "misconfigured", "base_url"),
    (409, "Conflict: terminated by other getUpdates request; make", "conflict", "another program"),
    (409, "Conflict: can't use getUpdates method while webhook is", "conflict", 'mode = "webhook"'),
    (409, "Conflict: terminated by setWebhook request", "conflict", 'mode = "webhook"'),
    (400, "Bad Request: what", "refused", "Bad Request: what"),
    (500, "Internal Server Error", "unreachable", "500"),
]


def refused(code: int, description: str, **parameters: int) -> RefusalError:
    body = {"ok": False, "error_code": code, "description": description, "parameters": parameters}
    return raised(code, json.dumps(body).encode(), RefusalError)


def raised(status: int, content: bytes, kind: type[E]) -> E:
    try:
        result_of(status, content)
    except kind as error:
        return error
    raise AssertionError("nothing was raised")


class SendErrorTest(TestCase):
    def means(self, error: RefusalError | StrangeAnswerError, **expected: object) -> SendError:
        meant = send_error(error, channel="telegram")
        flags = {name: getattr(meant, name) for name in FLAGS}
        self.assertEqual(flags, NOBODY_KNOWS | expected, str(error))
        return meant

    def test_it_knows_what_each_refusal_means(self):
        for code, description, expected in SENDING:
            self.means(refused(code, description), **expected)

    def test_it_does_not_mind_how_a_description_is_written(self):
        for code, description, expected in SENDING:
            self.means(refused(code, description.upper()), **expected)

    def test_it_says_where_the_chat_went(self):
        text = "Bad Request: group chat was upgraded to a supergroup chat"

        self.means(refused(400, text, migrate_to_chat_id=-1001234500004), migrated_to=NEW)

    def test_it_waits_as_long_as_it_is_told(self):
        text = "Too Many Requests: retry after 7"

        self.means(refused(429, text, retry_after=9), retry_after=9, not_sent=True)
        self.means(refused(429, text), retry_after=7, not_sent=True)
        self.means(refused(429, "Too Many Requests"), retry_after=30, not_sent=True)

    def test_it_counts_the_code_in_the_body(self):
        error = raised(200, b'{"ok": false, "error_code": 403, "description": "x"}', RefusalError)

        self.means(error, **GONE)

    def test_it_takes_errors_without_a_code_or_a_reason(self):
        self.means(raised(403, b'{"ok": false}', RefusalError), **GONE)
        self.means(raised(403, b'{"ok": false, "parameters": 3}', RefusalError), **GONE)

    def test_it_does_not_know_what_became_of_a_message_without_a_proper_answer(self):
        for content in (b"<html>", b"", b"[]", b'{"ok": true}', b"\xff", b'"ok"'):
            self.means(raised(200, content, StrangeAnswerError))
        self.means(raised(502, b"<html>", StrangeAnswerError))

    def test_it_knows_that_what_a_proxy_refused_was_not_sent(self):
        for status in (302, 403, 407, 429):
            self.means(raised(status, b"<html>", StrangeAnswerError), not_sent=True)
        self.means(raised(413, b"<html>", StrangeAnswerError), **PERMANENT)


class ListenErrorTest(TestCase):
    def test_it_says_what_is_wrong_and_what_helps(self):
        for code, description, status, words in LISTENING:
            error = listen_error(refused(code, description))

            self.assertEqual(error.status, status)
            self.assertIn(words, str(error))

    def test_it_leaves_alone_for_a_while_what_only_a_person_can_put_right(self):
        waits = [listen_error(refused(code, "x")).wait_s for code in (401, 404, 409, 500)]

        self.assertEqual(waits, [60, 60, 60, None])

    def test_it_waits_out_a_flood(self):
        error: ListenError = listen_error(refused(429, "Too Many Requests", retry_after=5))

        self.assertEqual(error.wait_s, 5)

    def test_it_doubts_the_address_when_something_else_answers(self):
        error = listen_error(raised(200, b"<html>", StrangeAnswerError))

        self.assertEqual(error.status, "unreachable")
        self.assertIn("base_url", str(error))
