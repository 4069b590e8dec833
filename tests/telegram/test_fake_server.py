"""What no library asks of the fake server: the finer semantics of offsets, faults on demand, and deliveries."""

import http.client
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from tests.fakes.telegram import Answer, deliver, flood
from tests.telegram.stage import LIN, MO, TelegramCase


class RawCase(TelegramCase):
    def call(self, method: str, token: str = "", **params):
        """Call a method as JSON and return status and body; the body as it is where it is no JSON."""
        status, body = self.ask(f"/bot{token or self.bot.token}/{method}", json.dumps(params))
        return status, json.loads(body)

    def result(self, method: str, **params):
        status, body = self.call(method, **params)
        self.assertEqual((status, body["ok"]), (200, True), body)
        return body["result"]

    def ask(
        self, path: str, body: str | bytes | None = None, *, kind: str = "application/json"
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.server.base_url).netloc, timeout=30)
        self.addCleanup(connection.close)
        headers = {"Content-Type": kind} if body else {}
        connection.request("POST" if body else "GET", path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()

    def in_background(self, method: str, **params) -> "Background":
        return Background(lambda: self.call(method, **params))


class Background:
    def __init__(self, work):
        self._work = work
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self):
        try:
            self._answer = self._work()
        except Exception as error:
            self._error = error

    def answer(self):
        self._thread.join(30)
        return self._answer

    def error(self) -> Exception:
        self._thread.join(30)
        return self._error


class OffsetTest(RawCase):
    def texts(self, **params):
        return [update["message"]["text"] for update in self.result("getUpdates", **params)]

    def setUp(self):
        super().setUp()
        self.ids = [self.lin.says(text)["update_id"] for text in ("a", "b", "c")]

    def test_it_counts_updates_up(self):
        self.assertEqual(self.ids, list(range(self.ids[0], self.ids[0] + 3)))

    def test_it_drops_what_lies_below_the_offset(self):
        self.texts(offset=self.ids[1])

        self.assertEqual(self.texts(), ["b", "c"])

    def test_it_starts_from_the_end_and_forgets_the_rest(self):
        self.assertEqual(self.texts(offset=-1), ["c"])
        self.assertEqual(self.texts(), ["c"])

    def test_it_hands_out_no_more_than_asked(self):
        self.assertEqual(self.texts(limit=2), ["a", "b"])
        self.assertEqual(self.texts(limit=0), ["a"])

    def test_it_answers_a_long_poll_when_something_comes(self):
        poll = self.in_background("getUpdates", offset=self.ids[-1] + 1, timeout=50)
        self.bot.wait_until(lambda: self.bot.waiting == 1)

        self.lin.says("d")

        self.assertEqual(poll.answer()[1]["result"][0]["message"]["text"], "d")

    def test_it_hands_out_an_album_at_once(self):
        poll = self.in_background("getUpdates", offset=self.ids[-1] + 1, timeout=50)
        self.bot.wait_until(lambda: self.bot.waiting == 1)

        self.lin.sends_album({"photo": self.bot.add_photo(b"1")}, {"photo": []})

        messages = [update["message"] for update in poll.answer()[1]["result"]]
        self.assertEqual(len({message["media_group_id"] for message in messages}), 1)
        self.assertEqual(len(messages), 2)

    def test_it_keeps_the_wanted_kinds_until_they_are_chosen_anew(self):
        self.result("getUpdates", offset=self.ids[-1] + 1, allowed_updates=["edited_message"])
        self.lin.says("unwanted")
        self.lin.edits(1, "wanted")
        kinds = [list(update)[1] for update in self.result("getUpdates")]

        self.assertEqual(kinds, ["edited_message"])

    def test_it_refuses_kinds_that_do_not_exist(self):
        status, body = self.call("getUpdates", allowed_updates=["mesage"])

        self.assertEqual((status, body["description"][-6:]), (400, "mesage"))


