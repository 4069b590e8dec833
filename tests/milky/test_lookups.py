"""What only the protocol end can tell: who was quoted on older ends, and what a forward holds."""

from collections.abc import Mapping
from typing import Any

from channels_app.messages import InboundMessage
from channels_app.milky.inbound import parse
from channels_app.milky.lookups import LONGEST_FORWARD, MOST_ASKED, completed
from tests.fakes.milky import segments
from tests.fakes.milky.events import SELF, Event, friend_message, group_message
from tests.fakes.milky.segments import Content, Segment, forwarded

OLD_REPLY = {"type": "reply", "data": {"message_seq": 3}}  # as ends before 1.2 have it


class Told:
    """A protocol end that knows these forwards and these messages."""

    def __init__(self, **known: Any) -> None:
        self.forwards: dict[str, Any] = known.get("forwards", {})
        self.message: Any = known.get("message")
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def __call__(self, api: str, **params: Any) -> Mapping[str, Any]:
        self.asked.append((api, params))
        if api == "get_message":
            return {"message": self.message}
        return {"messages": self.forwards.get(params["forward_id"])}


def heard(event: Event) -> InboundMessage:
    found = parse(event, channel="qq")
    assert isinstance(found, InboundMessage), found
    return found


def replied(*content: Content, sender_id: int) -> tuple[InboundMessage, Told]:
    quoted = group_message(10001, sender_id, *content, message_seq=3)["data"]
    told = Told(message=quoted)
    return completed(heard(group_message(10001, 20002, OLD_REPLY, "why?")), told), told


def unfolded(*messages: Any, **forwards: Any) -> InboundMessage:
    told = Told(forwards={"fwd-1": list(messages), **forwards})
    return completed(heard(friend_message(10001, segments.forward("fwd-1"))), told)


def test_it_learns_that_an_answer_to_itself_was_quoted():
    message, told = replied("because", sender_id=SELF)

    assert (message.addressed, message.quote, message.metadata) == (True, "because", {})
    where = {"message_scene": "group", "peer_id": 10001, "message_seq": 3}
    assert told.asked == [("get_message", where)]


def test_it_learns_that_somebody_else_was_quoted():
    message, _ = replied("because", sender_id=20003)

    assert (message.addressed, message.quote) == (False, "because")


def test_it_asks_nothing_when_the_event_says_it_all():
    told = Told()
    reply = segments.reply(3, "old", sender_id=20003)

    message = completed(heard(group_message(10001, 20002, reply, "why?")), told)

    assert message.quote == "old"
    assert told.asked == []


def test_it_goes_on_without_what_it_is_not_told():
    quoting = completed(heard(group_message(10001, 20002, OLD_REPLY, "why?")), Told())
    forwarding = completed(heard(friend_message(10001, segments.forward("gone"))), Told())

    assert (quoting.text, quoting.quote, quoting.addressed) == ("why?", "", False)
    assert forwarding.text == "[forwarded: 群聊的聊天记录]\n阿露: 在吗\n小叶: 在"


def test_it_unfolds_a_forward_with_its_pictures():
    message = unfolded(
        forwarded("在吗", sender_name="阿露"),
        forwarded("看 ", segments.image("res-9"), sender_name="小叶"),
    )

    assert message.text == "[forwarded: 群聊的聊天记录]\n阿露: 在吗\n小叶: 看 [image: 640x480]"
    assert message.forwarded_from == "群聊的聊天记录"
    assert [file.kind for file in message.attachments] == ["image"]


def test_it_unfolds_a_forward_whose_preview_ends_with_blanks():
    told = Told(forwards={"fwd-1": [forwarded("在吗", sender_name="阿露")]})
    packed = segments.forward("fwd-1", title="them", preview=["阿露: 在… \n"])

    message = completed(heard(friend_message(10001, packed)), told)

    assert message.text == "[forwarded: them]\n阿露: 在吗"
    assert message.forwarded_from == "them"


def test_it_asks_only_for_what_can_be_sent():
    """Half a character in an id would break the request, and with it the message."""
    told = Told()

    completed(heard(friend_message(10001, segments.forward("fwd-\ud83d"))), told)

    assert [params for _, params in told.asked] == [{"forward_id": "fwd-\ufffd"}]


def test_it_unfolds_a_forward_in_a_forward():
    inner: Segment = segments.forward("fwd-2", title="inner", preview=())

    message = unfolded(forwarded(inner), **{"fwd-2": [forwarded("deep", sender_name="Mo")]})

    assert message.text.split("\n")[1:] == ["阿露: [forwarded: inner]", "  Mo: deep"]


def test_it_never_unfolds_without_end():
    """A forward that holds itself, ten times."""
    itself = forwarded(*[segments.forward("fwd-1")] * 10)
    told = Told(forwards={"fwd-1": [itself] * 50})

    message = completed(heard(friend_message(10001, segments.forward("fwd-1"))), told)

    assert len(told.asked) <= MOST_ASKED
    assert len(message.text) <= LONGEST_FORWARD


def test_it_reads_odd_forwards():
    odds: list[Any] = [None, 7, [None, 7, {}], [{"segments": 7}], [{"segments": [7, {"type": []}]}]]

    for odd in odds:
        told = Told(forwards={"fwd-1": odd}, message=odd)

        completed(heard(friend_message(10001, segments.forward("fwd-1"), OLD_REPLY)), told)


def test_it_cannot_be_commanded_by_a_forward():
    message = unfolded(forwarded("/reset", sender_name="/reset"))

    assert not message.text.startswith("/")
