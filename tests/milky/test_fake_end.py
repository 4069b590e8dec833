"""The fake protocol end answers as the real ones do, in what no schema can say."""

import base64
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.fakes.milky import faults, segments
from tests.fakes.milky.end import PATIENCE_S, MilkyEnd
from tests.fakes.milky.events import SELF

ALICE, GROUP, BOB = 10001, 10001, 20002


@pytest.fixture
def end() -> Iterator[MilkyEnd]:
    with MilkyEnd(prefix="/milky") as end:
        end.world.befriend(ALICE)
        end.world.join(GROUP, ALICE)
        yield end


def post(end: MilkyEnd, api: str, body: Any = None, **headers: str) -> httpx.Response:
    """Send bytes as they are, anything else as JSON."""
    headers = {"Authorization": f"Bearer {end.token}"} | headers
    raw, fields = (body, None) if isinstance(body, bytes) else (None, body or {})
    return httpx.post(f"{end.base_url}/api/{api}", content=raw, json=fields, headers=headers)


def ask(end: MilkyEnd, api: str, **body: Any) -> dict[str, Any]:
    envelope: dict[str, Any] = post(end, api, body).json()
    return envelope


def say(end: MilkyEnd, *message: segments.Content, to: int = GROUP) -> dict[str, Any]:
    return ask(end, "send_group_message", group_id=to, message=segments.segments_of(message))


def whisper(end: MilkyEnd, *message: segments.Content, to: int = ALICE) -> dict[str, Any]:
    return ask(end, "send_private_message", user_id=to, message=segments.segments_of(message))


def media(type_: str, content: bytes) -> segments.Segment:
    return {"type": type_, "data": {"uri": f"base64://{base64.b64encode(content).decode()}"}}


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        ("/milky/api/get_login_info", "example-token", 200),
        ("/api/get_login_info", "example-token", 404),
        ("/milky/api/get_weather", "example-token", 404),
        ("/milky/api/persist_group_file", "example-token", 404),
        ("/milky/api/get_login_info", "wrong", 401),
        ("/milky/api/get_login_info", "", 401),
    ],
)
def test_it_minds_path_and_token(end: MilkyEnd, path: str, token: str, status: int):
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    answered = httpx.post(f"http://127.0.0.1:{end.port}{path}", json={}, headers=headers)

    assert answered.status_code == status
    assert status == 200 or answered.content == b""


def test_it_minds_method_and_kind_of_body(end: MilkyEnd):
    url = f"{end.base_url}/api/get_login_info"
    headers = {"Authorization": f"Bearer {end.token}"}

    assert httpx.get(url, headers=headers).status_code == 405
    assert post(end, "get_login_info", b"{}").status_code == 415
    assert ask(end, "get_login_info")["data"]["uin"] == SELF


def test_it_lets_everybody_in_without_a_token():
    with MilkyEnd(token="") as end:
        answered = httpx.post(f"{end.base_url}/api/get_login_info", json={})

    assert answered.status_code == 200


def test_it_looks_at_no_body_while_logged_out(end: MilkyEnd):
    end.world.go_offline()

    text = post(end, "send_group_message", b"hi")

    assert (text.status_code, text.json()["retcode"]) == (200, -403)
    assert ask(end, "get_impl_info")["retcode"] == -403
    assert post(end, "get_weather").status_code == 404


def test_it_knows_its_friends_and_groups_only(end: MilkyEnd):
    assert whisper(end, "hi", to=BOB)["retcode"] == -404
    assert say(end, "hi", to=BOB)["retcode"] == -404
    assert ask(end, "get_group_member_info", group_id=GROUP, user_id=BOB)["retcode"] == -404
    assert end.world.everywhere() == {}


def test_it_opens_a_temp_session_if_told(end: MilkyEnd):
    end.world.opens_temp = True

    assert whisper(end, "hi", to=BOB)["status"] == "ok"

    assert end.world.everywhere() == {("temp", BOB): ["hi"]}


def test_it_counts_messages_by_conversation(end: MilkyEnd):
    end.world.friend_says(ALICE, "1")

    assert whisper(end, "hi")["data"]["message_seq"] == 2
    assert say(end, "hi")["data"]["message_seq"] == 1
    assert end.world.everywhere() == {("friend", ALICE): ["hi"], ("group", GROUP): ["hi"]}


