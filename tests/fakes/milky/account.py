"""The APIs: what the account does in the world. One method an API, with parameters that are already checked."""

import base64
import binascii
from collections.abc import Iterable
from typing import Any, Protocol

from tests.fakes.milky import events, params, segments
from tests.fakes.milky.events import SELF
from tests.fakes.milky.segments import Segment
from tests.fakes.milky.versions import SENT_SEGMENTS_SINCE, in_words_of
from tests.fakes.milky.world import Conversation, Message, World

Data = dict[str, Any]

MUTED = 120  # one of QQ's own codes, which ends pass through

_IMAGES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"RIFF")
_VOICES = (
    b"RIFF",
    b"ID3",
    b"\xff\xfb",
    b"\xff\xf3",
    b"\xff\xf2",
    b"#!SILK",
    b"\x02#!SILK",
    b"#!AMR",
    b"OggS",
)
# A QQ message of such a kind holds nothing else: the rest is lost.
_STAND_ALONE = ("record", "video", "forward", "light_app")


class Refusal(Exception):
    """The end answers that it failed."""

    def __init__(self, retcode: int, message: str) -> None:
        super().__init__(message)
        self.retcode = retcode


class _AnyPeer(Protocol):
    message_scene: params.Scene
    peer_id: int


class Account:
    def __init__(self, world: World) -> None:
        self._world = world

    def get_login_info(self, p: params.Params) -> Data:
        return {"uin": SELF, "nickname": "Bot"}

    def get_impl_info(self, p: params.Params) -> Data:
        return {
            "impl_name": "FakeEnd",
            "impl_version": "0.1.0",
            "qq_protocol_version": "3.2.19-39038",
            "qq_protocol_type": "linux",
            "milky_version": self._world.version,
        }

    # Who is there

    def get_friend_info(self, p: params.GetFriendInfo) -> Data:
        return {"friend": self._known(self._world.friends, p.user_id, "Friend")}

    def get_group_info(self, p: params.GetGroupInfo) -> Data:
        return {"group": self._known(self._world.groups, p.group_id, "Group")}

    def get_group_member_info(self, p: params.GetGroupMemberInfo) -> Data:
        self._known(self._world.groups, p.group_id, "Group")
        member = (p.group_id, p.user_id)
        return {"member": self._known(self._world.members, member, "Group member")}

    def _known(self, table: dict[Any, Any], key: object, what: str) -> Any:
        if key not in table:
            raise Refusal(-404, f"{what} not found")
        return table[key]

    # Messages

    def send_private_message(self, p: params.SendPrivateMessage) -> Data:
        scene = "friend"
        if p.user_id not in self._world.friends:
            if not self._world.opens_temp:
                raise Refusal(-404, "Friend not found")
            scene = "temp"
        return self._send(scene, p.user_id, p.message)

    def send_group_message(self, p: params.SendGroupMessage) -> Data:
        self._known(self._world.groups, p.group_id, "Group")
        self._need_voice(p.group_id)
        return self._send("group", p.group_id, p.message)

    def _need_voice(self, group_id: int) -> None:
        own = self._world.members[group_id, SELF]
        is_muted = (own["shut_up_end_time"] or 0) > self._world.now()
        if is_muted or (group_id in self._world.silenced and own["role"] == "member"):
            raise Refusal(MUTED, "你已被禁言")

    def _send(self, scene: str, peer_id: int, message: list[params.OutgoingSegment]) -> Data:
        talk = self._world.conversations[scene, peer_id]
        arrived = [self._as_arrived(part, scene, peer_id, talk) for part in message]
        alone = [part for part in arrived if part["type"] in _STAND_ALONE]
        content = alone[:1] or arrived
        if not content or all(part == segments.text("") for part in content):
            raise Refusal(-400, "Message is empty")
        sent = self._world.says(scene, peer_id, SELF, *content)["data"]
        return {"message_seq": sent["message_seq"], "time": sent["time"]}

    def _as_arrived(
        self, part: params.OutgoingSegment, scene: str, peer_id: int, talk: Conversation
    ) -> Segment:
        """Return what a receiver gets for an outgoing segment."""
        if SENT_SEGMENTS_SINCE.get(part.type, self._world.version) > self._world.version:
            raise Refusal(-400, f"Unknown segment type {part.type}")
        match part:
            case params.Text(data=data):
                return segments.text(data.text)
            case params.Mention(data=data) if scene != "group":
                return segments.text(f"@{data.user_id} ")
            case params.Mention(data=data):
                return segments.mention(data.user_id, self._name(peer_id, data.user_id))
            case params.MentionAll():
                return segments.mention_all()
            case params.Face(data=data):
                return segments.face(data.face_id, is_large=bool(data.is_large))
            case params.Reply(data=data):
                quoted = self._message(talk, data.message_seq)
                return segments.reply(
                    data.message_seq,
                    *quoted["segments"],
                    sender_id=quoted["sender_id"],
                    time=quoted["time"],
                )
            case params.Image(data=data):
                return self._world.image(
                    _media(data.uri, _IMAGES),
                    summary=data.summary or "[图片]",
                    sub_type=data.sub_type or "normal",
                )
            case params.Record(data=data):
                return self._world.record(_media(data.uri, _VOICES))
            case params.Video(data=data):
                return self._world.video(_media(data.uri, (b"",)))
            case params.Forward(data=data):
                return self._forwarded(data, scene, peer_id, talk)
            case params.LightApp(data=data):
                return segments.light_app(data.json_payload)
        raise AssertionError(part)

    def _forwarded(
        self, data: params.ForwardData, scene: str, peer_id: int, talk: Conversation
    ) -> Segment:
        messages = [
            segments.forwarded(
                *(self._as_arrived(part, scene, peer_id, talk) for part in message.segments),
                sender_name=message.sender_name,
                message_seq=number,
            )
            for number, message in enumerate(data.messages, start=1)
        ]
        return self._world.forward(*messages, preview=data.preview or ())

    def _name(self, group_id: int, user_id: int) -> str:
        member = self._world.members.get((group_id, user_id))
        return (member["card"] or member["nickname"]) if member else str(user_id)

    def recall_private_message(self, p: params.RecallPrivateMessage) -> Data:
        return self._recall("friend", p.user_id, p.message_seq)

    def recall_group_message(self, p: params.RecallGroupMessage) -> Data:
        self._known(self._world.groups, p.group_id, "Group")
        return self._recall("group", p.group_id, p.message_seq)

    def _recall(self, scene: str, peer_id: int, message_seq: int) -> Data:
        self._message(self._world.conversations[scene, peer_id], message_seq)
        self._world.recalls(scene, peer_id, message_seq, by=SELF)
        return {}

    def get_message(self, p: params.OneMessage) -> Data:
        return {"message": self._message(self._talk(p), p.message_seq)}

    def get_history_messages(self, p: params.GetHistoryMessages) -> Data:
        """Newest page first, each page oldest first."""
        messages = self._talk(p).messages
        start = p.start_message_seq
        older = [seq for seq in messages if start is None or seq <= start]
        limit = 20 if p.limit is None else p.limit
        page, rest = older[-limit:], older[:-limit]
        return {
            "messages": [messages[seq] for seq in page],
            "next_message_seq": rest[-1] if rest else None,
        }

    def mark_message_as_read(self, p: params.OneMessage) -> Data:
        talk = self._talk(p)
        talk.read_up_to = max(talk.read_up_to, p.message_seq)
        return {}

    def _talk(self, p: _AnyPeer) -> Conversation:
        if p.message_scene == "friend":
            self._known(self._world.friends, p.peer_id, "Friend")
        if p.message_scene == "group":
            self._known(self._world.groups, p.peer_id, "Group")
        return self._world.conversations[p.message_scene, p.peer_id]

    def _message(self, talk: Conversation, message_seq: int) -> Message:
        if message_seq not in talk.messages:
            raise Refusal(-404, "Message not found")
        return talk.messages[message_seq]

    def get_forwarded_messages(self, p: params.GetForwardedMessages) -> Data:
        return {"messages": self._known(self._world.forwards, p.forward_id, "Forward")}

    def send_group_message_reaction(self, p: params.SendGroupMessageReaction) -> Data:
        self._known(self._world.groups, p.group_id, "Group")
        self._message(self._world.conversations["group", p.group_id], p.message_seq)
        reactions = self._world.reactions[p.group_id, p.message_seq]
        is_add = p.is_add is not False
        (reactions.add if is_add else reactions.discard)(p.reaction)
        if self._world.reports_self:
            self._world.happens(
                events.group_message_reaction(
                    p.group_id,
                    SELF,
                    p.message_seq,
                    face_id=p.reaction,
                    reaction_type=p.reaction_type or "face",
                    is_add=is_add,
                )
            )
        return {}

    # Files

    def get_resource_temp_url(self, p: params.GetResourceTempUrl) -> Data:
        return {"url": self._url(p.resource_id)}

    def upload_private_file(self, p: params.UploadPrivateFile) -> Data:
        self._known(self._world.friends, p.user_id, "Friend")
        content = _media(p.file_uri, (b"",))
        message, _ = self._world.friend_uploads(p.user_id, content, file_name=p.file_name, by=SELF)
        return {"file_id": _file_id(message["data"])}

    def upload_group_file(self, p: params.UploadGroupFile) -> Data:
        self._known(self._world.groups, p.group_id, "Group")
        self._need_voice(p.group_id)
        content = _media(p.file_uri, (b"",))
        message, _ = self._world.group_uploads(p.group_id, SELF, content, file_name=p.file_name)
        return {"file_id": _file_id(message["data"])}

    def get_private_file_download_url(self, p: params.GetPrivateFileDownloadUrl) -> Data:
        self._known(self._world.friends, p.user_id, "Friend")
        url = self._url(p.file_id)
        if self._world.resources[p.file_id].file_hash != p.file_hash:
            raise Refusal(-404, "File not found")
        return {"download_url": url}

    def get_group_file_download_url(self, p: params.GroupFile) -> Data:
        self._known(self._world.groups, p.group_id, "Group")
        return {"download_url": self._url(p.file_id)}

    def persist_group_file(self, p: params.GroupFile) -> Data:
        self._known(self._world.groups, p.group_id, "Group")
        self._known(self._world.resources, p.file_id, "File")
        self._world.persisted.add(p.file_id)
        return {}

    def _url(self, resource_id: str) -> str:
        self._known(self._world.resources, resource_id, "Resource")
        return self._world.url_of(resource_id)


def answer(account: Account, api: str, checked: params.Params, world: World) -> Data:
    """Do what an API does and say what came of it, in the words of the end's version."""
    with world.lock:
        data: Data = in_words_of(world.version, getattr(account, api)(checked))
    return data


def _media(uri: str, beginnings: Iterable[bytes]) -> bytes:
    """Return what a URI holds; an end on another machine reads no path of ours, and this one fetches nothing."""
    scheme, _, rest = uri.partition("://")
    if scheme != "base64":
        raise Refusal(-500, f"Cannot read a URI of scheme {scheme!r}")
    try:
        content = base64.b64decode(rest, validate=True)
    except binascii.Error as error:
        raise Refusal(-500, f"Bad base64: {error}") from error
    if not content.startswith(tuple(beginnings)):
        raise Refusal(-500, "Unsupported media format")
    return content


def _file_id(message: Message) -> str:
    return str(message["segments"][0]["data"]["file_id"])
