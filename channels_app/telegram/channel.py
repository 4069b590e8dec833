"""A Telegram bot: how it is read, by long polling or a webhook, and how it is written to."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.cache import cache
from django.utils.crypto import constant_time_compare

from channels_app.addresses import ChatAddress
from channels_app.channels import ListenError, SendError, VerificationError
from channels_app.messages import (
    Attachment,
    ChannelNews,
    InboundMessage,
    OutboundMessage,
    OutboundPart,
    WireEvent,
)
from channels_app.telegram import inbound, markdown, outbound
from channels_app.telegram.client import TelegramClient
from channels_app.telegram.config import Config
from channels_app.telegram.inbound import Me

if TYPE_CHECKING:
    from django.http import HttpRequest

logger = logging.getLogger(__name__)

POLL_S = 50  # the longest that Telegram lets a request wait for an update
ANSWER_S = POLL_S + 10
LOOK_EVERY_S = 60.0  # how often it is asked how many updates wait
TYPING_S = 4.0  # a typing sign fades after five seconds
ADMIN_KNOWN_S = 300  # who loses the role in a group keeps it here for at most as long
UPDATES = ["message", "edited_message", "channel_post", "edited_channel_post", "my_chat_member"]
ADMINS = ("creator", "administrator")
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105  # its name, not its value
PRIVACY = (
    "privacy mode is on: in groups it sees only commands, mentions and replies to it; "
    "/setprivacy at @BotFather changes that, then add the bot to the group again"
)

Ask = Callable[..., Awaitable[Any]]


class Channel:
    def __init__(self, name: str, config: Config) -> None:
        self.name = name
        self.config = config
        self.client = TelegramClient(
            name, token=config.token.get_secret_value(), base_url=config.base_url
        )
        self._me: Me | None = None

    def verify(self, request: "HttpRequest") -> None:
        secret = self.config.secret.get_secret_value()
        if self.config.mode != "webhook" or not secret:
            raise VerificationError("this bot is polled")
        if not constant_time_compare(request.headers.get(SECRET_HEADER, ""), secret):
            raise VerificationError(f"the header {SECRET_HEADER} is missing or wrong")

    def parse(self, event: Mapping[str, Any]) -> WireEvent:
        return inbound.parse(event, channel=self.name, me=self._identity())

    def complete(self, message: InboundMessage) -> InboundMessage:
        """Add whether the sender is an admin of the group: only Telegram knows, and a command may need it."""
        in_group = message.address.target_type != "private"
        needs_rights = message.addressed or message.text.startswith("/")
        if not in_group or not needs_rights or not message.sender.account:
            return message
        is_admin = self._is_admin(message.address, message.sender.account.rpartition(":")[2])
        return replace(message, sender=replace(message.sender, is_admin=is_admin))

    async def listen(self, commands: Mapping[str, str]) -> AsyncIterator[WireEvent]:
        async with self.client.listening(answer_s=ANSWER_S) as ask:
            facts = await self._introduce(ask, commands)
            events = self._poll if self.config.mode == "polling" else self._watch_webhook
            async for event in events(ask, facts):
                yield event

    def split(self, text: str) -> list[OutboundPart]:
        return markdown.split(text)

    def pace_s(self, address: ChatAddress) -> float:
        is_private = address.target_type == "private"
        return self.config.private_pace_s if is_private else self.config.group_pace_s

    def send(self, message: OutboundMessage) -> str:
        request = outbound.request(message)
        sent = self.client.call(request.method, upload=request.upload, **request.parameters)
        return str(sent["message_id"])

    def show_working(self, address: ChatAddress, message_id: str) -> float | None:
        if address.target_type == "channel":
            return None
        try:
            self.client.call("sendChatAction", action="typing", **outbound.chat(address))
        except SendError as error:
            logger.info("channel %s: no typing sign: %s", self.name, error)
            return None
        return TYPING_S

    def fetch(self, attachment: Attachment, *, limit: int) -> bytes:
        return self.client.fetch(attachment.platform_id, limit=limit)

    def _identity(self) -> Me:
        """Return who we are; a process that only takes webhooks asks once."""
        if self._me is None:
            try:
                self._me = _me(self.client.call("getMe"))
            except SendError as error:
                logger.warning("channel %s: its name is not known yet: %s", self.name, error)
                return Me(self.config.bot_id, "")
        return self._me

    def _is_admin(self, chat: ChatAddress, user_id: str) -> bool:
        key = f"telegram-admin/{self.name}/{chat.target_id}/{user_id}"
        known = cache.get(key)
        if known is None:
            try:
                member = self.client.call(
                    "getChatMember", chat_id=int(chat.target_id), user_id=int(user_id)
                )
            except SendError as error:
                logger.warning("channel %s: a member's role is not known: %s", self.name, error)
                return False
            known = member.get("status") in ADMINS
            cache.set(key, known, ADMIN_KNOWN_S)
        return bool(known)

    async def _introduce(self, ask: Ask, commands: Mapping[str, str]) -> dict[str, Any]:
        """Learn who we are and tell Telegram what we can be told."""
        me = await ask("getMe")
        self._me = _me(me)
        listed = [{"command": name, "description": text} for name, text in commands.items()]
        await ask("setMyCommands", commands=listed)
        return {
            "name": f"{me.get('first_name', '')} @{self._me.username}".strip(),
            "mode": self.config.mode,
            "hints": [] if me.get("can_read_all_group_messages") else [PRIVACY],
        }

    async def _poll(self, ask: Ask, facts: Mapping[str, Any]) -> AsyncIterator[WireEvent]:
        await self._leave_own_webhook(ask)
        offset: int | None = None
        looked_at = -LOOK_EVERY_S
        while True:
            if time.monotonic() - looked_at >= LOOK_EVERY_S:
                looked_at = time.monotonic()
                info = await ask("getWebhookInfo")
                pending = info.get("pending_update_count", 0)
                yield ChannelNews("polling", detail={**facts, "pending": pending})
            updates = await ask(
                "getUpdates", offset=offset, timeout=POLL_S, allowed_updates=UPDATES
            )
            for update in updates:
                yield self.parse(update)
                offset = update["update_id"] + 1

    async def _leave_own_webhook(self, ask: Ask) -> None:
        """Drop the webhook that this site set when it ran in the other mode. Another program's stays: a poll then says so."""
        info = await ask("getWebhookInfo")
        if info.get("url") == self._webhook_url:
            await ask("deleteWebhook")

    async def _watch_webhook(self, ask: Ask, facts: Mapping[str, Any]) -> AsyncIterator[WireEvent]:
        """Set the webhook, and tell now and then how it fares: the updates come to the web process."""
        await ask(
            "setWebhook",
            url=self._webhook_url,
            secret_token=self.config.secret.get_secret_value(),
            allowed_updates=UPDATES,
        )
        while True:
            info = await ask("getWebhookInfo")
            if info.get("url") != self._webhook_url:
                raise ListenError(
                    "another program took the webhook over: stop it; this site sets it again then",
                    status="conflict",
                    wait_s=LOOK_EVERY_S,
                )
            pending = info.get("pending_update_count", 0)
            error = info.get("last_error_message", "") if pending else ""
            yield ChannelNews("webhook", error, {**facts, "pending": pending})
            await asyncio.sleep(LOOK_EVERY_S)

    @property
    def _webhook_url(self) -> str:
        return f"{settings.NAHIDA.site.url}/api/hooks/telegram/{self.name}"


def _me(user: Mapping[str, Any]) -> Me:
    return Me(int(user["id"]), str(user.get("username", "")))
