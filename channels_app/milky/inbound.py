"""A protocol end's events as the rest knows them. Pure, and never raises on odd input.

Source: protocols/milky.md, sections 4 to 7. Scenes, peers and their numbers mean something in this folder only.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from channels_app.addresses import ChatAddress, account
from channels_app.messages import (
    ChannelNews,
    InboundMessage,
    ReachChanged,
    Sender,
    Skipped,
    WireEvent,
)
from channels_app.milky import segments
from channels_app.milky.segments import Content, node, number, text

# A stranger who writes through a shared group is answered in private: that group is not part of the talk.
TYPES: Mapping[str, str] = {"friend": "private", "temp": "private", "group": "group"}
ADMINS = ("owner", "admin")
# Below this key is what complete() still has to ask for; it takes the key out again.
UNFINISHED = "unfinished"

MUTED = "the account is muted in the group"
WHOLLY_MUTED = "only admins may speak in the group"
GONE = "the account is no longer in the group"

_KEY = re.compile(rf"(\d+)/({'|'.join(TYPES)})/(\d+)/(\d+)")

Node = Mapping[str, Any]


def parse(event: Mapping[str, Any], *, channel: str) -> WireEvent:
    """Read one event. A kind that nobody knows yet is skipped."""
    kind, data, self_id = text(event, "event_type"), node(event, "data"), number(event, "self_id")
    if self_id is None:
        return Skipped("an event that names no account")
    if kind == "message_receive":
        return message(data, channel=channel, self_id=self_id)
    if kind == "bot_offline":
        return ChannelNews("offline", text(data, "reason") or "the QQ account went offline")
    group = number(data, "group_id")
    change = _reach(event, group, channel=channel) if group else None
    return change or Skipped(f"an event of kind {kind[:60]!r}")


def message(data: Node, *, channel: str, self_id: int) -> InboundMessage | Skipped:
    """Read a message, pushed or taken from the history."""
    scene, peer, seq = (
        text(data, "message_scene"),
        number(data, "peer_id"),
        number(data, "message_seq"),
    )
    if scene not in TYPES or not peer:
        return Skipped(f"a message of scene {scene[:60]!r}: nobody knows whose chat that is")
    sender_id = number(data, "sender_id")
    if seq is None or not sender_id:
        return Skipped("a message without its number or its sender")
    owner = {"group_id" if scene == "group" else "user_id": peer}
    content = segments.read(data.get("segments"), self_id=self_id, owner=owner)
    if not content.text and not content.attachments:
        return Skipped("a message without anything to read")
    quoted = content.quoted
    return InboundMessage(
        address=ChatAddress(channel, TYPES[scene], str(peer)),
        event_key=event_key(self_id, scene, peer, seq),
        text=content.text,
        sender=_sender(data, sender_id, channel=channel, self_id=self_id),
        sent_at=instant(number(data, "time")),
        message_id=str(seq),
        chat_title=_title(data),
        addressed=scene != "group" or _is_addressed(content, self_id),
        reply_to=str(quoted.message_seq) if quoted else "",
        quote=quoted.text if quoted else "",
        forwarded_from=_origin(content),
        attachments=content.attachments,
        metadata=_marks(data, content, self_id),
    )


def event_key(self_id: int, scene: str, peer: int, seq: int) -> str:
    """Name a message for good: numbers grow by conversation, and another account of the same end counts anew."""
    return f"{self_id}/{scene}/{peer}/{seq}"


def read_key(key: str) -> tuple[int, str, int, int] | None:
    """Return account, scene, peer and number of a message that was stored, None for another event."""
    read = _KEY.fullmatch(key)
    return (int(read[1]), read[2], int(read[3]), int(read[4])) if read else None


def instant(seconds: int | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _sender(data: Node, sender_id: int, *, channel: str, self_id: int) -> Sender:
    member = node(data, "group_member")
    is_self = sender_id == self_id
    friend = "" if is_self else _friend_name(data)  # an echo too names whose chat it is
    return Sender(
        account(channel, str(sender_id)),
        text(member, "card") or text(member, "nickname") or friend,
        is_admin=text(member, "role") in ADMINS,
        is_self=is_self,
    )


def _friend_name(data: Node) -> str:
    friend = node(data, "friend")
    return text(friend, "remark") or text(friend, "nickname")


def _title(data: Node) -> str:
    if text(data, "message_scene") == "group":
        return text(node(data, "group"), "group_name")
    return _friend_name(data)


def _is_addressed(content: Content, self_id: int) -> bool:
    is_answer = content.quoted is not None and content.quoted.sender_id == self_id
    return is_answer or self_id in content.mentioned


def _origin(content: Content) -> str:
    """Return whose words a message holds that is nothing but a forward, "" for any other."""
    forwards = content.forwards
    is_alone = len(forwards) == 1 and content.text == forwards[0].shown.strip()
    return forwards[0].title if is_alone else ""


def _marks(data: Node, content: Content, self_id: int) -> dict[str, Any]:
    marks: dict[str, Any] = {}
    if text(data, "message_scene") == "temp":
        marks["temp"] = True
    missing: dict[str, Any] = {}
    if content.forwards:
        missing["forwards"] = {each.forward_id: each.shown for each in content.forwards}
    if content.quoted and content.quoted.sender_id is None:
        missing["quoted"] = {key: data[key] for key in ("message_scene", "peer_id")}
        missing["self_id"] = self_id
    return {**marks, UNFINISHED: missing} if missing else marks


def _reach(event: Node, group: int, *, channel: str) -> ReachChanged | None:
    """Read an event after which a group can be written to, or no longer; None: nothing changes for us."""
    kind, data = text(event, "event_type"), node(event, "data")
    is_us = number(data, "user_id") == number(event, "self_id")
    chat = ChatAddress(channel, "group", str(group))
    match kind:
        case "group_mute" if is_us and (seconds := number(data, "duration")):
            until = _later(instant(number(event, "time")), seconds)
            return ReachChanged(chat, MUTED, is_muted=True, until=until)
        case "group_whole_mute" if data.get("is_mute") is True:
            return ReachChanged(chat, WHOLLY_MUTED, is_muted=True)
        case "group_member_decrease" if is_us:
            by = number(data, "operator_id")
            return ReachChanged(chat, f"{by} removed the account from the group" if by else GONE)
        case "group_disband":
            return ReachChanged(chat, "the group was disbanded")
        case "group_whole_mute" if data.get("is_mute") is False:
            return ReachChanged(chat)
        case "group_mute" if is_us and number(data, "duration") == 0:
            return ReachChanged(chat)
        case "group_member_increase" if is_us:
            return ReachChanged(chat)
    return None


def _later(began: datetime | None, seconds: int) -> datetime | None:
    try:
        return began + timedelta(seconds=seconds) if began else None
    except OverflowError:
        return None
