"""All that the fake protocol end says goes through the protocol's own schemas, and so does what it refuses."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.fakes.milky import events, segments
from tests.fakes.milky.end import MilkyEnd
from tests.fakes.milky.events import SELF, Event
from tests.fakes.milky.params import TAKES
from tests.fakes.milky.segments import Segment
from tests.milky_types.official import official

ALICE, GROUP, BOB = 10001, 10001, 20002
PNG = "base64://iVBORw0KGgo="
MP3 = "base64://SUQzBAA="

SEGMENTS: dict[str, Segment] = {
    "text": segments.text("你好"),
    "mention": segments.mention(SELF, "纳西妲"),
    "mention_all": segments.mention_all(),
    "face": segments.face(),
    "reply": segments.reply(1, "早", segments.image(), sender_id=ALICE, sender_name="小叶"),
    "image": segments.image(),
    "record": segments.record(),
    "video": segments.video(),
    "file": segments.file(file_hash="aabb"),
    "forward": segments.forward(),
    "market_face": segments.market_face(),
    "light_app": segments.light_app(),
    "xml": segments.xml(),
    "markdown": segments.markdown(),
}

EVENTS: list[Event] = [
    events.friend_message(ALICE, *SEGMENTS.values()),
    events.friend_message(ALICE, "own", sender_id=SELF),
    events.group_message(GROUP, BOB, *SEGMENTS.values()),
    events.temp_message(BOB, "hi"),
    events.message_recall("group", GROUP, 3, sender_id=BOB),
    events.bot_offline(),
    events.peer_pin_change("friend", ALICE),
    events.friend_request(BOB),
    events.group_join_request(GROUP, BOB),
    events.group_invited_join_request(GROUP, ALICE, target_user_id=BOB),
    events.group_invitation(GROUP, ALICE, source_group_id=20001),
    events.friend_nudge(ALICE),
    events.group_nudge(GROUP, BOB),
    events.friend_file_upload(ALICE),
    events.group_file_upload(GROUP, BOB),
    events.group_member_increase(GROUP, BOB, invitor_id=ALICE),
    events.group_member_decrease(GROUP, SELF, operator_id=ALICE),
    events.group_disband(GROUP, ALICE),
    events.group_name_change(GROUP, "新名字", operator_id=ALICE),
    events.group_admin_change(GROUP, BOB, operator_id=ALICE),
    events.group_mute(GROUP, SELF, operator_id=ALICE),
    events.group_whole_mute(GROUP, operator_id=ALICE),
    events.group_message_reaction(GROUP, BOB, 3),
    events.group_essence_message_change(GROUP, 3, operator_id=ALICE),
]

# What may be asked of the world that `end` below is.
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("get_login_info", {}),
    ("get_impl_info", {}),
    ("get_friend_info", {"user_id": ALICE}),
    ("get_group_info", {"group_id": GROUP, "no_cache": True}),
    ("get_group_member_info", {"group_id": GROUP, "user_id": BOB, "no_cache": None}),
    (
        "send_private_message",
        {
            "user_id": ALICE,
            "message": [
                {"type": "reply", "data": {"message_seq": 1}},
                {"type": "mention", "data": {"user_id": ALICE}},
                {"type": "text", "data": {"text": "你好"}},
                {"type": "face", "data": {"face_id": "14"}},
                {"type": "image", "data": {"uri": PNG, "sub_type": "sticker"}},
            ],
        },
    ),
    (
        "send_group_message",
        {
            "group_id": GROUP,
            "message": [
                {"type": "mention", "data": {"user_id": BOB}},
                {"type": "mention_all", "data": {}},
                {"type": "text", "data": {"text": " 你好"}},
            ],
        },
    ),
    (
        "send_group_message",
        {"group_id": GROUP, "message": [{"type": "record", "data": {"uri": MP3}}]},
    ),
    (
        "send_group_message",
        {"group_id": GROUP, "message": [{"type": "video", "data": {"uri": MP3}}]},
    ),
    (
        "send_group_message",
        {"group_id": GROUP, "message": [{"type": "light_app", "data": {"json_payload": "{}"}}]},
    ),
    (
        "send_group_message",
        {
            "group_id": GROUP,
            "message": [
                {
                    "type": "forward",
                    "data": {
                        "messages": [
                            {
                                "user_id": BOB,
                                "sender_name": "阿露",
                                "segments": [{"type": "text", "data": {"text": "在吗"}}],
                            }
                        ],
                        "preview": ["阿露: 在吗"],
                    },
                }
            ],
        },
    ),
    ("get_message", {"message_scene": "group", "peer_id": GROUP, "message_seq": 1}),
    ("get_message", {"message_scene": "temp", "peer_id": BOB, "message_seq": 1}),
    ("get_history_messages", {"message_scene": "group", "peer_id": GROUP, "limit": 1}),
    ("get_resource_temp_url", {"resource_id": "r-1"}),
    ("get_forwarded_messages", {"forward_id": "fwd-2"}),
    ("mark_message_as_read", {"message_scene": "friend", "peer_id": ALICE, "message_seq": 1}),
    ("send_group_message_reaction", {"group_id": GROUP, "message_seq": 1, "reaction": "14"}),
    ("upload_private_file", {"user_id": ALICE, "file_uri": PNG, "file_name": "a.txt"}),
    ("upload_group_file", {"group_id": GROUP, "file_uri": PNG, "file_name": "a.txt"}),
    (
        "get_private_file_download_url",
        {
            "user_id": ALICE,
            "file_id": "r-1",
            "file_hash": "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        },
    ),
    ("get_group_file_download_url", {"group_id": GROUP, "file_id": "r-1"}),
    ("persist_group_file", {"group_id": GROUP, "file_id": "r-1"}),
    ("recall_private_message", {"user_id": ALICE, "message_seq": 1}),
    ("recall_group_message", {"group_id": GROUP, "message_seq": 1}),
]

_PLAIN = [{"type": "text", "data": {"text": "hi"}}]

WRONG: list[tuple[str, Any]] = [
    ("send_private_message", {"message": _PLAIN}),
    ("send_private_message", {"user_id": str(ALICE), "message": _PLAIN}),
    ("send_private_message", {"user_id": 10000, "message": _PLAIN}),
    ("send_private_message", {"user_id": 4294967296, "message": _PLAIN}),
    ("send_private_message", {"user_id": True, "message": _PLAIN}),
    ("send_private_message", {"user_id": ALICE + 0.5, "message": _PLAIN}),
    ("send_private_message", {"user_id": ALICE, "group_id": GROUP, "message": _PLAIN}),
    ("send_private_message", {"user_id": ALICE, "message": "hi"}),
    ("send_private_message", {"user_id": ALICE, "message": _PLAIN[0]}),
    ("send_private_message", {"user_id": ALICE, "message": [{"type": "text", "data": "hi"}]}),
    ("send_private_message", {"user_id": ALICE, "message": [{"type": "file", "data": {}}]}),
    (
        "send_private_message",
        {"user_id": ALICE, "message": [{"type": "markdown", "data": {"content": "hi"}}]},
    ),
    (
        "send_private_message",
        {"user_id": ALICE, "message": [{"type": "text", "data": {"text": None}}]},
    ),
    (
        "send_group_message",
        {"group_id": GROUP, "message": [{"type": "at", "data": {"user_id": ALICE}}]},
    ),
    (
        "send_group_message",
        {"group_id": GROUP, "message": [{"type": "mention", "data": {"user_id": "all"}}]},
    ),
    (
        "send_group_message",
        {"group_id": GROUP, "message": [{"type": "reply", "data": {"message_seq": "1"}}]},
    ),
    ("send_group_message", []),
    ("get_message", {"peer_id": ALICE, "message_seq": 1}),
    ("get_message", {"message_scene": "private", "peer_id": ALICE, "message_seq": 1}),
    ("get_message", {"message_scene": "friend", "peer_id": ALICE, "message_seq": -1}),
    ("get_history_messages", {"message_scene": "group", "peer_id": GROUP, "limit": "20"}),
    ("upload_group_file", {"group_id": GROUP, "file_name": "a.txt"}),
    ("get_private_file_download_url", {"user_id": ALICE, "file_id": "r-1"}),
    (
        "send_group_message_reaction",
        {"group_id": GROUP, "message_seq": 1, "reaction": "14", "reaction_type": "smile"},
    ),
    ("get_group_info", {"group_id": None}),
]


@pytest.fixture
def end() -> Iterator[MilkyEnd]:
    """A world with one of each: a resource r-1, a forward fwd-2, a message in every scene."""
    with MilkyEnd(version="1.3") as end:
        end.world.host(b"")
        end.world.forward(segments.forwarded("在吗"))
        end.world.friend_says(ALICE, "hi")
        end.world.group_says(GROUP, BOB, *SEGMENTS.values())
        end.world.group_says(GROUP, BOB, "hi")
        end.world.temp_says(BOB, "hi", through=GROUP)
        yield end


def ask(end: MilkyEnd, api: str, body: Any) -> dict[str, Any]:
    answered = httpx.post(
        f"{end.base_url}/api/{api}", json=body, headers={"Authorization": f"Bearer {end.token}"}
    )
    assert answered.status_code == 200
    envelope: dict[str, Any] = answered.json()
    return envelope


@pytest.mark.parametrize("type_", SEGMENTS)
def test_it_makes_right_segments(type_: str):
    assert SEGMENTS[type_]["type"] == type_
    assert official().objection("segment", SEGMENTS[type_]) == ""


@pytest.mark.parametrize("event", EVENTS, ids=[event["event_type"] for event in EVENTS])
def test_it_makes_right_events(event: Event):
    assert official().objection("event", event) == ""


def test_it_has_every_event_of_the_protocol():
    assert len({event["event_type"] for event in EVENTS}) == 20 + len({"group_disband"})


def test_it_is_asked_for_everything_it_can():
    assert {api for api, _ in REQUESTS} == TAKES.keys()


@pytest.mark.parametrize(("api", "body"), REQUESTS)
def test_it_answers_right_requests_rightly(end: MilkyEnd, api: str, body: dict[str, Any]):
    schemas = official()

    envelope = ask(end, api, body)

    assert schemas.objection("request", body, name=api) == ""
    assert (envelope["status"], envelope["retcode"]) == ("ok", 0)
    assert schemas.objection("response", envelope["data"], name=api) == ""


@pytest.mark.parametrize(("api", "body"), WRONG)
def test_it_refuses_what_the_schemas_refuse(end: MilkyEnd, api: str, body: Any):
    envelope = ask(end, api, body)

    assert official().objection("request", body, name=api) != ""
    assert (envelope["status"], envelope["retcode"]) == ("failed", -400)
    assert end.world.everywhere() == {}


def test_it_reports_what_people_do_rightly(end: MilkyEnd):
    happened = [
        end.world.friend_says(ALICE, end.world.image(b""), end.world.record(b"")),
        end.world.group_says(GROUP, BOB, end.world.video(b"")),
        end.world.temp_says(BOB, "hi"),
        *end.world.friend_uploads(ALICE, b"notes"),
        *end.world.group_uploads(GROUP, BOB, b"notes"),
        end.world.recalls("group", GROUP, 1, by=BOB),
        end.world.mute(GROUP),
        end.world.silence(GROUP),
        end.world.kick(GROUP),
        end.world.invite(GROUP),
        end.world.disband(GROUP),
        end.world.go_offline(),
    ]

    assert [official().objection("event", event) for event in happened] == [""] * len(happened)
