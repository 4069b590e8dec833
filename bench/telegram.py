"""The platform of bench/platform.py with the wire of Telegram: what chaos and figures need of its Bot API, and no more."""

import itertools
from typing import Any

from bench.loopback import Exchange, serve
from bench.platform import Platform, inbox, take_text

ME = {"id": 1, "is_bot": True, "first_name": "Bench", "username": "bench_bot"}
CHAT_TYPES = {"private": "private", "group": "supergroup"}

_message_ids = itertools.count(1)


def get_updates(body: dict[str, Any]) -> list[dict[str, Any]]:
    offset = body.get("offset")
    if offset is not None:
        inbox.confirm(offset)
    return [
        {"update_id": update["id"], "message": _message(update)}
        for update in inbox.next(wait=body.get("timeout", 0))
    ]


def _message(update: dict[str, Any]) -> dict[str, Any]:
    """Return a message that answers the bot, so that it is meant in groups too."""
    _, chat_type, number, *topic = update["address"].split(":")
    chat = {"id": int(number), "type": CHAT_TYPES[chat_type], "title": "a chat"}
    thread = {"message_thread_id": int(topic[1]), "is_topic_message": True} if topic else {}
    return {
        "message_id": update["id"],
        "from": {"id": 10001, "is_bot": False, "first_name": "Alice"},
        "chat": chat,
        "date": 1790000000,
        "text": update["text"],
        "reply_to_message": {"message_id": 0, "from": ME, "chat": chat},
        **thread,
    }


def send_message(exchange: Exchange, body: dict[str, Any]) -> dict[str, Any] | None:
    number, thread = body["chat_id"], body.get("message_thread_id")
    chat_type = "private" if number > 0 else "group"
    topic = f":topic:{thread}" if thread else ""
    sent = {"address": f"bench:{chat_type}:{number}{topic}", "text": body["text"]}
    return {"message_id": next(_message_ids)} if take_text(exchange, sent) else None


class Telegram(Platform):
    def _dispatch(self) -> None:
        bot, _, method = self.path.lstrip("/").partition("/")
        if not bot.startswith("bot"):
            super()._dispatch()
            return
        self.read()
        try:
            result = self._result(method)
            if result is not None:
                self.answer({"ok": True, "result": result})
        except OSError:  # the client was killed
            self.close_connection = True

    def _result(self, method: str) -> Any:
        match method:
            case "getMe":
                return ME | {"can_read_all_group_messages": True}
            case "getUpdates":
                return get_updates(self.body)
            case "sendMessage":
                return send_message(self, self.body)
            case "getWebhookInfo":
                return {"url": "", "pending_update_count": 0}
            case "getChatMember":
                return {"status": "member"}
        return True


if __name__ == "__main__":
    serve(Telegram)
