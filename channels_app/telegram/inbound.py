"""An update of the Bot API as what happened in a chat. Pure, and never raises. Source: protocols/telegram.md, sections 2 to 4."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from channels_app.addresses import ChatAddress, account
from channels_app.messages import (
    ChatMoved,
    InboundMessage,
    Part,
    ReachChanged,
    Sender,
    Skipped,
    WireEvent,
)
from channels_app.splitting import units
from channels_app.telegram import content, marks
from channels_app.telegram.wire import Node

TYPES: Mapping[str, str] = {
    "private": "private",
    "group": "group",
    "supergroup": "group",
    "channel": "channel",
}
STATUSES = ("creator", "administrator", "member", "restricted", "left", "kicked")
MESSAGES = ("message", "channel_post")
EDITS = ("edited_message", "edited_channel_post")
# What tells nothing of what a message holds.
AROUND = frozenset(
    {
        "message_id",
        "date",
        "edit_date",
        "chat",
        "from",
        "sender_chat",
        "message_thread_id",
        "is_topic_message",
        "reply_to_message",
    }
)
# General, the first topic of a forum, bears this number inside of Telegram; what is sent to it is refused.
GENERAL = 1
# The user that stands for an anonymous admin, a channel that posts in a group, and posts of a group's own channel.
BORROWED = frozenset({1087968824, 136817688, 777000})
# A client that cuts a text of more than 4096 units may cut at the last blank line, be it as early as in the middle (Telegram
# Desktop does), and trims the piece.
LONG = 2000  # UTF-16 units
QUOTE_LENGTH = 1000  # characters

_COMMAND = re.compile(r"(?P<command>/\w+)@(?P<bot>\w+)")


@dataclass(frozen=True, slots=True)
class Me:
    """Who the bot is. Without `username` it knows a mention by its number only."""

    id: int
    username: str


def parse(update: Mapping[str, Any], *, channel: str, me: Me) -> WireEvent:
    node = Node(update)
    for kind in (*MESSAGES, *EDITS):
        if message := node.node(kind):
            event_key = _event_key(message, node, is_edit=kind in EDITS)
            found = _message(message, event_key=event_key, channel=channel, me=me)
            return _edit(found, message) if kind in EDITS else found
    if member := node.node("my_chat_member"):
        return _membership(member, channel=channel)
    kinds = ", ".join(sorted(key for key in node if key != "update_id"))
    return Skipped(f"an update of the kind {kinds or 'nothing'}")


def _message(message: Node, *, event_key: str, channel: str, me: Me) -> WireEvent:
    address = _address(message, channel=channel)
    if address is None:
        return Skipped("a message in a chat that we do not know how to name")
    if reason := _foreign(message):
        return Skipped(reason)
    if moved := _moved(message, address):
        return moved
    sender = _sender(message, channel=channel, me=me)
    if message.node("from").flag("is_bot") and not sender.is_self and sender.account:
        return Skipped("a message of another bot")
    found = content.read(message)
    if not found.text and not found.attachments:
        return Skipped(found.skipped or _unreadable(message))
    addressed = address.target_type == "private" or _is_addressed(message, found, me=me)
    return InboundMessage(
        address=address,
        event_key=event_key,
        text=_without_own_name(found.text, me=me),
        sender=sender,
        sent_at=_instant(message.number("date")),
        message_id=str(message.number("message_id") or ""),
        chat_title=_title(message.node("chat")),
        addressed=addressed,
        reply_to=_reply_to(message),
        quote=_quote(message),
        forwarded_from=_origin(message),
        attachments=found.attachments,
        part=_part(message),
    )


def _unreadable(message: Node) -> str:
    holds = ", ".join(sorted(key for key in message if key not in AROUND))
    return f"a message without anything to read ({holds[:200] or 'empty'})"


def _edit(event: WireEvent, message: Node) -> WireEvent:
    """Make an edit of a message as it reads now. A new message may have been edited too, before anybody heard of it."""
    if not isinstance(event, InboundMessage):
        return event
    if not event.message_id:
        return Skipped("an edit that does not say of what")
    if message.node("location").has("live_period"):
        return Skipped("the next place of somebody who moves")
    edited_at = _instant(message.number("edit_date")) or event.sent_at
    return replace(event, edits=event.message_id, message_id="", sent_at=edited_at)


def _address(message: Node, *, channel: str) -> ChatAddress | None:
    chat = message.node("chat")
    target_type, target_id = TYPES.get(chat.text("type")), chat.number("id")
    if target_type is None or not target_id:
        return None
    thread = message.number("message_thread_id") if message.flag("is_topic_message") else None
    if thread == GENERAL and target_type == "group":
        thread = None
    return ChatAddress(channel, target_type, str(target_id), str(thread) if thread else "")


def _foreign(message: Node) -> str:
    """Return why a message belongs to a conversation that only shares its chat's number, "" if it does not."""
    if message.node("chat").flag("is_direct_messages"):
        return "direct messages of a channel: many people's private talks under one number"
    for key in ("business_connection_id", "guest_query_id", "ephemeral_message_id"):
        if message.has(key):
            return f"a conversation of its own kind ({key})"
    return ""


def _moved(message: Node, address: ChatAddress) -> ChatMoved | None:
    to, since = message.number("migrate_to_chat_id"), message.number("migrate_from_chat_id")
    other = to or since or 0
    if address.target_type != "group" or other >= 0:
        return None
    here = address.with_thread("")
    there = ChatAddress(address.channel, "group", str(other))
    return ChatMoved(here, there) if to else ChatMoved(there, here)


