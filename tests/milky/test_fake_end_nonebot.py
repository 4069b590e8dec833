"""nonebot's Milky adapter, told by webhook, gets along with the fake protocol end."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError

import pytest

from tests.fakes.milky import events, segments
from tests.fakes.milky.end import MilkyEnd
from tests.fakes.milky.events import SELF, Event

ALICE, GROUP = 10001, 10001

PATIENCE_S = 60  # it imports a lot


@dataclass(slots=True)
class Peer:
    """`tells` are its lines, of which the test reads as many as it expects."""

    end: MilkyEnd
    url: str
    tells: IO[str]

    def told(self, event: Event) -> dict[str, Any]:
        """Report an event and return what nonebot made of it."""
        assert self.end.post(self.url, event) == 204
        facts: dict[str, Any] = json.loads(self.tells.readline())
        return facts


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with (
        MilkyEnd(webhook_token="hook-token", token="hook-token") as end,
        subprocess.Popen(
            [sys.executable, "-m", "tests.milky.nonebot_peer"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        ) as process,
    ):
        watchdog = threading.Timer(PATIENCE_S, process.kill)
        watchdog.start()
        asks, tells = process.stdin, process.stdout
        assert asks is not None
        assert tells is not None
        api = {"host": "127.0.0.1", "port": end.port, "access_token": end.token}
        asks.write(json.dumps(api) + "\n")
        asks.flush()
        port = json.loads(tells.readline())["port"]
        yield Peer(end, f"http://127.0.0.1:{port}/milky/", tells)
        asks.close()
        process.wait()
        watchdog.cancel()


def test_it_is_understood_in_private(peer: Peer):
    said = peer.end.world.friend_says(ALICE, "早上好 ", segments.image(), segments.face())

    heard = peer.told(said)

    assert heard["self_id"] == str(SELF)
    assert heard["name"] == "message:friend"
    assert (heard["text"], heard["types"]) == ("早上好 ", ["text", "image", "face"])


def test_it_is_understood_in_groups(peer: Peer):
    peer.end.world.says("group", GROUP, SELF, "hi")
    mentioned = peer.end.world.group_says(GROUP, ALICE, segments.mention(SELF, "Bot"), " hi")
    quoting = peer.end.world.group_says(
        GROUP, ALICE, segments.reply(1, "hi", sender_id=SELF), "really?"
    )

    mention, quote = peer.told(mentioned), peer.told(quoting)

    assert (mention["name"], mention["to_me"], mention["text"]) == ("message:group", True, "hi")
    assert (quote["to_me"], quote["quoted"], quote["text"]) == (True, SELF, "really?")


def test_it_is_answered(peer: Peer):
    heard = peer.told(peer.end.world.group_says(GROUP, ALICE, "answer me"))

    sent = peer.end.world.sent("group", GROUP)[-1]
    assert (heard["answered"], sent["segments"]) == (
        sent["message_seq"],
        [segments.text("my answer")],
    )


@pytest.mark.parametrize(
    "event",
    [
        events.temp_message(ALICE, "hi"),
        events.message_recall("group", GROUP, 1, sender_id=ALICE),
        events.bot_offline(),
        events.friend_nudge(ALICE),
        events.group_nudge(GROUP, ALICE),
        events.friend_file_upload(ALICE),
        events.group_file_upload(GROUP, ALICE),
        events.group_member_increase(GROUP, ALICE),
        events.group_member_decrease(GROUP, SELF, operator_id=ALICE),
        events.group_mute(GROUP, SELF, operator_id=ALICE),
        events.group_whole_mute(GROUP, operator_id=ALICE),
        events.group_message_reaction(GROUP, ALICE, 1),
        events.friend_request(ALICE),
        events.group_invitation(GROUP, ALICE),
        events.unknown_event(),
    ],
    ids=lambda event: event["event_type"],
)
def test_its_events_are_understood(peer: Peer, event: Event):
    assert peer.told(event)["event_type"] == event["event_type"]


def test_it_must_show_its_token(peer: Peer):
    with MilkyEnd(webhook_token="wrong") as stranger, pytest.raises(HTTPError, match="401"):
        stranger.post(peer.url, events.bot_offline())
