"""A strict Telegram Bot API server on loopback, for one test's bots and chats.

Its word on wire facts is the protocol page; where the real server is lenient it is strict: a parameter that the
Bot API does not know, or no longer wants, is refused. It keeps no time: flood limits, expiry and the pauses between two
deliveries come only when a test asks for them. A chat belongs to one bot, so two bots in one group are two chats.
"""

from tests.fakes.telegram.answers import (
    Answer,
    ApiError,
    bad_request,
    conflict,
    flood,
    forbidden,
    success,
)
from tests.fakes.telegram.bodies import Upload
from tests.fakes.telegram.bot import Bot, Call, File
from tests.fakes.telegram.chats import ANONYMOUS_ADMIN, CHANNEL_BOT, Chat, user
from tests.fakes.telegram.faults import Hold
from tests.fakes.telegram.server import TelegramServer
from tests.fakes.telegram.webhooks import Delivery, deliver

__all__ = [
    "ANONYMOUS_ADMIN",
    "CHANNEL_BOT",
    "Answer",
    "ApiError",
    "Bot",
    "Call",
    "Chat",
    "Delivery",
    "File",
    "Hold",
    "TelegramServer",
    "Upload",
    "bad_request",
    "conflict",
    "deliver",
    "flood",
    "forbidden",
    "success",
    "user",
]
