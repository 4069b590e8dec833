"""What the calls of a bot do. All run with `bot.changed` held."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiogram.enums import ChatAction
from telegram.constants import ReactionEmoji

from tests.fakes.telegram.answers import ApiError, bad_request, forbidden
from tests.fakes.telegram.bodies import Params, Upload
from tests.fakes.telegram.bot import Bot, File
from tests.fakes.telegram.chats import Chat, Message
from tests.fakes.telegram.polling import get_updates
from tests.fakes.telegram.text import caption_of, text_of
from tests.fakes.telegram.webhooks import delete_webhook, get_webhook_info, set_webhook

MB = 1024 * 1024
MOST_DOWN = 20 * MB
MOST_UP = 50 * MB
MOST_IN_PHOTO = 10 * MB

ACTIONS = frozenset(action.value for action in ChatAction)
REACTIONS = frozenset(emoji.value for emoji in ReactionEmoji)


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a known method, its parameters checked."""

    bot: Bot
    params: Params
    uploads: dict[str, Upload]
    loopback_webhooks: bool


def get_me(request: Request) -> dict[str, Any]:
    return request.bot.user | request.bot.me


def send_message(request: Request) -> Message:
    chat = _chat(request)
    return _sent(request, chat, text_of(request.params))


def send_photo(request: Request) -> Message:
    chat = _chat(request)
    file = _file(request, "photo", most=MOST_IN_PHOTO)
    sizes = [file.wire() | {"width": 1280, "height": 960}]
    return _sent(request, chat, {"photo": sizes} | caption_of(request.params))


def send_document(request: Request) -> Message:
    chat = _chat(request)
    document = _file(request, "document").wire() | _named(request, "document")
    return _sent(request, chat, {"document": document} | caption_of(request.params))


def send_voice(request: Request) -> Message:
    chat = _chat(request)
    voice = _file(request, "voice").wire() | {"duration": request.params.get("duration", 1)}
    return _sent(request, chat, {"voice": voice} | caption_of(request.params))


def send_chat_action(request: Request) -> bool:
    """A channel shows none, so none is kept there."""
    chat = _chat(request)
    action, thread = request.params["action"], request.params.get("message_thread_id")
    if action not in ACTIONS:
        raise bad_request("wrong parameter action in request")
    _require_thread(chat, thread)
    if chat.type != "channel":
        chat.actions.append({"action": action, "message_thread_id": thread})
    return True


def set_my_commands(request: Request) -> bool:
    commands = request.params["commands"]
    if len(commands) > 100:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    for command in commands:
        if re.fullmatch("[a-z0-9_]{1,32}", command["command"]) is None:
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(command["description"]) <= 256:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    request.bot.commands[_scope(request)] = commands
    return True


def get_my_commands(request: Request) -> list[dict[str, str]]:
    return request.bot.commands.get(_scope(request), [])


def get_chat_member(request: Request) -> dict[str, Any]:
    chat = _chat(request, writes=False)
    member = chat.members.get(request.params["user_id"])
    if member is None:
        raise bad_request("member not found")
    return member


def get_file(request: Request) -> dict[str, Any]:
    file = request.bot.files.get(request.params["file_id"])
    if file is None:
        raise bad_request("wrong file_id or the file is temporarily unavailable")
    wire = file.wire()
    if wire["file_size"] > MOST_DOWN:
        raise bad_request("file is too big")
    return wire | {"file_path": file.path}


def answer_callback_query(request: Request) -> bool:
    query = request.params["callback_query_id"]
    if request.bot.queries.get(query, {}) is not None:  # unknown, or answered before
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    if len(request.params.get("text", "")) > 200:
        raise bad_request("MESSAGE_TOO_LONG")
    request.bot.queries[query] = request.params
    return True


def set_message_reaction(request: Request) -> bool:
    chat = _chat(request)
    message_id = request.params["message_id"]
    reactions = request.params.get("reaction", [])
    if message_id not in chat.messages:
        raise bad_request("message to react not found")
    if len(reactions) > 1:
        raise bad_request("REACTIONS_TOO_MANY")
    if any(reaction.get("emoji") not in REACTIONS for reaction in reactions):
        raise bad_request("REACTION_INVALID")
    chat.reactions[message_id] = reactions
    return True


