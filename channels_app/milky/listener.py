"""How an account is listened to: who it is, its stream of events, and whatever was missed before the stream was open.

A protocol end promises no sign of life and repeats nothing, so a quiet stream is asked after, and opened anew when it stays quiet.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any

from asgiref.sync import sync_to_async

from channels_app.addresses import ChatAddress
from channels_app.channels import ListenError
from channels_app.messages import ChannelNews, ReachChanged, Skipped, WireEvent
from channels_app.milky import errors, history, inbound
from channels_app.milky.client import Event, Line
from channels_app.milky.config import Config
from channels_app.milky.segments import number, text
from channels_app.milky.standing import standing

logger = logging.getLogger(__name__)

SILENCE_S = 60.0  # after which it is asked whether the account is still logged in
MOST_SILENCES = 5  # after which the stream is opened anew: a dead one looks like a quiet one
LOGIN_EVERY_S = 30.0
WATCH_EVERY_S = 60.0
MOST_TALKS = 50  # looked at when the stream is opened
MOST_TALKS_WHEN_QUIET = 10

Parse = Callable[[Mapping[str, Any]], WireEvent]


class Listener:
    """One account's listener. `parse` reads an event; `self_id` is who the account is, once it is known."""

    def __init__(self, name: str, config: Config, line: Line, parse: Parse) -> None:
        self._name = name
        self._config = config
        self._line = line
        self._parse = parse
        self._was_quiet = False
        self.self_id = 0

    async def log_in(self, *, is_told: bool) -> AsyncIterator[WireEvent]:
        """Wait until the account is logged in. That it is not is told once: the time of that is since when."""
        while True:
            if is_told:
                await asyncio.sleep(LOGIN_EVERY_S)
            try:
                self._facts = await self._introduction()
                return
            except ListenError as error:
                if error.status != errors.LOGGED_OUT_STATUS:
                    raise
                if not is_told:
                    yield ChannelNews(error.status, str(error))
                is_told = True

    async def hear(self) -> AsyncGenerator[WireEvent]:
        """Yield what happens until the stream has been silent for long."""
        async with self._line.events(silence_s=SILENCE_S) as heard:
            yield ChannelNews("listening", detail=self._facts)
            async for event in self._missed():
                yield event
            self._was_quiet = False
            silences = 0
            async for told in heard:
                if told is not None:
                    silences = 0
                    yield await self._read(told)
                    continue
                silences += 1
                if silences == MOST_SILENCES:
                    self._was_quiet = True
                    return
                await self._line.ask("get_login_info")

    async def watch(self) -> AsyncGenerator[WireEvent]:
        """Tell how the account fares while its events come to the web process."""
        async for event in self._missed():
            yield event
        while True:
            yield ChannelNews("webhook", detail=self._facts)
            await asyncio.sleep(WATCH_EVERY_S)
            await self._line.ask("get_login_info")

    async def _introduction(self) -> dict[str, Any]:
        impl = await self._line.ask("get_impl_info")
        login = await self._line.ask("get_login_info")
        self.self_id = self._checked(number(login, "uin"))
        return {
            "name": f"{text(login, 'nickname')} ({self.self_id})",
            "account": str(self.self_id),
            "mode": self._config.mode,
            "hints": _hints(self._config),
            "impl": f"{text(impl, 'impl_name')} {text(impl, 'impl_version')}",
            "version": f"Milky {text(impl, 'milky_version')}",
            "protocol": f"{text(impl, 'qq_protocol_type')} {text(impl, 'qq_protocol_version')}",
        }

    def _checked(self, uin: int | None) -> int:
        wanted = self._config.uin
        if uin and wanted in (None, uin):
            return uin
        raise ListenError(
            f"the account {uin} is logged in, not {wanted}: log that one in, or correct uin",
            status="wrong account",
            wait_s=errors.WAIT_FOR_PERSON_S,
        )

    async def _read(self, told: Event) -> WireEvent:
        """Read an event; an admin of a group is not silenced with its members."""
        event = self._parse(told)
        if not isinstance(event, ReachChanged) or told.get("event_type") != "group_whole_mute":
            return event
        now = await self._standing(event.address)
        if now is None:
            return event
        reach, is_admin = now
        if is_admin:
            return Skipped("the members of a group were silenced, not its admins")
        return event if event.reason else reach

    async def _standing(self, chat: ChatAddress) -> tuple[ReachChanged, bool] | None:
        try:
            return await standing(self._line, chat, self_id=self.self_id)
        except ListenError as error:
            self._passed_over(error, f"how it stands in {chat} is not known")
            return None

    async def _missed(self) -> AsyncIterator[WireEvent]:
        """Yield what was said since the conversations were last heard, and which groups can be written to."""
        most = MOST_TALKS_WHEN_QUIET if self._was_quiet else MOST_TALKS
        lately = sync_to_async(history.talks)
        for talk in await lately(self._name, self_id=self.self_id, most=most):
            if talk.scene == "group" and not self._was_quiet:
                chat = ChatAddress(self._name, "group", str(talk.peer))
                if now := await self._standing(chat):
                    yield now[0]
            try:
                messages = await history.missed(self._line, talk)
            except ListenError as error:
                self._passed_over(error, f"what was missed in {talk} stays unheard")
                continue
            if messages:
                logger.warning("channel %s: %d missed in %s", self._name, len(messages), talk)
            for message in messages:
                yield inbound.message(message, channel=self._name, self_id=self.self_id)

    def _passed_over(self, error: ListenError, what: str) -> None:
        """Log what an end refuses; raise what concerns the line itself."""
        if error.status not in ("refused", "misconfigured"):
            raise error
        logger.warning("channel %s: %s: %s", self._name, what, error)


def _hints(config: Config) -> list[str]:
    if config.token.get_secret_value():
        return []
    return ["the protocol end asks for no token: whoever reaches it can use the account"]
