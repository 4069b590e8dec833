"""Every kind of segment, as the model reads it; what nests is read as far as a person would."""

import json
from typing import Any

import pytest

from channels_app.messages import Attachment, InboundMessage
from channels_app.milky.inbound import parse
from channels_app.milky.segments import MOST_FILES, Content, read
from tests.fakes.milky import segments
from tests.fakes.milky.events import SELF, friend_message
from tests.fakes.milky.segments import Content as Said
from tests.milky_types.official import official

GROUP = {"group_id": 20001}


def content(*said: Said, owner: dict[str, int] = GROUP) -> Content:
    return read(segments.segments_of(said), self_id=SELF, owner=owner)


def attached(*said: Said) -> Attachment:
    (file,) = content(*said).attachments
    return file


@pytest.mark.parametrize(
    ("segment", "shown"),
    [
        (segments.text("hi"), "hi"),
        (segments.mention(20002, "阿露"), "@阿露"),
        (segments.mention(20002), "@20002"),
        (segments.mention_all(), "@全体成员"),
        (segments.face("14"), "[face 14]"),
        (segments.markdown("# 标题"), "# 标题"),
        (segments.xml('<msg brief="a &amp; b"/>'), "[card: a & b]"),
        (segments.xml(), "[card]"),
        (segments.light_app("no JSON"), "[card: com.example.card]"),
        (segments.light_app("[" * 100_000), "[card: com.example.card]"),
        (segments.unknown(shape="cube"), "[unsupported: hologram]"),
    ],
)
def test_it_reads_what_is_said(segment: dict[str, Any], shown: str):
    assert content(segment).text == shown


def test_it_reads_what_a_shared_card_shows():
    shared = {"title": "天气", "desc": "晴", "qqdocurl": "https://e.example/1", "preview": "x"}
    payload = {"prompt": "[分享]天气", "meta": {"detail_1": shared}}

    card = content(segments.light_app(json.dumps(payload))).text

    assert card == "[card: [分享]天气 · 天气 · 晴 · https://e.example/1]"


@pytest.mark.parametrize(
    ("segment", "kind", "text"),
    [
        (segments.image(), "image", "640x480"),
        (segments.image(summary="一只猫"), "image", "一只猫 640x480"),
        (segments.image(summary="[动画表情]", sub_type="sticker"), "sticker", "640x480"),
        (segments.record(duration=64), "voice", "64 s"),
        (segments.video(), "video", "9 s 720x1280"),
        (segments.market_face("[赞]"), "sticker", "[赞]"),
    ],
)
def test_it_takes_files_for_files(segment: dict[str, Any], kind: str, text: str):
    file = attached(segment)

    assert (file.kind, file.text) == (kind, text)
    assert content(segment).text == ""


def test_it_notes_where_a_file_is():
    grouped = attached(segments.file("/f-1"))
    (private,) = content(
        segments.file("/p-1", file_hash="aa"), owner={"user_id": 10001}
    ).attachments
    image = attached(segments.image("res-1", temp_url="http://127.0.0.1:9/a"))

    assert json.loads(grouped.platform_id) == {
        "group_id": 20001,
        "file_id": "/f-1",
        "file_hash": "",
    }
    assert json.loads(private.platform_id) == {
        "user_id": 10001,
        "file_id": "/p-1",
        "file_hash": "aa",
    }
    assert json.loads(image.platform_id)["resource_id"] == "res-1"
    assert (grouped.name, grouped.size) == ("报告.pdf", 20480)


def test_it_keeps_the_order_of_what_is_said():
    said: list[Said] = ["看这个 ", segments.face("14"), segments.unknown(), " 吧", segments.image()]

    assert content(*said).text == "看这个 [face 14][unsupported: hologram] 吧"


@pytest.mark.parametrize(
    "before",
    [
        [segments.mention(SELF, "纳西妲")],
        [segments.reply(3, "old", sender_id=SELF), segments.mention(SELF)],
        ["  ", segments.mention(SELF), segments.mention(SELF)],
    ],
)
def test_it_finds_the_command_behind_its_own_name(before: list[Said]):
    assert content(*before, " /help").text == "/help"


def test_it_leaves_its_name_where_it_is_part_of_what_is_said():
    assert content("ask ", segments.mention(SELF, "Bot"), " too").text == "ask @Bot too"


def test_it_hears_its_bare_name():
    assert content(segments.mention(SELF, "Bot"), " ").text == "@Bot"


def test_it_quotes_what_is_replied_to():
    reply = segments.reply(3, "look: ", segments.image(), segments.file(), sender_id=20002)

    quoted = content(reply, "nice").quoted

    assert quoted is not None
    assert (quoted.message_seq, quoted.sender_id) == (3, 20002)
    assert quoted.text == "look: [image: 640x480][file: 报告.pdf]"
    assert content(reply, "nice").text == "nice"


def test_it_reads_quotes_within_quotes_only_so_deep():
    inner = segments.reply(1, "one", sender_id=1)
    for number in range(2, 40):
        inner = segments.reply(number, inner, f"level {number}", sender_id=1)

    quoted = content(inner, "hi").quoted

    assert quoted is not None
    assert quoted.text == "(in reply to: (in reply to: level 37) level 38) level 39"


def test_it_reads_only_so_much():
    long = content(*["x"] * 10_000, *[segments.image()] * 100)
    quoting = content(segments.reply(1, *["x" * 50] * 10_000, sender_id=1))
    many = content(*[segments.image()] * 200)

    assert len(long.text) == 300
    assert quoting.quoted is not None
    assert len(quoting.quoted.text) == 1000
    assert len(many.attachments) == MOST_FILES


def test_it_shows_a_forward_by_its_preview_until_it_is_unfolded():
    message = parse(friend_message(10001, segments.forward("fwd-1")), channel="qq")

    assert isinstance(message, InboundMessage)
    assert message.text == "[forwarded: 群聊的聊天记录]\n阿露: 在吗\n小叶: 在"
    assert message.forwarded_from == "群聊的聊天记录"


def test_it_is_held_against_segments_as_the_protocol_has_them():
    for segment in (
        segments.text("hi"),
        segments.image(),
        segments.record(),
        segments.video(),
        segments.file(),
        segments.forward(),
        segments.market_face(),
        segments.light_app(),
        segments.xml(),
        segments.markdown(),
        segments.reply(3, "old", sender_id=20002),
    ):
        assert official().objection("segment", segment) == ""
