"""Somebody else's Milky client, `milky-python-sdk`, gets along with the fake protocol end."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import httpx
import pytest
from milky.client import MilkyClient, MilkyError, MilkyHttpError
from milky.models import (
    FriendMessage,
    GroupMessage,
    ImageSubType,
    MentionSegmentData,
    MessageEvent,
    MessageScene,
    MilkyEvent,
    OutgoingImageSegment,
    OutgoingImageSegmentData,
    OutgoingMentionSegment,
    OutgoingReplySegment,
    OutgoingTextSegment,
    ReplySegmentData,
    TextSegmentData,
)

from tests.fakes.milky import events, faults, segments
from tests.fakes.milky.end import PATIENCE_S, MilkyEnd
from tests.fakes.milky.events import SELF

ALICE, GROUP, BOB = 10001, 10001, 20002

HI = [OutgoingTextSegment(data=TextSegmentData(text="hi"))]


@pytest.fixture(params=["", "/milky"], ids=["no prefix", "prefix"])
def end(request: pytest.FixtureRequest) -> Iterator[MilkyEnd]:
    with MilkyEnd(prefix=request.param) as end:
        end.world.befriend(ALICE, remark="叶子")
        end.world.join(GROUP, ALICE, role="admin")
        yield end


@pytest.fixture
def client(end: MilkyEnd) -> Iterator[MilkyClient]:
    with MilkyClient(end.base_url, end.token, timeout=PATIENCE_S) as client:
        yield client


@pytest.fixture
def hear(end: MilkyEnd, client: MilkyClient) -> Iterator[Callable[[int], Future[list[Any]]]]:
    """Open a stream for the next so many events."""
    with ThreadPoolExecutor(2) as pool:

        def hear(count: int) -> Future[list[Any]]:
            opened = len(end.opened)
            heard = pool.submit(lambda: list(islice(client.events_sse(), count)))
            end.wait_for_stream(opened=opened + 1)
            return heard

        yield hear
        end.cut()  # whatever still listens


def test_it_tells_who_is_there(client: MilkyClient):
    assert client.get_login_info().uin == SELF
    assert client.get_impl_info().milky_version == "1.2"
    assert client.get_friend_info(ALICE).remark == "叶子"
    assert client.get_group_info(GROUP).group_id == GROUP
    assert client.get_group_member_info(GROUP, ALICE).role.value == "admin"


def test_it_sends_and_finds_again(end: MilkyEnd, client: MilkyClient):
    end.world.group_says(GROUP, ALICE, "早")
    sent = client.send_group_message(
        GROUP,
        [
            OutgoingReplySegment(data=ReplySegmentData(message_seq=1)),
            OutgoingMentionSegment(data=MentionSegmentData(user_id=ALICE)),
            *HI,
            OutgoingImageSegment(
                data=OutgoingImageSegmentData(
                    uri="base64://iVBORw0KGgo=", sub_type=ImageSubType.NORMAL
                )
            ),
        ],
    )

    found = client.get_message(MessageScene.GROUP, GROUP, sent.message_seq)
    history, following = client.get_history_messages(MessageScene.GROUP, GROUP)

    assert isinstance(found, GroupMessage)
    assert [part.type for part in found.segments] == ["reply", "mention", "text", "image"]
    assert ([message.message_seq for message in history], following) == ([1, 2], None)


def test_it_sends_to_friends_recalls_and_marks(end: MilkyEnd, client: MilkyClient):
    sent = client.send_private_message(ALICE, HI)
    client.mark_message_as_read(MessageScene.FRIEND, ALICE, sent.message_seq)

    client.recall_private_message(ALICE, sent.message_seq)

    assert end.world.everywhere() == {}


def test_it_hands_out_files_and_forwards(end: MilkyEnd, client: MilkyClient):
    image = end.world.image(b"\x89PNG")["data"]
    forward = end.world.forward(segments.forwarded("在吗"))["data"]
    private = client.upload_private_file(ALICE, "base64://bm90ZXM=", "notes.txt")
    shared = client.upload_group_file(GROUP, "base64://bm90ZXM=", "notes.txt")
    file_hash = end.world.resources[private.file_id].file_hash

    urls = [
        client.get_resource_temp_url(image["resource_id"]).url,
        client.get_private_file_download_url(ALICE, private.file_id, file_hash).download_url,
        client.get_group_file_download_url(GROUP, shared.file_id).download_url,
    ]

    assert [httpx.get(url).content for url in urls] == [b"\x89PNG", b"notes", b"notes"]
    assert client.get_forwarded_messages(forward["forward_id"])[0].sender_name == "阿露"


def test_it_reacts(end: MilkyEnd, client: MilkyClient):
    end.world.group_says(GROUP, ALICE, "hi")

    client.send_group_message_reaction(GROUP, 1, "14")

    assert end.world.reactions[GROUP, 1] == {"14"}


def test_it_refuses_in_words_the_client_knows(end: MilkyEnd, client: MilkyClient):
    with pytest.raises(MilkyError, match="Friend not found"):
        client.send_private_message(BOB, HI)
    with pytest.raises(MilkyError, match="-400"):
        client.send_private_message(1, HI)
    end.world.go_offline()
    with pytest.raises(MilkyError, match="-403"):
        client.get_login_info()
    end.token = "another-token"
    with pytest.raises(MilkyHttpError, match="401"):
        client.get_login_info()


def test_it_reports_every_event_to_every_stream(
    end: MilkyEnd, hear: Callable[[int], Future[list[Any]]]
):
    heard = [hear(3), hear(3)]

    said = end.world.friend_says(ALICE, "早上好 🌱", segments.image())
    nudged = end.world.happens(events.group_nudge(GROUP, ALICE))
    muted = end.world.mute(GROUP)

    assert [future.result(PATIENCE_S) for future in heard] == [[said, nudged, muted]] * 2
    message = MessageEvent.model_validate(said).data
    assert isinstance(message, FriendMessage)
    assert MilkyEvent.model_validate(nudged).event_type == "group_nudge"


def test_it_reports_own_messages_and_files_twice(
    end: MilkyEnd, client: MilkyClient, hear: Callable[[int], Future[list[Any]]]
):
    heard = hear(4)

    client.send_group_message(GROUP, HI)
    end.world.group_uploads(GROUP, ALICE, b"notes")
    client.send_group_message(GROUP, HI)

    kinds = [
        (event["event_type"], event["data"].get("sender_id")) for event in heard.result(PATIENCE_S)
    ]
    assert kinds == [
        ("message_receive", SELF),
        ("message_receive", ALICE),
        ("group_file_upload", None),
        ("message_receive", SELF),
    ]


def test_it_reports_nothing_of_its_own_if_told_so(
    end: MilkyEnd, client: MilkyClient, hear: Callable[[int], Future[list[Any]]]
):
    end.world.reports_self = False
    heard = hear(1)

    client.send_group_message(GROUP, HI)
    said = end.world.friend_says(ALICE, "hi")

    assert heard.result(PATIENCE_S) == [said]


def test_it_loses_what_happens_while_nobody_listens(
    end: MilkyEnd, hear: Callable[[int], Future[list[Any]]]
):
    first = hear(1)
    before = end.world.friend_says(ALICE, "1")
    assert first.result(PATIENCE_S) == [before]
    end.wait_for_no_stream()
    end.world.friend_says(ALICE, "2")

    second = hear(1)
    after = end.world.friend_says(ALICE, "3")

    assert second.result(PATIENCE_S) == [after]


def test_it_breaks_streams_and_leaves_them_half_open(
    end: MilkyEnd, hear: Callable[[int], Future[list[Any]]]
):
    broken = hear(1)
    end.cut()
    with pytest.raises(httpx.RemoteProtocolError):
        broken.result(PATIENCE_S)

    silent = hear(1)
    end.go_silent()
    end.world.friend_says(ALICE, "1")
    fresh = hear(1)
    said = end.world.friend_says(ALICE, "2")

    assert fresh.result(PATIENCE_S) == [said]
    assert not silent.done()


def test_it_goes_down_and_comes_up(
    end: MilkyEnd, client: MilkyClient, hear: Callable[[int], Future[list[Any]]]
):
    client.get_login_info()
    broken = hear(1)

    end.go_down()
    with pytest.raises(httpx.RemoteProtocolError):
        broken.result(PATIENCE_S)
    with pytest.raises(MilkyHttpError, match="Connection refused"):
        MilkyClient(end.base_url, end.token).get_login_info()
    end.come_up()

    assert client.get_login_info().uin == SELF


def test_it_lets_nobody_listen_without_the_token(end: MilkyEnd):
    with pytest.raises(MilkyHttpError, match="401"):
        next(MilkyClient(end.base_url, "wrong").events_sse())
    end.fail("event", faults.http(502))
    with pytest.raises(httpx.HTTPStatusError, match="502"):
        next(MilkyClient(end.base_url, end.token).events_sse())

    assert [opened.status for opened in end.opened] == [401, 502]


def test_it_can_send_more_than_events(end: MilkyEnd, hear: Callable[[int], Future[list[Any]]]):
    heard = hear(1)

    end.emit_raw(b": still here\n\nevent: milky_event\ndata: {broken\n\n")
    said = end.world.friend_says(ALICE, "hi")

    assert heard.result(PATIENCE_S) == [said]