METHODS: dict[str, Callable[[Request], Any]] = {
    "getme": get_me,
    "getupdates": lambda request: get_updates(request.bot, request.params),
    "setwebhook": lambda request: set_webhook(
        request.bot, request.params, loopback=request.loopback_webhooks
    ),
    "deletewebhook": lambda request: delete_webhook(request.bot, request.params),
    "getwebhookinfo": lambda request: get_webhook_info(request.bot, request.params),
    "sendmessage": send_message,
    "sendphoto": send_photo,
    "senddocument": send_document,
    "sendvoice": send_voice,
    "sendchataction": send_chat_action,
    "setmycommands": set_my_commands,
    "getmycommands": get_my_commands,
    "getchatmember": get_chat_member,
    "getfile": get_file,
    "answercallbackquery": answer_callback_query,
    "setmessagereaction": set_message_reaction,
}


def chat_id_of(params: Params) -> int | None:
    """Return the chat that a call names by its number."""
    try:
        return int(params["chat_id"])
    except (KeyError, TypeError, ValueError):
        return None


def _chat(request: Request, *, writes: bool = True) -> Chat:
    chat_id = chat_id_of(request.params)
    chat = request.bot.chats.get(chat_id or 0)
    if chat is None:
        raise _no_chat(request.bot, chat_id)
    if chat.moved_to is not None:
        raise bad_request(
            "group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.moved_to
        )
    if writes and chat.refusal is not None:
        raise chat.refusal
    return chat


def _no_chat(bot: Bot, chat_id: int | None) -> ApiError:
    if any(chat_id in chat.members for chat in bot.chats.values()):
        return forbidden("bot can't initiate conversation with a user")
    return bad_request("chat not found")


def _sent(request: Request, chat: Chat, content: dict[str, Any]) -> Message:
    thread = _require_thread(chat, request.params.get("message_thread_id"))
    reply_to = _reply_to(request, chat, thread)
    author = {"sender_chat": chat.wire} if chat.type == "channel" else {"from": request.bot.user}
    message = chat.keep(author | chat.placed(thread, reply_to) | content)
    chat.answers.append(message)
    return message


def _require_thread(chat: Chat, thread: int | None) -> int | None:
    """Return the topic that a message goes to. A supergroup without topics knows nothing of threads."""
    if thread is None or (chat.type == "supergroup" and not chat.wire.get("is_forum")):
        return None
    if thread not in chat.topics:
        raise bad_request("message thread not found")
    if thread in chat.closed_topics:
        raise bad_request("TOPIC_CLOSED")
    return thread


def _reply_to(request: Request, chat: Chat, thread: int | None) -> int | None:
    asked = request.params.get("reply_parameters")
    if asked is None:
        return None
    if asked.get("chat_id", chat.id) != chat.id:
        raise bad_request("the fake server knows no replies into another chat")
    replied = chat.messages.get(asked["message_id"])
    here = replied is not None and (not thread or replied.get("message_thread_id") == thread)
    if replied is None or not here:
        if asked.get("allow_sending_without_reply"):
            return None
        raise bad_request("message to be replied not found")
    quote = str(asked.get("quote", ""))
    if quote not in str(replied.get("text", replied.get("caption", ""))):
        raise bad_request("QUOTE_TEXT_INVALID")
    return int(asked["message_id"])


def _file(request: Request, name: str, *, most: int = MOST_UP) -> File:
    """Return the file that a parameter or an upload gives."""
    given = str(request.params[name])
    if not given.startswith("attach://"):
        return _known_file(request.bot, given)
    upload = request.uploads.get(given.removeprefix("attach://"))
    if upload is None:
        raise bad_request(f"can't find the file {given}")
    if not upload.content:
        raise bad_request("file must be non-empty")
    if len(upload.content) > MOST_UP:
        raise ApiError(413, "Request Entity Too Large")
    if len(upload.content) > most:
        raise bad_request(
            f"file of size {len(upload.content)} bytes is too big for a {name}; the maximum size is {most} bytes"
        )
    return request.bot.add_file(upload.content, path=f"{name}s/{upload.name}")


def _known_file(bot: Bot, given: str) -> File:
    if given not in bot.files:
        raise bad_request("wrong remote file identifier specified")
    return bot.files[given]


def _named(request: Request, name: str) -> dict[str, str]:
    upload = request.uploads.get(str(request.params[name]).removeprefix("attach://"))
    return {"file_name": upload.name, "mime_type": upload.kind} if upload else {}


def _scope(request: Request) -> str:
    """The key of a list of commands. One without a scope is that of every chat."""
    scope = request.params.get("scope", {"type": "default"})
    return json.dumps([scope, request.params.get("language_code", "")], sort_keys=True)