def _sender(message: Node, *, channel: str, me: Me) -> Sender:
    """Return who wrote. Whoever hides behind a chat has its name, but nobody's account."""
    user = message.node("from")
    user_id = user.number("id")
    if behind := message.node("sender_chat"):
        return Sender(name=_title(behind))
    if not user_id or user_id in BORROWED:
        return Sender(name=message.text("author_signature") or _name(user))
    return Sender(account(channel, str(user_id)), _name(user), is_self=user_id == me.id)


def _name(user: Node) -> str:
    full = f"{user.text('first_name')} {user.text('last_name')}".strip()
    return full or user.text("username")


def _title(chat: Node) -> str:
    return chat.text("title") or _name(chat)


def _event_key(message: Node, update: Node, *, is_edit: bool) -> str:
    chat_id, message_id = message.node("chat").number("id"), message.number("message_id")
    edited = message.number("edit_date")
    if message_id and is_edit and edited:
        return f"edit:{chat_id}:{message_id}:{edited}"
    if message_id and not is_edit:
        return f"msg:{chat_id}:{message_id}"
    return f"upd:{update.number('update_id')}"


def _is_addressed(message: Node, found: content.Content, *, me: Me) -> bool:
    """In a group: does it name the bot, command it, or answer its words? Somebody else's words, passed on, do none of these."""
    if _origin(message) or _is_for_another_bot(found, me=me):
        return False
    replied = message.node("reply_to_message")
    if replied.node("from").number("id") == me.id and not _is_topic_root(message, replied):
        return True
    return any(_names(entity, me=me) for entity in found.entities)


def _names(entity: marks.Entity, *, me: Me) -> bool:
    match entity.type:
        case "mention":
            return _is_own(entity.covered.removeprefix("@"), me=me)
        case "text_mention":
            return entity.user_id == me.id
        case "bot_command":
            _, at, bot = entity.covered.partition("@")
            return _is_own(bot, me=me) if at else entity.offset == 0
    return False


def _is_for_another_bot(found: content.Content, *, me: Me) -> bool:
    entities = (each for each in found.entities if each.offset == 0 and each.type == "bot_command")
    bots = (command.covered.partition("@")[2] for command in entities)
    return any(bot and not _is_own(bot, me=me) for bot in bots)


def _is_own(name: str, *, me: Me) -> bool:
    return bool(me.username) and name.lower() == me.username.lower()


def _without_own_name(text: str, *, me: Me) -> str:
    """Return a command as it would be given in private: `/ask@nahida_bot why` is `/ask why`."""
    command = _COMMAND.match(text)
    if command is None or not _is_own(command["bot"], me=me):
        return text
    return command["command"] + text[command.end() :]


def _is_topic_root(message: Node, replied: Node) -> bool:
    """In a topic every message says that it answers the one that opened it."""
    is_root = replied.number("message_id") == message.number("message_thread_id")
    return is_root and message.flag("is_topic_message") and replied.has("forum_topic_created")


def _reply_to(message: Node) -> str:
    replied = message.node("reply_to_message")
    if not replied or _is_topic_root(message, replied):
        return ""
    return str(replied.number("message_id") or "")


def _quote(message: Node) -> str:
    replied = message.node("reply_to_message")
    if quoted := message.node("quote").text("text"):
        return quoted[:QUOTE_LENGTH]
    if replied and not _is_topic_root(message, replied):
        return content.read(replied).shown[:QUOTE_LENGTH]
    if external := message.node("external_reply"):
        return content.read(external).shown[:QUOTE_LENGTH]
    return "[story]" if message.has("reply_to_story") else ""


def _origin(message: Node) -> str:
    """Return whose words a forwarded message holds, "" if it is the sender's own."""
    origin = message.node("forward_origin")
    if not origin and not message.flag("is_automatic_forward"):
        return ""
    names = (
        _name(origin.node("sender_user")),
        origin.text("sender_user_name"),
        _title(origin.node("sender_chat")),
        _title(origin.node("chat")),
        _title(message.node("sender_chat")),
    )
    return next((name for name in names if name), "somebody")


def _part(message: Node) -> Part:
    is_piece = message.has("media_group_id") or units(message.text("text")) >= LONG
    return Part.PIECE if is_piece else Part.WHOLE


def _instant(seconds: int | None) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (OverflowError, OSError, ValueError):
        return None


def _membership(change: Node, *, channel: str) -> WireEvent:
    """What became of the bot in a chat: can it still write there?"""
    address = _address(change, channel=channel)
    if address is None:
        return Skipped("a membership in a chat that we do not know how to name")
    if reason := _foreign(change):
        return Skipped(reason)
    member = change.node("new_chat_member")
    status = member.text("status")
    if status not in STATUSES:
        return Skipped(f"a membership of the kind {status[:60]!r}")
    is_out = status == "restricted" and member.denies("is_member")
    if status in ("kicked", "left") or is_out:
        is_private = address.target_type == "private"
        reason = "the person blocked the bot" if is_private else "the bot was removed from the chat"
        return ReachChanged(address, reason)
    if status == "restricted" and not member.flag("can_send_messages"):
        until = _instant(member.number("until_date"))
        return ReachChanged(address, "the bot may not write here", is_muted=True, until=until)
    may_post = status == "creator" or member.flag("can_post_messages")
    if address.target_type == "channel" and not may_post:
        return ReachChanged(address, "the bot may not post in this channel", is_muted=True)
    return ReachChanged(address)
