"""What arrives from QQ, as the rest gets it: who spoke where, and what it says of a chat or the account."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from channels_app.addresses import ChatAddress
from channels_app.messages import ChannelNews, InboundMessage, ReachChanged, Skipped, WireEvent
from channels_app.milky.inbound import parse
from tests.fakes.milky import entities, events, segments
from tests.fakes.milky.events import SELF, Event
from tests.milky_types.official import official

SAMPLES = json.loads((Path(__file__).parent / "samples.json").read_text("utf-8"))
NUMBER = 10001  # of a person and of a group alike
ALICE = ChatAddress("qq", "private", "10001")
GROUP = ChatAddress("qq", "group", "10001")
T0 = datetime.fromtimestamp(segments.T0, UTC)


def read(event: Event) -> WireEvent:
    return parse(event, channel="qq")


def heard(event: Event) -> InboundMessage:
    found = read(event)
    assert isinstance(found, InboundMessage), found
    return found


def test_it_tells_a_friend_a_group_and_a_stranger_of_one_number_apart():
    friend = heard(events.friend_message(NUMBER, "hi"))
    group = heard(events.group_message(NUMBER, 20002, "hi"))
    stranger = heard(events.temp_message(NUMBER, "hi", through=entities.group(NUMBER)))

    assert (friend.address, group.address, stranger.address) == (ALICE, GROUP, ALICE)
    assert len({friend.event_key, group.event_key, stranger.event_key}) == 3
    assert (friend.metadata, stranger.metadata) == ({}, {"temp": True})


@pytest.mark.parametrize("scene", ["channel", "", None, 1, ["group"]])
def test_it_gives_no_address_to_a_scene_it_does_not_know(scene: object):
    event = events.friend_message(NUMBER, "hi")
    event["data"]["message_scene"] = scene

    assert isinstance(read(event), Skipped)


@pytest.mark.parametrize("field", ["message_scene", "peer_id", "message_seq", "sender_id"])
def test_it_skips_a_message_that_lacks_what_identifies_it(field: str):
    event = events.group_message(NUMBER, 20002, "hi")
    del event["data"][field]

    assert isinstance(read(event), Skipped)


def test_it_names_a_message_by_account_scene_peer_and_number():
    event = events.group_message(NUMBER, 20002, "hi", message_seq=7)

    assert heard(event).event_key == f"{SELF}/group/10001/7"
    assert heard(event).event_key != heard({**event, "self_id": 1234567891}).event_key
    assert heard(event).message_id == "7"
    assert heard(event).sent_at == T0


def test_it_knows_its_own_words():
    echo = heard(events.friend_message(NUMBER, "hi", sender_id=SELF))
    in_group = heard(events.group_message(NUMBER, SELF, "hi"))

    assert (echo.address, echo.sender.is_self) == (ALICE, True)
    assert echo.sender.name == ""  # what is told of a friend is not of ourselves
    assert echo.chat_title == "小叶"
    assert in_group.sender.is_self
    assert not heard(events.friend_message(NUMBER, "hi")).sender.is_self


def test_it_calls_people_as_the_chat_does():
    member = entities.member(NUMBER, 20002, nickname="Aru", card="阿露")
    plain = entities.member(NUMBER, 20002, nickname="Aru", card="")
    friend = entities.friend(NUMBER, nickname="小叶", remark="叶子")

    assert heard(events.group_message(NUMBER, 20002, "hi", sender=member)).sender.name == "阿露"
    assert heard(events.group_message(NUMBER, 20002, "hi", sender=plain)).sender.name == "Aru"
    assert heard(events.friend_message(NUMBER, "hi", entity=friend)).sender.name == "叶子"
    assert heard(events.friend_message(NUMBER, "hi")).sender.name == "小叶"


def test_it_calls_a_chat_by_its_title():
    assert heard(events.group_message(NUMBER, 20002, "hi")).chat_title == "测试群"
    assert heard(events.friend_message(NUMBER, "hi")).chat_title == "小叶"
    # Through which group a stranger writes does not name the talk.
    assert heard(events.temp_message(NUMBER, "hi", through=entities.group(9))).chat_title == ""


@pytest.mark.parametrize(
    ("role", "is_admin"), [("owner", True), ("admin", True), ("member", False), ("king", False)]
)
def test_it_knows_who_runs_a_group(role: str, is_admin: bool):
    member = entities.member(NUMBER, 20002, role=role)

    found = heard(events.group_message(NUMBER, 20002, "hi", sender=member))

    assert found.sender.is_admin == is_admin
    assert found.sender.account == "qq:user:20002"


def test_it_is_addressed_in_private_by_a_mention_or_by_a_reply():
    mentioned = events.group_message(NUMBER, 20002, segments.mention(SELF, "x"), " hi")
    replied = events.group_message(NUMBER, 20002, segments.reply(3, "old", sender_id=SELF), "hi")

    assert heard(events.friend_message(NUMBER, "hi")).addressed
    assert heard(events.temp_message(NUMBER, "hi")).addressed
    assert heard(mentioned).addressed
    assert heard(replied).addressed


def test_it_is_not_addressed_by_a_name_or_by_talk_among_others():
    for content in (
        ["@Bot hi"],
        [segments.mention(20003, "Bot"), " hi"],
        [segments.mention_all(), "hi"],
        [segments.reply(3, "old", sender_id=20003), "hi"],
        [segments.reply(3, segments.mention(SELF), "old", sender_id=20003), "hi"],
    ):
        assert not heard(events.group_message(NUMBER, 20002, *content)).addressed


def test_it_takes_a_file_for_one_though_it_is_reported_twice():
    in_message = heard(events.group_message(NUMBER, 20002, segments.file()))

    assert [file.name for file in in_message.attachments] == ["报告.pdf"]
    assert isinstance(read(events.group_file_upload(NUMBER, 20002)), Skipped)
    assert isinstance(read(events.friend_file_upload(NUMBER)), Skipped)


def test_it_knows_until_when_it_is_muted():
    muted = read(events.group_mute(NUMBER, SELF, operator_id=20001, duration=600))

    assert muted == ReachChanged(
        GROUP, "the account is muted in the group", is_muted=True, until=T0 + timedelta(minutes=10)
    )


@pytest.mark.parametrize(
    ("event", "reason", "is_muted"),
    [
        (events.group_whole_mute(NUMBER, operator_id=1), "only admins may speak", True),
        (events.group_member_decrease(NUMBER, SELF, operator_id=20001), "20001 removed", False),
        (events.group_member_decrease(NUMBER, SELF), "no longer in the group", False),
        (events.group_disband(NUMBER, 20001), "disbanded", False),
    ],
)
def test_it_knows_that_a_group_cannot_be_written_to(event: Event, reason: str, is_muted: bool):
    found = read(event)

    assert isinstance(found, ReachChanged)
    assert reason in found.reason
    assert (found.address, found.is_muted, found.until) == (GROUP, is_muted, None)


@pytest.mark.parametrize(
    "event",
    [
        events.group_mute(NUMBER, SELF, operator_id=20001, duration=0),
        events.group_whole_mute(NUMBER, operator_id=20001, is_mute=False),
        events.group_member_increase(NUMBER, SELF, invitor_id=20001),
    ],
)
def test_it_knows_that_a_group_can_be_written_to_again(event: Event):
    assert read(event) == ReachChanged(GROUP)


@pytest.mark.parametrize("odd", [None, "600", -1, 1.5, True])
def test_it_takes_no_odd_silence_for_its_end(odd: object):
    muted = events.group_mute(NUMBER, SELF, operator_id=20001)
    silenced = events.group_whole_mute(NUMBER, operator_id=20001)
    muted["data"]["duration"] = odd
    silenced["data"]["is_mute"] = None if odd is True else odd

    assert isinstance(read(muted), Skipped)
    assert isinstance(read(silenced), Skipped)


def test_it_knows_that_the_account_went_offline():
    assert read(events.bot_offline("kicked")) == ChannelNews("offline", "kicked")
    assert read(events.bot_offline("a\0b\ud83d")) == ChannelNews("offline", "ab\ufffd")


@pytest.mark.parametrize(
    "event",
    [
        events.group_mute(NUMBER, 20002, operator_id=20001),
        events.group_member_decrease(NUMBER, 20002),
        events.group_member_increase(NUMBER, 20002),
        events.message_recall("group", NUMBER, 1, sender_id=20002),
        events.peer_pin_change("friend", NUMBER),
        events.friend_request(20002),
        events.group_join_request(NUMBER, 20002),
        events.group_invited_join_request(NUMBER, 20002, target_user_id=20003),
        events.group_invitation(NUMBER, 20002),
        events.friend_nudge(20002),
        events.group_nudge(NUMBER, 20002),
        events.group_name_change(NUMBER, "new", operator_id=20001),
        events.group_admin_change(NUMBER, SELF, operator_id=20001),
        events.group_message_reaction(NUMBER, 20002, 1),
        events.group_essence_message_change(NUMBER, 1, operator_id=20001),
        events.unknown_event(phase="full"),
    ],
    ids=lambda event: event["event_type"],
)
def test_it_lets_go_what_concerns_nobody_here(event: Event):
    assert isinstance(read(event), Skipped)


def test_it_ignores_fields_it_does_not_know():
    event = events.group_message(NUMBER, 20002, "hi")
    strange = {**event, "moon": 1, "data": {**event["data"], "moon": {"phase": []}}}

    assert read(strange) == read(event)


def test_it_reads_every_sample_of_the_protocol():
    read_samples = [read(sample) for sample in SAMPLES]

    kinds = [sample["event_type"] for sample in SAMPLES]
    messages = [found for found in read_samples if isinstance(found, InboundMessage)]
    assert len(messages) == kinds.count("message_receive")


def test_it_is_held_against_events_as_the_protocol_has_them():
    for event in (
        events.friend_message(NUMBER, "hi"),
        events.group_message(NUMBER, 20002, segments.reply(3, "old", sender_id=SELF), "hi"),
        events.temp_message(NUMBER, "hi", through=entities.group(NUMBER)),
        events.group_mute(NUMBER, SELF, operator_id=20001),
        events.group_disband(NUMBER, 20001),
    ):
        assert official().objection("event", event) == ""
