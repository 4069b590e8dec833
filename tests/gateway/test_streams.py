import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from asgiref.sync import sync_to_async

from memory_app.models import MemoryTurn, TurnState
from nahida.agent import follow as following
from nahida.agent.follow import follow
from nahida.gateway import chat
from nahida.ops.stopping import stopping
from sessions_app.models import Draft
from tests.gateway.cast import GatewayTestCase, answer


def never() -> bool:
    return False


class WatchTestCase(GatewayTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.key_text = self.key("chat")
        response = self.post(
            "/api/chat", {"text": "hi", "user": "qi", "wait_s": 0}, key=self.key_text
        )
        self.turn_id: int = response.json()["turn_id"]
        self.addCleanup(setattr, following, "LOOK_EVERY_S", following.LOOK_EVERY_S)
        following.LOOK_EVERY_S = 0

    def draft(self, text: str, *, token: int = 1) -> None:
        lane = MemoryTurn.objects.get(pk=self.turn_id).lane
        Draft.objects.update_or_create(
            lane=lane,
            defaults={"turn": self.turn_id, "token": uuid.UUID(int=token), "text": text},
        )


class FollowTest(WatchTestCase):
    async def updates(self, *steps: Callable[[], None]) -> list[tuple[str, str]]:
        """Follow the turn and do one step between any two updates."""
        found: list[tuple[str, str]] = []
        coming = list(steps)
        async with aclosing(follow(self.turn_id, stopping=never)) as updates:
            async for update in updates:
                found.append((update.kind, update.text))
                if coming:
                    await sync_to_async(coming.pop(0))()
        return found

    async def test_it_yields_the_growing_text_and_its_end(self) -> None:
        await sync_to_async(self.draft)("The")

        found = await self.updates(
            lambda: self.draft("The sky"), lambda: answer(self.turn_id, "The sky is blue.")
        )

        assert found == [("draft", "The"), ("draft", "The sky"), ("done", "The sky is blue.")]

    async def test_it_resets_when_another_worker_starts_over(self) -> None:
        await sync_to_async(self.draft)("The")

        found = await self.updates(
            lambda: self.draft("", token=2),
            lambda: self.draft("The", token=2),
            lambda: answer(self.turn_id, "The end."),
        )

        assert found == [("draft", "The"), ("reset", ""), ("draft", "The"), ("done", "The end.")]

    async def test_it_ends_with_what_became_of_the_turn(self) -> None:
        for state, text, kind in (
            (TurnState.DONE, "", "silent"),
            (TurnState.FAILED, "The model is down.", "failed"),
            (TurnState.STOPPED, "", "stopped"),
            (TurnState.OBSERVED, "", "silent"),
        ):
            await sync_to_async(answer)(self.turn_id, text, state=state)

            assert await self.updates() == [(kind, text)]

    async def test_it_shows_no_draft_of_another_turn(self) -> None:
        await sync_to_async(self.draft)("for somebody else")
        await Draft.objects.aupdate(turn=self.turn_id + 1)
        looks = iter([False, False, True])

        async with aclosing(follow(self.turn_id, stopping=lambda: next(looks))) as updates:
            assert [update async for update in updates] == []

    async def test_it_ends_when_the_process_stops(self) -> None:
        async with aclosing(follow(self.turn_id, stopping=lambda: True)) as updates:
            assert [update async for update in updates] == []


class EventsTest(WatchTestCase):
    async def stream(self, path: str = "", **headers: str) -> Any:
        return await self.async_client.get(
            path or f"/api/chat/{self.turn_id}",
            headers={
                "authorization": self.key_text,
                "accept": "text/event-stream",
                **headers,
            },
        )

    async def test_it_streams_events_with_ids(self) -> None:
        await sync_to_async(self.draft)("The")

        response = await self.stream()
        events = []
        async for event in parsed(response):
            events.append(event)
            if event["event"] == "draft":
                await sync_to_async(answer)(self.turn_id, "The end.")

        assert response["Content-Type"] == "text/event-stream"
        assert [event["event"] for event in events] == ["turn", "draft", "done"]
        assert [event["id"] for event in events] == ["1", "2", "3"]
        assert events[0]["data"]["turn_id"] == self.turn_id
        assert events[1]["data"] == {"text": "The"}
        assert events[2]["data"]["text"] == "The end."
        assert events[2]["data"]["state"] == "done"

    async def test_it_ends_with_an_error_event(self) -> None:
        await sync_to_async(answer)(self.turn_id, "It is down.", state=TurnState.FAILED)

        events = [event async for event in parsed(await self.stream())]

        assert events[-1]["event"] == "error"
        assert events[-1]["data"]["text"] == "It is down."

    async def test_it_streams_a_question_asked_with_stream(self) -> None:
        response = await self.async_client.post(
            "/api/chat",
            json.dumps({"text": "/whoami", "user": "qi", "stream": True}),
            content_type="application/json",
            headers={"authorization": self.key_text},
        )

        events = [event async for event in parsed(response)]

        assert [event["event"] for event in events] == ["turn", "done"]

    async def test_it_comments_while_nothing_happens(self) -> None:
        self.addCleanup(setattr, chat, "COMMENT_EVERY_S", chat.COMMENT_EVERY_S)
        chat.COMMENT_EVERY_S = 0
        response = await self.stream()
        seen = []

        async for chunk in response.streaming_content:
            seen.append(chunk.decode())
            if seen[-1].startswith(":"):
                await sync_to_async(answer)(self.turn_id, "The end.")

        assert ": still there\n\n" in seen
        assert "event: done" in seen[-1]

    async def test_it_ends_when_the_process_stops_and_lets_the_turn_be(self) -> None:
        response = await self.stream()
        names = []
        self.addCleanup(stopping.clear)

        async for event in parsed(response):
            names.append(event["event"])
            stopping.set()

        assert names == ["turn"]
        turn = await MemoryTurn.objects.aget(pk=self.turn_id)
        assert turn.state == TurnState.PENDING

    async def test_it_stops_looking_when_the_client_leaves(self) -> None:
        response = await self.stream()
        stream = aiter(response.streaming_content)
        await anext(stream)
        reading = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)

        reading.cancel()
        await asyncio.wait({reading})

        assert reading.cancelled()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in others if "anext" in repr(task)]

    async def test_it_streams_to_nobody_else(self) -> None:
        other = await sync_to_async(self.key)("chat")

        response = await self.stream(authorization=other)

        assert response.status_code == 404


async def parsed(response: Any) -> AsyncIterator[dict[str, Any]]:
    async for chunk in response.streaming_content:
        event: dict[str, Any] = {}
        for line in chunk.decode().splitlines():
            name, _, value = line.partition(": ")
            if name:
                event[name] = value
        if event:
            yield {**event, "data": json.loads(event["data"])}