def test_it_shows_what_a_person_would_see(end: MilkyEnd):
    end.world.join(GROUP, ALICE, card="叶子")
    end.world.group_says(GROUP, ALICE, "早")
    reply = {"type": "reply", "data": {"message_seq": 1}}
    mention = {"type": "mention", "data": {"user_id": ALICE}}

    say(end, reply, mention, " 早", media("image", b"\x89PNG"))
    whisper(end, mention, "早")

    assert end.world.seen("group", GROUP) == ["@叶子 早[图片]"]
    assert end.world.seen("friend", ALICE) == [f"@{ALICE} 早"]
    quoted = end.world.sent("group", GROUP)[0]["segments"][0]["data"]
    assert (quoted["sender_id"], quoted["segments"]) == (ALICE, [segments.text("早")])


@pytest.mark.parametrize(
    ("message", "retcode"),
    [
        ([], -400),
        ([""], -400),
        ([{"type": "reply", "data": {"message_seq": 99}}, "hi"], -404),
        ([{"type": "image", "data": {"uri": "file:///a.png"}}], -500),
        ([{"type": "image", "data": {"uri": "base64://%%"}}], -500),
        ([media("image", b"plain text")], -500),
        ([media("record", b"\x89PNG")], -500),
    ],
)
def test_it_sends_nothing_that_qq_would_not_take(
    end: MilkyEnd, message: list[segments.Content], retcode: int
):
    assert say(end, *message)["retcode"] == retcode
    assert end.world.everywhere() == {}


def test_it_loses_the_text_beside_a_voice_message(end: MilkyEnd):
    assert say(end, "listen: ", media("record", b"ID3"))["status"] == "ok"

    assert end.world.seen("group", GROUP) == ["[语音]"]


def test_it_is_silent_where_it_may_not_speak(end: MilkyEnd):
    end.world.mute(GROUP)
    muted = say(end, "hi")
    end.world.mute(GROUP, duration=0)
    end.world.silence(GROUP)
    silenced = say(end, "hi")
    end.world.join(GROUP, SELF, role="admin")
    spoken = say(end, "hi")
    end.world.kick(GROUP)

    assert [muted["retcode"], silenced["retcode"], spoken["retcode"]] == [120, 120, 0]
    assert say(end, "hi")["retcode"] == -404


def test_it_lets_a_mute_end_by_itself(end: MilkyEnd):
    end.world.now = lambda: 1_000
    end.world.mute(GROUP, duration=60)
    end.world.now = lambda: 1_060

    assert say(end, "hi")["status"] == "ok"


def test_it_gives_history_in_pages_from_new_to_old(end: MilkyEnd):
    for number in range(1, 6):
        end.world.friend_says(ALICE, str(number))
    end.world.recalls("friend", ALICE, 3, by=ALICE)
    place = {"message_scene": "friend", "peer_id": ALICE, "limit": 2}

    newest = ask(end, "get_history_messages", **place)["data"]
    start = newest["next_message_seq"]
    oldest = ask(end, "get_history_messages", **place, start_message_seq=start)["data"]

    assert [message["message_seq"] for message in newest["messages"]] == [4, 5]
    assert [message["message_seq"] for message in oldest["messages"]] == [1, 2]
    assert oldest["next_message_seq"] is None
    assert ask(end, "get_history_messages", **place | {"limit": 31})["retcode"] == -400


def test_it_serves_files_until_their_url_expires(end: MilkyEnd):
    image = end.world.image(b"\x89PNG")["data"]
    fetched = httpx.get(image["temp_url"])
    end.world.expire_urls()

    gone = httpx.get(image["temp_url"])
    again = ask(end, "get_resource_temp_url", resource_id=image["resource_id"])["data"]["url"]

    assert (fetched.content, gone.status_code) == (b"\x89PNG", 404)
    assert httpx.get(again).content == b"\x89PNG"


def test_it_asks_for_the_hash_of_a_private_file(end: MilkyEnd):
    message, upload = end.world.friend_uploads(ALICE, b"notes")
    file = message["data"]["segments"][0]["data"]
    named = {"user_id": ALICE, "file_id": file["file_id"]}

    right = ask(end, "get_private_file_download_url", **named, file_hash=file["file_hash"])
    wrong = ask(end, "get_private_file_download_url", **named, file_hash="")

    assert httpx.get(right["data"]["download_url"]).content == b"notes"
    assert wrong["retcode"] == -404
    assert upload["data"]["file_id"] == file["file_id"]