class FaultTest(RawCase):
    def send(self, chat_id: int = LIN["id"], text: str = "hi"):
        return self.call("sendMessage", chat_id=chat_id, text=text)

    def test_it_fails_as_often_as_told(self):
        self.bot.fail("sendMessage", flood(3), times=2)

        statuses = [self.send()[0] for _ in range(3)]

        self.assertEqual((statuses, self.lin.texts), ([429, 429, 200], ["hi"]))

    def test_it_fails_after_the_effect(self):
        self.bot.fail("sendMessage", Answer(502, b"<html>", "text/html"), after=True)

        status, body = self.ask(
            f"/bot{self.bot.token}/sendMessage", json.dumps({"chat_id": LIN["id"], "text": "hi"})
        )

        self.assertEqual((status, body, self.lin.texts), (502, b"<html>", ["hi"]))

    def test_it_hangs_up_before_and_after_the_effect(self):
        self.bot.hang_up("sendMessage")
        self.bot.hang_up("sendMessage", after=True)

        for _ in range(2):
            with self.assertRaises(http.client.RemoteDisconnected):
                self.send()

        self.assertEqual(
            (self.lin.texts, [call.status for call in self.bot.calls]), (["hi"], [0, 0])
        )

    def test_it_breaks_off_in_the_middle(self):
        self.bot.fail("sendMessage", Answer(200, b'{"ok":true,"resu', ends="half"))

        with self.assertRaises(http.client.IncompleteRead):
            self.send()

    def test_it_holds_a_call_before_its_effect(self):
        with self.bot.hold("sendMessage", chat_id=LIN["id"]) as hold:
            sending = self.in_background("sendMessage", chat_id=LIN["id"], text="slow")
            hold.wait_until_reached()
            meanwhile = self.send(self.bot.private(MO).id, "quick")

            self.assertEqual((meanwhile[0], self.lin.texts), (200, []))

        self.assertEqual((sending.answer()[0], self.lin.texts), (200, ["slow"]))

    def test_it_holds_a_call_after_its_effect(self):
        with self.bot.hold("sendMessage", after=True) as hold:
            sending = self.in_background("sendMessage", chat_id=LIN["id"], text="hi")
            hold.wait_until_reached()

            self.assertEqual(self.lin.texts, ["hi"])

        self.assertEqual(sending.answer()[0], 200)


class RulesTest(RawCase):
    """What the libraries cannot get wrong, or take too long to."""

    def refusal(self, method: str, **params) -> str:
        status, body = self.call(method, chat_id=LIN["id"], **params)
        self.assertEqual(status, 400)
        return str(body["description"])

    def upload(self, method: str, name: str, content: bytes) -> int:
        head = f'--b\r\nContent-Disposition: form-data; name="{name}"; filename="f"\r\n\r\n'
        chat = f'\r\n--b\r\nContent-Disposition: form-data; name="chat_id"\r\n\r\n{LIN["id"]}'
        body = head.encode() + content + chat.encode() + b"\r\n--b--\r\n"
        path = f"/bot{self.bot.token}/{method}"
        return self.ask(path, body, kind="multipart/form-data; boundary=b")[0]

    def test_it_takes_files_up_to_their_limits(self):
        just, more = bytes(10 * 1024 * 1024), bytes(10 * 1024 * 1024 + 1)

        photos = [self.upload("sendPhoto", "photo", content) for content in (just, more, b"")]
        huge = self.upload("sendDocument", "document", bytes(50 * 1024 * 1024 + 1))

        self.assertEqual((photos, huge), ([200, 400, 400], 413))

    def test_it_knows_actions_and_reactions_by_name(self):
        self.lin.says("hi")

        self.assertIn("wrong parameter action", self.refusal("sendChatAction", action="thinking"))
        reaction = [{"type": "emoji", "emoji": "🌱"}]
        unknown = self.refusal("setMessageReaction", message_id=1, reaction=reaction)
        nowhere = self.refusal("setMessageReaction", message_id=9, reaction=reaction)
        self.assertIn("REACTION_INVALID", unknown)
        self.assertIn("message to react not found", nowhere)

    def test_it_shows_no_action_in_a_channel(self):
        news = self.bot.channel(-1001234500003)

        self.assertTrue(self.result("sendChatAction", chat_id=news.id, action="typing"))
        self.assertEqual(news.actions, [])

    def test_it_lets_an_answer_go_without_what_it_answers(self):
        reply = {"message_id": 9, "allow_sending_without_reply": True}

        sent = self.result("sendMessage", chat_id=LIN["id"], text="hi", reply_parameters=reply)

        self.assertNotIn("reply_to_message", sent)

    def test_it_looks_for_a_quote_in_what_is_answered(self):
        self.lin.says("one two")
        quotes = ({"message_id": 1, "quote": quote} for quote in ("three", "two"))

        refusal = self.refusal("sendMessage", text="hi", reply_parameters=next(quotes))

        self.assertIn("QUOTE_TEXT_INVALID", refusal)
        self.result("sendMessage", chat_id=LIN["id"], text="hi", reply_parameters=next(quotes))

    def test_it_counts_a_caption(self):
        file = self.bot.add_file(b"x")

        refusal = self.refusal("sendDocument", document=file.id, caption="🌱" * 513)

        self.assertIn("message caption is too long", refusal)
        self.result("sendDocument", chat_id=LIN["id"], document=file.id, caption="🌱" * 512)


