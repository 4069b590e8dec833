"""QQ as the account behind a fake protocol end sees it: who is there, what was said, what people do."""

import hashlib
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.milky import entities, events, segments
from tests.fakes.milky.entities import Entity
from tests.fakes.milky.events import SELF, Event
from tests.fakes.milky.segments import Content, Segment
from tests.fakes.milky.versions import Version

Message = dict[str, Any]

SHOWN = {
    "face": "[表情]",
    "image": "[图片]",
    "record": "[语音]",
    "video": "[视频]",
    "file": "[文件]",
    "forward": "[聊天记录]",
    "light_app": "[卡片]",
}


@dataclass(slots=True)
class Resource:
    """A file that QQ keeps. An end that cannot resolve it gives "" for its URL."""

    content: bytes
    name: str = ""
    resolves: bool = True
    is_chunked: bool = False  # its length is not told before

    @property
    def file_hash(self) -> str:
        return hashlib.sha1(self.content).hexdigest()


@dataclass(slots=True)
class Conversation:
    """Messages by number, oldest first. What was recalled is gone, and its number is a gap."""

    messages: dict[int, Message] = field(default_factory=dict)
    last_seq: int = 0
    read_up_to: int = 0


class World:
    """What people do is reported to `report`; friends, groups and members appear when first named.

    `opens_temp`: a private message to a stranger opens a temp session, as some ends do; others answer that there is no such friend.
    """

    def __init__(
        self, report: Callable[[Event], object], *, version: Version, base_url: str
    ) -> None:
        self.version = version
        self.now: Callable[[], int] = lambda: int(time.time())
        self.is_logged_in = True
        self.reports_self = True
        self.opens_temp = False
        self.friends: dict[int, Entity] = {}
        self.groups: dict[int, Entity] = {}
        self.members: dict[tuple[int, int], Entity] = {}
        self.silenced: set[int] = set()  # groups where only owner and admins may speak
        self.conversations: defaultdict[tuple[str, int], Conversation] = defaultdict(Conversation)
        self.reactions: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
        self.resources: dict[str, Resource] = {}
        self.forwards: dict[str, list[dict[str, Any]]] = {}
        self.persisted: set[str] = set()
        self.lock = threading.RLock()
        self._report = report
        self._base_url = base_url
        self._ids = itertools.count(1)
        self._url_generation = 1

    # Who is there

    def befriend(self, user_id: int, **fields: Any) -> Entity:
        """Add a friend, or let one change."""
        return self._describe(self.friends, user_id, entities.friend(user_id), fields)

    def found(self, group_id: int, **fields: Any) -> Entity:
        """Add a group with the account in it, or let one change."""
        self.members.setdefault((group_id, SELF), entities.member(group_id, SELF, nickname="Bot"))
        return self._describe(self.groups, group_id, entities.group(group_id), fields)

    def join(self, group_id: int, user_id: int, **fields: Any) -> Entity:
        """Add a member to a group, or let one change: a card, a role. SELF is the account."""
        self.found(group_id)
        new = entities.member(group_id, user_id)
        return self._describe(self.members, (group_id, user_id), new, fields)

    def _describe(
        self, table: dict[Any, Entity], key: object, new: Entity, fields: dict[str, Any]
    ) -> Entity:
        if unknown := fields.keys() - new.keys():
            raise TypeError(f"no such fields: {unknown}")
        entity = table.setdefault(key, new)
        entity.update(fields)
        return entity

    # What people say

    def friend_says(self, user_id: int, *content: Content) -> Event:
        return self.says("friend", user_id, user_id, *content)

    def group_says(self, group_id: int, user_id: int, *content: Content) -> Event:
        return self.says("group", group_id, user_id, *content)

    def temp_says(self, user_id: int, *content: Content, through: int | None = None) -> Event:
        """Let a stranger write, through a group that is told or not."""
        return self.says("temp", user_id, user_id, *content, through=through)

    def says(
        self,
        scene: str,
        peer_id: int,
        sender_id: int,
        *content: Content,
        through: int | None = None,
    ) -> Event:
        """Keep a message and report it; our own only if the end reports these."""
        with self.lock:
            talk = self.conversations[scene, peer_id]
            talk.last_seq += 1
            event = self._message_event(scene, peer_id, sender_id, content, through)
            event["data"] |= {"message_seq": talk.last_seq, "time": self.now()}
            talk.messages[talk.last_seq] = event["data"]
            if sender_id != SELF or self.reports_self:
                self.happens(event)
        return event

    def _message_event(
        self,
        scene: str,
        peer_id: int,
        sender_id: int,
        content: Iterable[Content],
        through: int | None,
    ) -> Event:
        match scene:
            case "friend":
                friend = self.befriend(peer_id)
                return events.friend_message(
                    peer_id, *content, sender_id=sender_id, entity=dict(friend)
                )
            case "group":
                group, member = self.found(peer_id), self.join(peer_id, sender_id)
                return events.group_message(
                    peer_id, sender_id, *content, entity=dict(group), sender=dict(member)
                )
        known = None if through is None else dict(self.found(through))
        return events.temp_message(peer_id, *content, sender_id=sender_id, through=known)

    def happens(self, event: Event) -> Event:
        """Report something, now."""
        event["time"] = self.now()
        self._report(event)
        return event

    # What people do

    def friend_uploads(
        self, user_id: int, content: bytes, *, file_name: str = "notes.txt", by: int | None = None
    ) -> list[Event]:
        """Let a file be shared; it is reported twice, as a message and for itself."""
        file_id, resource = self.host(content, name=file_name)
        shape: dict[str, Any] = {
            "file_id": file_id,
            "file_name": file_name,
            "file_size": len(content),
            "file_hash": resource.file_hash,
        }
        sender_id = user_id if by is None else by
        message = self.says("friend", user_id, sender_id, segments.file(**shape))
        upload = events.friend_file_upload(user_id, **shape, is_self=sender_id == SELF)
        return [message, self._share(upload, sender_id)]

    def group_uploads(
        self, group_id: int, user_id: int, content: bytes, *, file_name: str = "notes.txt"
    ) -> list[Event]:
        file_id, _ = self.host(content, name=file_name)
        shape: dict[str, Any] = {
            "file_id": file_id,
            "file_name": file_name,
            "file_size": len(content),
        }
        message = self.says("group", group_id, user_id, segments.file(**shape))
        upload = events.group_file_upload(group_id, user_id, **shape)
        return [message, self._share(upload, user_id)]

    def _share(self, upload: Event, sender_id: int) -> Event:
        reported = sender_id != SELF or self.reports_self
        return self.happens(upload) if reported else upload

    def recalls(self, scene: str, peer_id: int, message_seq: int, *, by: int) -> Event:
        message = self.conversations[scene, peer_id].messages.pop(message_seq)
        return self.happens(
            events.message_recall(
                scene, peer_id, message_seq, sender_id=message["sender_id"], operator_id=by
            )
        )

    # What is done to the account

    def mute(self, group_id: int, *, duration: int = 600, by: int = 20001) -> Event:
        """Forbid the account to speak for `duration` seconds; 0 lets it speak again."""
        until = self.now() + duration if duration else None
        self.join(group_id, SELF, shut_up_end_time=until)
        return self.happens(events.group_mute(group_id, SELF, operator_id=by, duration=duration))

    def silence(self, group_id: int, *, is_mute: bool = True, by: int = 20001) -> Event:
        """Let only owner and admins speak, or everybody again."""
        self.found(group_id)
        (self.silenced.add if is_mute else self.silenced.discard)(group_id)
        return self.happens(events.group_whole_mute(group_id, operator_id=by, is_mute=is_mute))

    def kick(self, group_id: int, *, by: int = 20001) -> Event:
        self._lose(group_id)
        return self.happens(events.group_member_decrease(group_id, SELF, operator_id=by))

    def disband(self, group_id: int, *, by: int = 20001) -> Event:
        self._lose(group_id)
        return self.happens(events.group_disband(group_id, by))

    def invite(self, group_id: int, *, by: int = 20001) -> Event:
        """Take the account into a group."""
        self.found(group_id)
        return self.happens(events.group_member_increase(group_id, SELF, invitor_id=by))

    def _lose(self, group_id: int) -> None:
        del self.groups[group_id]
        del self.members[group_id, SELF]

    def go_offline(self, reason: str = "您的账号在另一处登录") -> Event:
        event = self.happens(events.bot_offline(reason))
        self.is_logged_in = False
        return event

    def log_in(self) -> None:
        """Let the account be back; no event says so."""
        self.is_logged_in = True

    # What QQ keeps

    def host(self, content: bytes, **fields: Any) -> tuple[str, Resource]:
        """Keep a file; returns its id, of a resource and of a file alike."""
        resource = Resource(content, **fields)
        id_ = f"r-{next(self._ids)}"
        self.resources[id_] = resource
        return id_, resource

    def url_of(self, resource_id: str) -> str:
        if not self.resources[resource_id].resolves:
            return ""
        return f"{self._base_url}/download/{self._url_generation}/{resource_id}"

    def expire_urls(self) -> None:
        """Let every URL given so far be worth nothing."""
        self._url_generation += 1

    def download(self, generation: str, resource_id: str) -> Resource | None:
        if generation != str(self._url_generation):
            return None
        return self.resources.get(resource_id)

    def image(self, content: bytes, **fields: Any) -> Segment:
        resource_id, _ = self.host(content)
        return segments.image(resource_id, temp_url=self.url_of(resource_id), **fields)

    def record(self, content: bytes, **fields: Any) -> Segment:
        resource_id, _ = self.host(content)
        return segments.record(resource_id, temp_url=self.url_of(resource_id), **fields)

    def video(self, content: bytes, **fields: Any) -> Segment:
        resource_id, _ = self.host(content)
        return segments.video(resource_id, temp_url=self.url_of(resource_id), **fields)

    def forward(self, *messages: dict[str, Any], **fields: Any) -> Segment:
        forward_id = f"fwd-{next(self._ids)}"
        self.forwards[forward_id] = list(messages)
        return segments.forward(forward_id, **fields)

    # What a person sees

    def seen(self, scene: str, peer_id: int) -> list[str]:
        """Return what the account wrote there and did not recall, as it is shown, oldest first."""
        return [shown(message) for message in self.sent(scene, peer_id)]

    def sent(self, scene: str, peer_id: int) -> list[Message]:
        """Return the account's own messages there, oldest first."""
        messages = self.conversations[scene, peer_id].messages.values()
        return [message for message in messages if message["sender_id"] == SELF]

    def everywhere(self) -> dict[tuple[str, int], list[str]]:
        """Return what the account wrote, by conversation; none that it did not write to."""
        seen = {place: self.seen(*place) for place in list(self.conversations)}
        return {place: texts for place, texts in seen.items() if texts}


def shown(message: Message) -> str:
    return "".join(_shown(part["type"], part["data"]) for part in message["segments"])


def _shown(type_: str, data: dict[str, Any]) -> str:
    match type_:
        case "text":
            return str(data["text"])
        case "mention":
            return f"@{data['name']}"
        case "mention_all":
            return "@全体成员"
        case "reply":
            return ""
    return SHOWN.get(type_, "[不支持的消息]")
