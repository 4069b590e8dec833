"""The samples that the parsers are held against are what the protocol's own schemas say they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.milky_types.official import official

SAMPLES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "samples.json").read_text("utf-8")
)
KNOWN, WITH_UNKNOWN_SEGMENT = SAMPLES[:-1], SAMPLES[-1]

SENT = {
    "group_id": 765432109,
    "message": [
        {"type": "reply", "data": {"message_seq": 90012}},
        {"type": "mention", "data": {"user_id": 3456789012}},
        {"type": "text", "data": {"text": " 好的"}},
        {
            "type": "image",
            "data": {
                "uri": "base64://iVBORw0KGgo=",
                "sub_type": "normal",
                "summary": "[图片]",
            },
        },
    ],
}


@pytest.mark.parametrize("sample", KNOWN, ids=[sample["event_type"] for sample in KNOWN])
def test_it_finds_the_samples_right(sample: dict[str, Any]):
    assert official().objection("event", sample) == ""


def test_it_sees_an_unknown_segment():
    objection = official().objection("event", WITH_UNKNOWN_SEGMENT)

    assert 'segments.1.type: "hologram" became "text"' in objection


def test_it_finds_a_request_and_its_answer_right():
    schemas = official()

    assert schemas.objection("request", SENT, name="send_group_message") == ""
    assert (
        schemas.objection(
            "response", {"message_seq": 90015, "time": 1790000060}, name="send_group_message"
        )
        == ""
    )


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("event", "", {"event_type": "group_disband", "data": {"group_id": 7, "operator_id": 7}}),
        ("event", "", {"event_type": "no_such_event", "data": {}}),
        ("segment", "", {"type": "text", "data": {"text": "hi", "size": 2}}),
        ("segment", "", {"type": "markdown", "data": {"content": 1}}),
        ("request", "send_group_message", SENT | {"group_id": "765432109"}),
        ("request", "send_group_message", SENT | {"user_id": 765432109}),
        ("request", "persist_group_file", {"group_id": 765432109}),
        ("request", "get_login_info", {"no_cache": True}),
        ("request", "no_such_api", {}),
        ("response", "get_login_info", {"uin": 10000, "nickname": ""}),
    ],
)
def test_it_objects(kind: Any, name: str, value: dict[str, Any]):
    assert official().objection(kind, value, name=name) != ""


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("segment", "", {"type": "markdown", "data": {"content": "# 标题"}}),
        ("request", "persist_group_file", {"group_id": 765432109, "file_id": "/f-1"}),
        (
            "event",
            "",
            {
                "time": 1790000000,
                "self_id": 1234567890,
                "event_type": "group_disband",
                "data": {"group_id": 765432109, "operator_id": 3456789012},
            },
        ),
    ],
)
def test_it_knows_what_milky_1_3_adds(kind: Any, name: str, value: dict[str, Any]):
    assert official().objection(kind, value, name=name) == ""
