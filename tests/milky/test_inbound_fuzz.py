"""Whatever a protocol end may send, parsing it never raises, and never makes an address up."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from channels_app.messages import ChannelNews, InboundMessage, ReachChanged, Skipped
from channels_app.milky.inbound import parse
from tests.fakes.milky import events

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
