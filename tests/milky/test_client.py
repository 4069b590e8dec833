"""The client against the fake protocol end: results, errors, files and the stream of events."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest import IsolatedAsyncioTestCase, TestCase

from channels_app.channels import FetchError, ListenError, SendError
from channels_app.http import async_client
from channels_app.milky.client import End, Event, Line, MilkyClient
from channels_app.milky.errors import RefusalError
from tests.fakes.milky import events, faults, segments
from tests.fakes.milky.end import MilkyEnd
from tests.fakes.milky.events import SELF
from tests.fakes.milky.faults import Fault

ALICE, GROUP, BOB = 10001, 10001, 20002
NEVER_S = 60.0  # of silence; no test lasts that long
ALWAYS_S = 0.01

HI = [segments.text("hi")]


class EndCase(TestCase):
    def setUp(self):
        self.end = self.enterContext(MilkyEnd(prefix="/milky"))
        self.end.world.befriend(ALICE)
        self.end.world.found(GROUP)
        self.client = MilkyClient(base_url=self.end.base_url + "/", token=self.end.token)


class CallTest(EndCase):
    def send(self, user_id: int = ALICE) -> dict[str, Any]:
        return self.client.call("send_private_message", user_id=user_id, message=HI)

    def refusal(self, **params: Any) -> SendError:
        with self.assertRaises(SendError) as caught:
            self.send(**params)
        return caught.exception

    def test_it_returns_the_data(self):
        sent = self.send()

        self.assertEqual(sent["message_seq"], 1)
        self.assertEqual(self.end.world.seen("friend", ALICE), ["hi"])

    def test_it_leaves_out_what_is_not_given(self):
        place = {"message_scene": "friend", "peer_id": ALICE}

        self.client.call("get_history_messages", **place, start_message_seq=None, limit=5)
        self.client.call("get_login_info")

        self.assertEqual(self.end.asked("get_history_messages"), [place | {"limit": 5}])
        self.assertEqual(self.end.asked("get_login_info"), [{}])

    def test_it_shows_its_token_in_a_header_or_shows_none(self):
        self.send()
        self.end.token = ""
        MilkyClient(base_url=self.end.base_url, token="").call("get_login_info")

        shown = [call.authorization for call in self.end.calls]
        self.assertEqual(shown, ["Bearer example-token", None])

    def test_it_says_what_became_of_a_refused_message(self):
        unknown = self.refusal(user_id=BOB)
        self.end.world.go_offline()
        logged_out = self.refusal()

        self.assertTrue(unknown.permanent)
        assert isinstance(unknown.__cause__, RefusalError)
        self.assertEqual(unknown.__cause__.retcode, -404)
        self.assertEqual((logged_out.not_sent, logged_out.retry_after), (True, 30))

    def test_it_takes_ok_with_a_code_for_a_failure(self):
        self.end.fail("send_private_message", faults.ok_with(120))

        self.assertTrue(self.refusal().permanent)

    def test_it_does_not_know_what_became_of_an_unanswered_message(self):
        unclear: list[Fault] = [
            faults.dropped(after_effect=True),
            faults.dropped(after_effect=False),
            faults.garbled(),
            faults.http(502),
        ]
        for fault in unclear:
            self.end.fail("send_private_message", fault)

        errors = [self.refusal() for _ in unclear]

        self.assertEqual([(e.permanent, e.not_sent) for e in errors], [(False, False)] * 4)
        self.assertEqual(len(self.end.world.seen("friend", ALICE)), 2)

    def test_it_knows_that_nothing_left_when_nobody_listens(self):
        with MilkyEnd() as gone:
            base_url = gone.base_url
        client = MilkyClient(base_url=base_url, token="")

        with self.assertRaises(SendError) as caught:
            client.call("get_login_info")

        self.assertTrue(caught.exception.not_sent)

    def test_it_sends_after_a_failure_as_if_nothing_had_been(self):
        with self.assertRaises(SendError):
            self.client.call("send_group_message", message=HI)

        self.send()

        self.assertEqual(self.end.world.everywhere(), {("friend", ALICE): ["hi"]})

    def test_it_never_logs_the_token(self):
        self.end.token = "another"

        with self.assertNoLogs("channels_app"):
            error = self.refusal()

        self.assertTrue(error.not_sent)
        self.assertNotIn(
            "example-token", repr(error) + repr(End("http://127.0.0.1", "example-token"))
        )


class FetchTest(EndCase):
    def fetch(self, id_: str, *, limit: int = 1000) -> bytes:
        return self.client.fetch("get_resource_temp_url", limit=limit, resource_id=id_)

    def fetch_error(self, id_: str, *, limit: int = 1000) -> FetchError:
        with self.assertRaises(FetchError) as caught:
            self.fetch(id_, limit=limit)
        return caught.exception

    def test_it_downloads_a_resource_without_the_token(self):
        id_, _ = self.end.world.host(b"content")

        self.assertEqual(self.fetch(id_, limit=7), b"content")
        self.assertNotIn("authorization", self.end.downloads[0])

    def test_it_downloads_a_private_file(self):
        id_, resource = self.end.world.host(b"content")

        content = self.client.fetch(
            "get_private_file_download_url",
            limit=7,
            user_id=ALICE,
            file_id=id_,
            file_hash=resource.file_hash,
        )

        self.assertEqual(content, b"content")

    def test_it_stops_at_the_limit(self):
        announced, _ = self.end.world.host(b"content")
        dripping, _ = self.end.world.host(b"content", is_chunked=True)

        errors = [self.fetch_error(id_, limit=6) for id_ in (announced, dripping)]

        self.assertEqual([error.permanent for error in errors], [True, True])

    def test_it_tells_what_can_be_had_later_from_what_cannot(self):
        unresolved, _ = self.end.world.host(b"content", resolves=False)
        self.end.fail("get_resource_temp_url", faults.http(502))

        later, unknown, never = (self.fetch_error(id_) for id_ in ("r-1", "r-9", unresolved))
        self.end.world.go_offline()
        logged_out = self.fetch_error(unresolved)

        self.assertEqual((later.permanent, logged_out.permanent), (False, False))
        self.assertEqual((unknown.permanent, never.permanent), (True, True))


class ListeningTest(IsolatedAsyncioTestCase):
    def setUp(self):
        self.end = self.enterContext(MilkyEnd(prefix="/milky"))
        self.client = MilkyClient(base_url=self.end.base_url, token=self.end.token)

    @asynccontextmanager
    async def hearing(
        self, *, silence_s: float = NEVER_S
    ) -> AsyncIterator[AsyncIterator[Event | None]]:
        async with self.client.listening() as line, line.events(silence_s=silence_s) as heard:
            await asyncio.to_thread(self.end.wait_for_stream)
            yield heard

    async def refusal(self) -> ListenError:
        with self.assertRaises(ListenError) as caught:
            async with self.hearing():
                pass
        return caught.exception

    async def test_it_asks(self):
        async with self.client.listening() as line:
            info = await line.ask("get_login_info")

        self.assertEqual(info["uin"], SELF)

    async def test_it_says_why_it_is_not_answered(self):
        async with self.client.listening() as line:
            self.end.world.go_offline()
            with self.assertRaises(ListenError) as logged_out:
                await line.ask("get_login_info")
            self.end.fail("get_login_info", faults.dropped(after_effect=True))
            with self.assertRaises(ListenError) as dropped:
                await line.ask("get_login_info")

        statuses = (logged_out.exception.status, dropped.exception.status)
        self.assertEqual(statuses, ("logged out", "unreachable"))

    async def test_it_hears_what_happens(self):
        async with self.hearing() as heard:
            said = self.end.world.friend_says(ALICE, "早上好 🌱\nsecond line")
            nudged = self.end.world.happens(events.friend_nudge(ALICE))

            self.assertEqual([await anext(heard), await anext(heard)], [said, nudged])

    async def test_it_hears_events_of_one_line_too(self):
        self.end.is_pretty = False
        async with self.hearing() as heard:
            said = self.end.world.friend_says(ALICE, "hi")

            self.assertEqual(await anext(heard), said)

    async def test_it_shows_its_token_in_a_header_only(self):
        async with self.hearing():
            [opened] = self.end.opened

        self.assertEqual(
            (opened.authorization, opened.token_in_query), ("Bearer example-token", False)
        )

    async def test_it_misses_nothing_from_when_the_stream_is_open(self):
        async with self.client.listening() as line, line.events(silence_s=NEVER_S) as heard:
            said = self.end.world.friend_says(ALICE, "hi")
            await line.ask("get_login_info")

            self.assertEqual(await anext(heard), said)

    async def test_it_passes_over_what_it_cannot_read(self):
        deep = "[" * 100_000
        async with self.hearing() as heard:
            with self.assertLogs("channels_app.milky", "WARNING") as logged:
                self.end.emit_raw(b": still here\n\nevent: other\ndata: {}\n\n")
                for data in ("{broken", "[]", '"text"', deep):
                    self.end.emit_raw(f"event: milky_event\ndata: {data}\n\n".encode())
                said = self.end.world.friend_says(ALICE, "hi")
                event = await anext(heard)

        self.assertEqual(event, said)
        self.assertEqual(len(logged.output), 4)
        self.assertNotIn("broken", "".join(logged.output))

    async def test_it_says_when_the_stream_is_silent(self):
        async with self.hearing(silence_s=ALWAYS_S) as heard:
            self.assertIsNone(await anext(heard))
            self.assertIsNone(await anext(heard))
            said = self.end.world.friend_says(ALICE, "hi")

            while (event := await anext(heard)) is None:
                pass

        self.assertEqual(event, said)

    async def test_it_says_when_the_stream_breaks_or_is_closed(self):
        for cleanly in (False, True):
            async with self.hearing() as heard:
                self.end.cut(cleanly=cleanly)

                with self.assertRaises(ListenError) as ended:
                    await anext(heard)

            self.assertEqual(ended.exception.status, "unreachable")

    async def test_it_listens_for_longer_than_it_waits_for_answers(self):
        async with async_client(answer_s=ALWAYS_S) as http:
            line = Line(End(self.end.base_url, self.end.token), http)
            async with line.events(silence_s=20 * ALWAYS_S) as heard:
                self.assertIsNone(await anext(heard))

    async def test_it_hangs_up_in_the_middle_of_waiting(self):
        async with self.hearing(silence_s=ALWAYS_S) as heard:
            await anext(heard)

        await asyncio.to_thread(self.end.wait_for_no_stream)

    async def test_it_says_why_it_cannot_hear(self):
        self.end.token = "another"
        unauthorized = await self.refusal()
        self.end.token = ""
        statuses = []
        for fault in (faults.http(404), faults.http(502), faults.dropped(after_effect=False)):
            self.end.fail("event", fault)
            statuses.append((await self.refusal()).status)

        self.assertEqual(unauthorized.status, "unauthorized")
        self.assertEqual(statuses, ["misconfigured", "unreachable", "unreachable"])

    async def test_it_is_not_fooled_by_a_page(self):
        self.end.fail("event", faults.http(200, b"<html>"))

        async with self.client.listening() as line:
            with self.assertRaises(ListenError) as caught:
                async with line.events(silence_s=NEVER_S) as heard:
                    await anext(heard)

        self.assertEqual(caught.exception.status, "unreachable")

    async def test_it_lets_a_slow_answer_block_nothing_else(self):
        gate = threading.Event()
        self.end.fail("get_login_info", faults.held(gate, after_effect=False))
        async with self.client.listening() as line, line.events(silence_s=NEVER_S) as heard:
            slow = asyncio.create_task(line.ask("get_login_info"))
            said = self.end.world.friend_says(ALICE, "hi")

            self.assertEqual(await anext(heard), said)
            gate.set()
            self.assertEqual((await slow)["uin"], SELF)
