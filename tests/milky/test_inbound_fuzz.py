"""Whatever a protocol end may send, parsing it never raises, and never makes an address up."""

import copy
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from channels_app.messages import ChannelNews, InboundMessage, ReachChanged, Skipped, storable
from channels_app.milky.inbound import parse
from tests.fakes.milky import events

SAMPLES = json.loads((Path(__file__).parent / "samples.json").read_text("utf-8"))
KINDS = [
    "message_receive",
    "bot_offline",
    "group_mute",
    "group_whole_mute",
    "group_member_decrease",
    "group_member_increase",
    "group_disband",
]
WORDS = st.sampled_from(["", "friend", "group", "temp", "admin", "message_receive", "bot_offline"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | WORDS
    | st.sampled_from([10001, events.SELF, 2**64, -1])
)
KEYS = st.sampled_from(
    [
        "user_id",
        "group_id",
        "peer_id",
        "sender_id",
        "message_scene",
        "message_seq",
        "time",
        "duration",
        "is_mute",
        "operator_id",
        "type",
        "data",
        "segments",
        "text",
        "name",
        "title",
        "preview",
        "summary",
        "forward_id",
        "json_payload",
        "xml_payload",
        "file_id",
        "file_size",
        "width",
        "height",
    ]
) | st.text(max_size=5)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)
SEGMENTS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                [
                    "text",
                    "mention",
                    "mention_all",
                    "face",
                    "reply",
                    "image",
                    "record",
                    "video",
                    "file",
                    "forward",
                    "market_face",
                    "light_app",
                    "xml",
                    "markdown",
                ]
            )
            | SCALARS,
            "data": st.dictionaries(KEYS, ANYTHING, max_size=6) | ANYTHING,
        }
    ),
    max_size=6,
)
KNOWN = (InboundMessage, ReachChanged, ChannelNews, Skipped)


@given(st.dictionaries(st.sampled_from(["time", "self_id", "event_type", "data"]), ANYTHING))
def test_it_takes_any_event(event: dict[str, Any]):
    assert isinstance(parse(event, channel="qq"), KNOWN)


@given(st.sampled_from(KINDS), st.dictionaries(KEYS, ANYTHING), SCALARS)
def test_it_takes_any_data_of_a_known_kind(kind: str, data: dict[str, Any], time: object):
    event = {"time": time, "self_id": events.SELF, "event_type": kind, "data": data}

    assert isinstance(parse(event, channel="qq"), KNOWN)


@given(SEGMENTS, st.dictionaries(KEYS, ANYTHING, max_size=3))
def test_it_takes_any_segments(segments: list[Any], odd: dict[str, Any]):
    event = events.group_message(10001, 20002)
    event["data"] |= {**odd, "segments": segments}

    found = parse(event, channel="qq")

    assert isinstance(found, KNOWN)
    if isinstance(found, InboundMessage):
        known = {"friend": "private", "temp": "private", "group": "group"}
        assert found.address.target_type == known[event["data"]["message_scene"]]


def nodes(value: Any) -> Iterator[Any]:
    """Yield every object and list in a value, itself first."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from nodes(inner)


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (*texts(key), *texts(inner))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts(inner)


# Half a character, a NUL, nothing to see, a heap of brackets.
ODD_WORDS = st.sampled_from(["a\ud83d", "\udc00b", "a\0b", "\0", "\u200b", "[" * 9000])


@given(st.sampled_from(SAMPLES), st.data())
def test_it_takes_a_real_event_with_parts_exchanged(sample: dict[str, Any], data: st.DataObject):
    event = copy.deepcopy(sample)
    for _ in range(data.draw(st.integers(1, 3))):
        node = data.draw(st.sampled_from([each for each in nodes(event) if each]))
        place = data.draw(st.sampled_from(list(node) if isinstance(node, dict) else [0, -1]))
        node[place] = data.draw(ODD_WORDS | ANYTHING)

    found = parse(event, channel="qq")

    assert isinstance(found, KNOWN)
    if not isinstance(found, Skipped):
        assert all(text == storable(text) for text in texts(asdict(found)))