def test_it_takes_back_a_recalled_message(end: MilkyEnd):
    seq = say(end, "oops")["data"]["message_seq"]

    ask(end, "recall_group_message", group_id=GROUP, message_seq=seq)

    assert end.world.everywhere() == {}
    place = {"message_scene": "group", "peer_id": GROUP, "message_seq": seq}
    assert ask(end, "get_message", **place)["retcode"] == -404


def test_it_keeps_reactions_and_read_marks(end: MilkyEnd):
    end.world.group_says(GROUP, ALICE, "hi")
    place = {"message_scene": "group", "peer_id": GROUP, "message_seq": 1}

    ask(end, "send_group_message_reaction", group_id=GROUP, message_seq=1, reaction="14")
    ask(end, "mark_message_as_read", **place)

    assert end.world.reactions[GROUP, 1] == {"14"}
    assert end.world.conversations["group", GROUP].read_up_to == 1


def test_it_says_less_when_it_is_older():
    with MilkyEnd(version="1.1") as end:
        end.world.group_says(
            GROUP, ALICE, segments.mention(SELF, "Bot"), segments.reply(1, "hi", sender_id=BOB)
        )
        place = {"message_scene": "group", "peer_id": GROUP, "message_seq": 1}
        message = ask(end, "get_message", **place)["data"]["message"]
        card = say(end, {"type": "light_app", "data": {"json_payload": "{}"}})

    mention, reply = message["segments"]
    assert (mention["data"], reply["data"]) == ({"user_id": SELF}, {"message_seq": 1})
    assert "remark" not in message["group"]
    assert card["retcode"] == -400


def test_it_says_nothing_that_its_version_does_not_know(end: MilkyEnd):
    with pytest.raises(ValueError, match=r"Milky 1\.2 has no markdown"):
        end.world.friend_says(ALICE, segments.markdown())
    with pytest.raises(ValueError, match=r"Milky 1\.2 has no group_disband"):
        end.world.disband(GROUP)


def test_it_fails_as_told_and_then_no_more(end: MilkyEnd):
    end.fail("send_group_message", faults.refused(299), times=2)
    end.fail("send_group_message", faults.ok_with(1))
    end.fail("send_group_message", faults.http(502, b"<html>"))

    assert [say(end, "hi")["retcode"] for _ in range(3)] == [299, 299, 1]
    assert post(end, "send_group_message").status_code == 502
    assert end.world.everywhere() == {}
    assert say(end, "hi")["status"] == "ok"


@pytest.mark.parametrize("after_effect", [False, True])
def test_it_drops_the_connection_before_or_after(end: MilkyEnd, after_effect: bool):
    end.fail("send_group_message", faults.dropped(after_effect=after_effect))

    with pytest.raises(httpx.RemoteProtocolError):
        say(end, "hi")

    assert end.world.seen("group", GROUP) == ["hi"] * after_effect


@pytest.mark.parametrize("after_effect", [False, True])
def test_it_answers_late_when_told_to_wait(end: MilkyEnd, after_effect: bool):
    gate = threading.Event()
    fault = faults.held(gate, after_effect=after_effect)
    end.fail("send_group_message", fault)

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(say, end, "hi")
        assert fault.reached.wait(PATIENCE_S)
        seen = end.world.seen("group", GROUP)
        gate.set()

    assert seen == ["hi"] * after_effect
    assert late.result()["status"] == "ok"
    assert end.world.seen("group", GROUP) == ["hi"]


def test_it_remembers_what_it_was_asked(end: MilkyEnd):
    post(end, "get_login_info", Authorization="Bearer wrong")
    say(end, "hi")

    assert [(call.api, call.status, call.retcode) for call in end.calls] == [
        ("get_login_info", 401, None),
        ("send_group_message", 200, 0),
    ]
    assert end.asked("send_group_message") == [
        {"group_id": GROUP, "message": [segments.text("hi")]}
    ]


def test_it_takes_many_first_messages_at_once(end: MilkyEnd):
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda n: end.world.group_says(30303, 40000 + n, "hi"), range(20)))

    assert sorted(event["data"]["message_seq"] for event in said) == list(range(1, 21))
