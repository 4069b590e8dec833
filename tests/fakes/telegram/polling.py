"""getUpdates: what is confirmed is dropped, and only one waits."""

from typing import Any

from aiogram.types import Update as TypedUpdate

from tests.fakes.telegram.answers import HUNG_UP, Answer, bad_request, conflict
from tests.fakes.telegram.bodies import Params
from tests.fakes.telegram.bot import Bot
from tests.fakes.telegram.chats import Update

LONGEST_S = 50
_KINDS = frozenset(TypedUpdate.model_fields) - {"update_id"}


def get_updates(bot: Bot, params: Params) -> list[Update] | Answer:
    """Called with `bot.changed` held, which it gives up while it waits."""
    if bot.webhook is not None:
        raise conflict(
            "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
        )
    choose_kinds(bot, params)
    _confirm(bot, params.get("offset", 0))
    bot.polls += 1
    this = bot.polls
    _wait(bot, this, seconds=min(params.get("timeout", 0), LONGEST_S))
    if bot.is_down:
        return HUNG_UP
    if bot.webhook is not None:
        raise conflict("terminated by setWebhook request")
    if bot.polls != this:
        raise conflict(
            "terminated by other getUpdates request; make sure that only one bot instance is running"
        )
    return bot.updates[: max(1, min(params.get("limit", 100), 100))]


def choose_kinds(bot: Bot, params: Params) -> None:
    """Keep which kinds of update a bot wants. Those that wait already stay."""
    if "allowed_updates" not in params:
        return
    kinds = frozenset(params["allowed_updates"])
    if unknown := kinds - _KINDS:
        raise bad_request(f"unknown kinds of update: {', '.join(sorted(unknown))}")
    bot.allowed = kinds or None


def _confirm(bot: Bot, offset: int) -> None:
    if offset < 0:
        bot.updates = bot.updates[offset:]
    bot.updates = [update for update in bot.updates if update["update_id"] >= offset]


def _wait(bot: Bot, this: int, *, seconds: float) -> None:
    def is_over() -> Any:
        return bot.updates or bot.polls != this or bot.webhook or bot.is_down

    bot.waiting += 1
    bot.changed.notify_all()
    try:
        bot.changed.wait_for(is_over, seconds)
    finally:
        bot.waiting -= 1
        bot.changed.notify_all()