class OutageTest(RawCase):
    def test_it_ends_what_waits(self):
        poll = self.in_background("getUpdates", timeout=50)
        self.bot.wait_until(lambda: self.bot.waiting == 1)

        self.server.go_down()

        self.bot.wait_until(lambda: self.bot.waiting == 0)
        self.assertIsInstance(poll.error(), ConnectionError)
        self.server.come_up()

    def test_it_breaks_connections_that_rest(self):
        connection = http.client.HTTPConnection(urlsplit(self.server.base_url).netloc, timeout=30)
        connection.request("GET", f"/bot{self.bot.token}/getMe")
        connection.getresponse().read()

        self.server.go_down()
        self.server.come_up()

        with self.assertRaises(ConnectionError):
            connection.request("GET", f"/bot{self.bot.token}/getMe")
            connection.getresponse()
        connection.close()


class BooksTest(RawCase):
    def test_it_keeps_every_call_the_refused_ones_too(self):
        self.call("SENDMESSAGE", chat_id=LIN["id"], text="")

        [call] = self.bot.calls
        self.assertEqual((call.method, call.params["text"], call.status), ("sendMessage", "", 400))
        self.assertEqual(self.bot.calls_of("sendMessage"), [call.params])

    def test_it_keeps_the_bots_apart(self):
        other = self.server.add_bot("42000002:AAother", username="other_bot")
        self.lin.says("hi")

        status, _ = self.call("sendMessage", other.token, chat_id=LIN["id"], text="hi")

        self.assertEqual((status, other.updates), (400, []))

    def test_it_knows_every_method_of_the_api_but_plays_a_few(self):
        played = self.call("sendLove"), self.call("sendDice", chat_id=LIN["id"])
        malformed = self.call("getMe", token="no-token")

        self.assertEqual([status for status, _ in played], [404, 501])
        self.assertEqual(malformed[0], 404)

    def test_it_gives_files_to_those_who_hold_the_token(self):
        file = self.bot.add_file(b"content", path="documents/a b.txt")

        self.assertEqual(
            [
                self.ask(f"/file/bot{self.bot.token}/{file.path.replace(' ', '%20')}"),
                self.ask(f"/file/bot{self.bot.token}/nothing")[0],
                self.ask(f"/file/bot42000009:other/{file.path.replace(' ', '%20')}")[0],
            ],
            [(200, b"content"), 404, 401],
        )

    def test_it_trims_a_text_as_far_as_its_first_entity(self):
        bold = {"type": "bold", "offset": 1, "length": 6}

        sent = self.result("sendMessage", chat_id=LIN["id"], text="   ab   ", entities=[bold])

        self.assertEqual(sent["text"], "  ab")
        self.assertEqual(sent["entities"], [bold | {"offset": 0, "length": 4}])


class Site:
    """A web site that notes what is posted to it and answers with the next of its statuses, then 200."""

    def __init__(self, case: TelegramCase):
        self.posts: list[tuple[dict[str, Any], dict[str, str]]] = []
        self.statuses: list[int] = []
        self._server = HTTPServer(("127.0.0.1", 0), self._handler())
        thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        case.addCleanup(thread.join)
        case.addCleanup(self._server.server_close)
        case.addCleanup(self._server.shutdown)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def _handler(self):
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                site.posts.append((body, dict(self.headers)))
                self.send_response(site.statuses.pop(0) if site.statuses else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format, *args):
                pass

        return Handler


class DeliveryTest(RawCase):
    def setUp(self):
        super().setUp()
        self.site = Site(self)

    def test_it_delivers_with_the_secret(self):
        self.result("setWebhook", url=self.site.url, secret_token="knock")
        update = self.lin.says("hi")

        delivery = deliver(self.bot)

        [(body, headers)] = self.site.posts
        self.assertEqual((body, delivery.is_taken, self.bot.updates), (update, True, []))
        self.assertEqual(headers["X-Telegram-Bot-Api-Secret-Token"], "knock")

    def test_it_delivers_without_a_secret_where_none_is_set(self):
        self.result("setWebhook", url=self.site.url)
        self.lin.says("hi")

        deliver(self.bot)

        self.assertNotIn("X-Telegram-Bot-Api-Secret-Token", self.site.posts[0][1])

    def test_it_delivers_again_what_was_not_taken(self):
        self.result("setWebhook", url=self.site.url)
        first, second = self.lin.says("1"), self.lin.says("2")
        self.site.statuses = [500]

        deliveries = [deliver(self.bot) for _ in range(3)]

        self.assertEqual([delivery.update for delivery in deliveries], [first, first, second])
        info = self.result("getWebhookInfo")
        self.assertIn("500 Internal Server Error", info["last_error_message"])

    def test_it_delivers_by_any_way_it_is_given(self):
        self.result("setWebhook", url="https://nahida.example/hook")
        self.lin.says("hi")

        delivery = deliver(self.bot, post=lambda url, body, headers: (0, b""))

        self.assertEqual((delivery.status, len(self.bot.updates)), (0, 1))
        self.assertEqual(self.result("getWebhookInfo")["last_error_message"], "Connection refused")
