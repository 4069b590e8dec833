"""Chats as people see them, and what people do there."""

import itertools
from typing import TYPE_CHECKING, Any

from tests.fakes.telegram import tdlib
from tests.fakes.telegram.answers import ApiError, bad_request, forbidden

if TYPE_CHECKING:
    from tests.fakes.telegram.bot import Bot

User = dict[str, Any]
Message = dict[str, Any]
Update = dict[str, Any]

# Who an anonymous admin or a channel in a group is said to be; the true one is in `sender_chat`.
ANONYMOUS_ADMIN = {
    "id": 1087968824,
    "is_bot": True,
    "first_name": "Group",
    "username": "GroupAnonymousBot",
}
CHANNEL_BOT = {
    "id": 136817688,
    "is_bot": True,
    "first_name": "Channel",
    "username": "Channel_Bot",
}

_ADMIN_RIGHTS = (
    "can_be_edited",
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
    "can_send_welcome_messages",
)
_SENDING = (
    "can_send_messages",
    "can_send_audios",
    "can_send_documents",
    "can_send_photos",
    "can_send_videos",
    "can_send_video_notes",
    "can_send_voice_notes",
    "can_send_polls",
    "can_send_other_messages",
    "can_add_web_page_previews",
    "can_react_to_messages",
    "can_edit_tag",
    "can_change_info",
    "can_invite_users",
    "can_pin_messages",
    "can_manage_topics",
)

MUTED = bad_request("not enough rights to send text messages to the chat")


def user(id_: int, first_name: str, **fields: Any) -> User:
    return {"id": id_, "is_bot": False, "first_name": first_name, **fields}


def membership(who: User, status: str, **fields: Any) -> dict[str, Any]:
    """Return a ChatMember with every field that its status asks for."""
    member: dict[str, Any] = {"user": who, "status": status}
    match status:
        case "creator":
            member["is_anonymous"] = False
        case "administrator":
            member |= dict.fromkeys(_ADMIN_RIGHTS, True) | {"is_anonymous": False}
        case "restricted":
            member |= dict.fromkeys(_SENDING, False) | {"is_member": True, "until_date": 0}
        case "kicked":
            member["until_date"] = 0
    return member | fields


