"""A nonebot with its Milky adapter, in a process of its own because it is one for the whole process.

Reads {"api": {"host": ..., "port": ..., "access_token": ...}} from its first line, prints the port of its webhook, then
a JSON line for each event it was told of. Ends when its input does.
"""

import json
import socket
import sys
import threading
from typing import Any

import nonebot
import uvicorn
from nonebot.adapters.milky import Adapter, Bot
from nonebot.adapters.milky.event import Event, MessageEvent
from nonebot.log import logger
from nonebot.message import event_preprocessor


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


async def report(bot: Bot, event: Event) -> None:
    facts: dict[str, Any] = {"event_type": event.event_type, "self_id": bot.self_id}
    if isinstance(event, MessageEvent):
        facts |= {
            "name": event.get_event_name(),
            "text": event.get_plaintext(),
            "types": [segment.type for segment in event.original_message],
            "to_me": event.to_me,
            "quoted": None if event.reply is None else event.reply.sender_id,
        }
        if event.get_plaintext() == "answer me":
            sent = await bot.send(event, "my answer")
            facts["answered"] = sent.message_seq
    say(**facts)


def main() -> None:
    api = json.loads(sys.stdin.readline())
    logger.remove()  # it writes to standard output
    logger.add(sys.stderr, level="WARNING")
    nonebot.init(driver="~fastapi+~httpx", milky_webhook=api, _env_file=None)
    nonebot.get_driver().register_adapter(Adapter)
    event_preprocessor(report)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(nonebot.get_asgi(), log_config=None, ws="none"))
    say(port=listening.getsockname()[1])

    def stop_at_the_end() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=stop_at_the_end, daemon=True).start()
    server.run(sockets=[listening])


if __name__ == "__main__":
    main()
