"""What is asked of a protocol end: plain text in numbered parts, files inside the request, and nothing without a chat type."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels_app import media
from channels_app.addresses import ChatAddress
from channels_app.channels import SendError
from channels_app.messages import OutboundMessage, OutboundPart
from channels_app.milky.markdown import flattened
from channels_app.milky.outbound import Request, reaction, request, split
from channels_app.splitting import is_blank, units
from tests.milky_types.official import official

ALICE = ChatAddress("qq", "private", "10001")
GROUP = ChatAddress("qq", "group", "10001")
PNG = b"\x89PNG\r\n\x1a\n rest"
WAV = b"RIFF\x00\x00\x00\x00WAVEfmt "
WEBP = b"RIFF\x00\x00\x00\x00WEBPVP8 "


def text(address: ChatAddress, text: str = "hi", **details: Any) -> Request:
    return request(OutboundMessage(address, OutboundPart(text), **details))


def file(address: ChatAddress, kind: str, content: bytes, **details: Any) -> Request:
    part = OutboundPart("", file=media.keep(content), file_kind=kind, file_name="a.bin")
    return request(OutboundMessage(address, part, **details))


def inline(content: bytes) -> str:
    return f"base64://{base64.b64encode(content).decode()}"


def objection(asked: Request) -> str:
    return official().objection("request", asked.parameters, name=asked.api)


def test_it_writes_to_a_person_and_to_a_group_of_one_number():
    private, group = text(ALICE), text(GROUP)

    said = [{"type": "text", "data": {"text": "hi"}}]
    assert private == Request("send_private_message", {"user_id": 10001, "message": said})
    assert group == Request("send_group_message", {"group_id": 10001, "message": said})


def test_it_quotes_what_it_answers():
    asked = text(GROUP, reply_to="7")

    assert asked.parameters["message"][0] == {"type": "reply", "data": {"message_seq": 7}}
    assert objection(asked) == ""


@pytest.mark.parametrize("reply_to", ["", "event-7", "-7", "7.0", "７"])
def test_it_quotes_nothing_that_has_no_number(reply_to: str):
    assert len(text(GROUP, reply_to=reply_to).parameters["message"]) == 1


@pytest.mark.parametrize(
    "address",
    [
        "qq:10001",
        "qq:unknown:10001",
        "qq:channel:10001",
        "qq:thread:10001",
        "qq:group:20001:topic:7",
    ],
)
def test_it_sends_nothing_without_a_chat_type_of_qq(address: str):
    with pytest.raises(SendError, match="is no chat of QQ") as refused:
        text(ChatAddress.parse(address))

    assert refused.value.permanent


@pytest.mark.parametrize(
    "number",
    ["10000", "0", "-20001", "4294967296", "abc", "1e9", "２０００１", "010001", "9" * 900],
)
def test_it_sends_nothing_to_what_is_no_number_of_qq(number: str):
    with pytest.raises(SendError, match="is no number of QQ") as refused:
        text(ChatAddress("qq", "group", number))

    assert refused.value.permanent


@pytest.mark.parametrize("number", ["10001", "4294967295"])
def test_it_takes_the_smallest_and_the_largest_number(number: str):
    assert objection(text(ChatAddress("qq", "group", number))) == ""


@pytest.mark.parametrize(
    "content", [PNG, b"\xff\xd8\xff\xe0", b"GIF89a", b"BM rest", WEBP], ids=lambda each: each[:4]
)
def test_it_shows_a_picture(content: bytes):
    asked = file(GROUP, "image", content, reply_to="7")

    assert asked.api == "send_group_message"
    assert asked.parameters["message"][1] == {"type": "image", "data": {"uri": inline(content)}}
    assert objection(asked) == ""


@pytest.mark.parametrize("content", [WAV, b"ID3\x04", b"\xff\xfb\x90"], ids=lambda each: each[:3])
def test_it_speaks_alone(content: bytes):
    asked = file(ALICE, "voice", content, reply_to="7")

    assert asked.parameters["message"] == [{"type": "record", "data": {"uri": inline(content)}}]
    assert objection(asked) == ""


@pytest.mark.parametrize(
    ("kind", "content"),
    [("file", b"text"), ("image", b"<svg/>"), ("voice", b"OggS"), ("file", PNG)],
)
def test_it_uploads_what_no_message_holds(kind: str, content: bytes):
    private, group = file(ALICE, kind, content), file(GROUP, kind, content)

    carried = {"file_uri": inline(content), "file_name": "a.bin"}
    assert private == Request("upload_private_file", {"user_id": 10001, **carried})
    assert group == Request("upload_group_file", {"group_id": 10001, **carried})
    assert (objection(private), objection(group)) == ("", "")


def test_it_lets_the_outbox_know_of_a_file_that_is_gone():
    part = OutboundPart("", file="0" * 32, file_kind="file", file_name="a.txt")

    with pytest.raises(media.MissingFileError):
        request(OutboundMessage(ALICE, part))


def test_it_shows_a_group_that_a_message_was_seen():
    seen = reaction(GROUP, "7", face="124")

    assert seen is not None
    assert seen.parameters == {"group_id": 10001, "message_seq": 7, "reaction": "124"}
    assert objection(seen) == ""
    assert reaction(GROUP, "7", face="") is None
    assert reaction(GROUP, "", face="124") is None
    assert reaction(ALICE, "7", face="124") is None


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("# Title\n\n**bold**, *it* and `code`", "Title\n\nbold, it and code"),
        ("**粗体**，好的", "粗体，好的"),
        ("[here](https://e.example/x)", "here (https://e.example/x)"),
        ("<https://e.example/> and https://e.example", "https://e.example/ and https://e.example"),
        ("[mail](mailto:a@e.example)", "mail (a@e.example)"),
        ("- one\n- two", "• one\n• two"),
        ("```py\nif a < b:\n    pass\n```", "if a < b:\n    pass"),
        ("2*3*4 and a_b_c, x < y", "2*3*4 and a_b_c, x < y"),
        ("😀 [a](https://e.example/1) [b](tel:1)", "😀 a (https://e.example/1) b (1)"),
        ("a || b", "a || b"),
        ("half \ud83d a sign", "half \ufffd a sign"),
        ("叶子 😀 [图](https://e.example/图)", "叶子 😀 图 (https://e.example/图)"),
    ],
)
def test_it_flattens_markdown(markdown: str, plain: str):
    assert flattened(markdown) == plain


def test_it_numbers_the_parts_of_a_long_text():
    text = "\n\n".join(f"paragraph {number} " + "x" * 80 for number in range(8))

    parts = split(text, limit=300)

    assert [part.text[:6] for part in parts] == [f"({n}/{len(parts)}) " for n in range(1, 5)]
    assert all(units(part.text) <= 300 for part in parts)
    said = [word for part in parts for word in part.text[6:].split()]
    assert said == text.split()


def test_it_leaves_a_short_text_alone_and_a_blank_one_out():
    assert split("hi", limit=200) == [OutboundPart("hi")]
    assert split("x" * 200, limit=200) == [OutboundPart("x" * 200)]
    assert split(" \n\u200b", limit=200) == []


@given(st.text(max_size=1500), st.integers(200, 400))
def test_it_keeps_to_the_limit_whatever_the_text(text: str, limit: int):
    parts = split(text, limit=limit)

    assert all(units(part.text) <= limit and not is_blank(part.text) for part in parts)


def said(asked: Request) -> list[tuple[str, Any]]:
    """Return each segment by its kind and what it holds."""
    return [(one["type"], *one["data"].values()) for one in asked.parameters["message"]]


@pytest.mark.parametrize(
    ("words", "segments"),
    [
        ("@10002 look", [("mention", 10002), ("text", " look")]),
        ("see @10002，好", [("text", "see "), ("mention", 10002), ("text", " "), ("text", "，好")]),
        (
            "你好@10002，在吗",
            [("text", "你好"), ("mention", 10002), ("text", " "), ("text", "，在吗")],
        ),
        ("@10002你好", [("mention", 10002), ("text", " "), ("text", "你好")]),
        ("老王@10002.com", [("text", "老王@10002.com")]),
        ("https://e.example/@10002", [("text", "https://e.example/@10002")]),
        ("@10002@10003", [("text", "@10002@10003")]),
        ("mail me@10002.com", [("text", "mail me@10002.com")]),
        ("@10000 and @99999999999", [("text", "@10000 and @99999999999")]),
        ("@10002", [("mention", 10002), ("text", " ")]),
    ],
)
def test_it_mentions_people_of_a_group_by_their_number(words: str, segments: list[Any]):
    asked = text(GROUP, words)

    assert said(asked) == segments
    assert objection(asked) == ""


def test_it_mentions_nobody_in_private():
    assert said(text(ALICE, "@10002 look")) == [("text", "@10002 look")]