class Chat:
    """One chat of one bot. A method in the third person is an act of a person there and makes an update, which it returns."""

    def __init__(self, bot: "Bot", wire: dict[str, Any], owner: User) -> None:
        self.bot = bot
        self.wire = wire
        self.owner = owner  # speaks where nobody else is named
        self.messages: dict[int, Message] = {}  # all that are not deleted, the bot's among them
        self.answers: list[Message] = []  # what the bot sent, oldest first
        self.actions: list[dict[str, Any]] = []
        self.reactions: dict[int, list[dict[str, Any]]] = {}
        self.topics: dict[int, Message] = {}  # the first message of each
        self.closed_topics: set[int] = set()
        self.members: dict[int, dict[str, Any]] = {}
        self.refusal: ApiError | None = None  # what every message of the bot meets here
        self.moved_to: int | None = None
        # The number 1 of a forum is General; no topic that is opened gets it.
        self._message_ids = itertools.count(2 if wire.get("is_forum") else 1)
        self.join(owner)
        self.join(bot.user)

    @property
    def id(self) -> int:
        return int(self.wire["id"])

    @property
    def type(self) -> str:
        return str(self.wire["type"])

    @property
    def texts(self) -> list[str]:
        """What the bot wrote here, captions too."""
        return [str(sent.get("text", sent.get("caption", ""))) for sent in self.answers]

    def join(self, who: User, status: str = "member", **fields: Any) -> None:
        """Make somebody a member of that status, without a word about it."""
        self.members[who["id"]] = membership(who, status, **fields)

    def keep(self, content: dict[str, Any]) -> Message:
        """Give a message its id and its place in the chat. None takes a field away."""
        fields = {"message_id": next(self._message_ids), "date": self.bot.now(), "chat": self.wire}
        message: Message = {
            name: value for name, value in (fields | content).items() if value is not None
        }
        self.messages[int(message["message_id"])] = message
        return message

    def placed(self, thread: int | None, reply_to: int | None) -> dict[str, Any]:
        """Return the fields that say where in the chat a message stands."""
        fields: dict[str, Any] = {}
        if reply_to is not None:
            fields["reply_to_message"] = _shallow(self.messages[reply_to])
        if thread is not None:
            fields |= {"message_thread_id": thread, "is_topic_message": True}
            fields.setdefault("reply_to_message", _shallow(self.topics[thread]))
        elif reply_to is not None and self.type == "supergroup" and not self.wire.get("is_forum"):
            # A thread of replies, which is no topic though it has an id.
            fields["message_thread_id"] = self.messages[reply_to].get("message_thread_id", reply_to)
        return fields

    def says(
        self,
        text: str = "",
        *,
        by: User | None = None,
        thread: int | None = None,
        reply_to: int | None = None,
        **fields: Any,
    ) -> Update:
        """Write a message, or in a channel a post. The server finds mentions, commands and links in it by itself."""
        return self.bot.push(self._kind, self._said(text, by, thread, reply_to, fields))

    def sends_album(self, *items: dict[str, Any], by: User | None = None) -> list[Update]:
        """Send several media at once: an update for each, all there at the same time."""
        group = {"media_group_id": str(self.bot.next_number())}
        with self.bot.changed:
            return [
                self.bot.push(self._kind, self._said("", by, None, None, group | item))
                for item in items
            ]

    def edits(self, message_id: int, text: str, **fields: Any) -> Update:
        """Change the text of a message."""
        message = self.messages[message_id]
        message |= _text(text, "text", "entities") | {"edit_date": self.bot.now()} | fields
        return self.bot.push("edited_" + self._kind, message)

    def deletes(self, message_id: int) -> None:
        """Take a message away. No update tells a bot of it."""
        del self.messages[message_id]

    def presses(self, message_id: int, data: str, *, by: User | None = None) -> Update:
        """Press a button under a message of the bot."""
        query: dict[str, Any] = {
            "id": str(self.bot.next_number()),
            "from": by or self.owner,
            "message": self.messages[message_id],
            "chat_instance": str(-self.bot.next_number()),
            "data": data,
        }
        self.bot.queries[query["id"]] = None
        return self.bot.push("callback_query", query)

    def opens_topic(self, name: str, *, by: User | None = None) -> int:
        """Open a topic and return its thread id."""
        created = {"name": name, "icon_color": 7322096}
        message = self.keep({"from": by or self.owner, "forum_topic_created": created})
        thread = int(message["message_id"])
        message |= {"message_thread_id": thread, "is_topic_message": True}
        self.topics[thread] = message
        self.bot.push("message", message)
        return thread

    def closes_topic(self, thread: int) -> Update:
        self.closed_topics.add(thread)
        return self.says(thread=thread, forum_topic_closed={})

    def deletes_topic(self, thread: int) -> None:
        """Take a topic and all its messages away. No update tells a bot of it."""
        del self.topics[thread]
        gone = [
            id_ for id_, kept in self.messages.items() if kept.get("message_thread_id") == thread
        ]
        for message_id in gone:
            del self.messages[message_id]

    def sets_bot(self, status: str, *, by: User | None = None, **fields: Any) -> Update:
        """Change what the bot is here: in a private chat "kicked" blocks it and "member" lets it write again."""
        old = self.members[self.bot.id]
        self.join(self.bot.user, status, **fields)
        new = self.members[self.bot.id]
        self.refusal = self._refusal(new)
        change = {"chat": self.wire, "from": by or self.owner, "date": self.bot.now()}
        return self.bot.push(
            "my_chat_member", change | {"old_chat_member": old, "new_chat_member": new}
        )

    def upgrades(self, to: int, *, signs: tuple[str, ...] = ("to", "from")) -> "Chat":
        """Become the supergroup `to` and return it. `signs` are the service messages that reach the bot, in their order."""
        self.moved_to = to
        new = self.bot.supergroup(to, title=self.wire["title"], owner=self.owner)
        new.members = dict(self.members)
        for sign in signs:
            if sign == "to":
                self.says(migrate_to_chat_id=to)
            else:
                new.says(by=ANONYMOUS_ADMIN, sender_chat=new.wire, migrate_from_chat_id=self.id)
        return new

    @property
    def _kind(self) -> str:
        return "channel_post" if self.type == "channel" else "message"

    def _said(
        self,
        text: str,
        by: User | None,
        thread: int | None,
        reply_to: int | None,
        fields: dict[str, Any],
    ) -> Message:
        author = by or self.owner
        if self.type == "channel":
            sender: dict[str, Any] = {"sender_chat": self.wire}
        else:
            sender = {"from": author}
            self.members.setdefault(author["id"], membership(author, "member"))
        content = _text(text, "text", "entities")
        caption = _text(fields.get("caption") or "", "caption", "caption_entities")
        place = self.placed(thread, reply_to)
        return self.keep(sender | place | content | caption | fields)

    def _refusal(self, member: dict[str, Any]) -> ApiError | None:
        kind = f"the {self.type} chat"
        match member["status"]:
            case "kicked" if self.type == "private":
                return forbidden("bot was blocked by the user")
            case "kicked":
                return forbidden(f"bot was kicked from {kind}")
            case "left":
                return forbidden(f"bot is not a member of {kind}")
            case "restricted" if not member["can_send_messages"]:
                return MUTED
        return None


def _text(text: str, name: str, entities_name: str) -> dict[str, Any]:
    if not text:
        return {}
    found = tdlib.find_entities(text)
    return {name: text} | ({entities_name: found} if found else {})


def _shallow(message: Message) -> Message:
    """A message as it stands in another one: without the one that it answers itself."""
    return {name: value for name, value in message.items() if name != "reply_to_message"}
