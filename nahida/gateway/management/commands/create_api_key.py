"""Make an API key; its text goes to stdout, once, and all else to stderr."""

import re
from datetime import datetime, time, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from channels_app.addresses import AddressError, ChatAddress
from nahida.gateway import keys
from sessions_app.models import Chat
from sessions_app.routing import chat_for

UNITS = {"h": "hours", "d": "days", "w": "weeks"}
LONGEST = timedelta(days=365 * 50)


class Command(BaseCommand):
    help = "Make a key for the HTTP API and print it once. Scopes: " + "; ".join(
        f"{scope} ({meaning})" for scope, meaning in keys.SCOPES.items()
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="who or what uses it")
        parser.add_argument(
            "--scope",
            action="append",
            required=True,
            choices=keys.SCOPES,
            dest="scopes",
            help="what it may do; may be given several times",
        )
        parser.add_argument(
            "--chat",
            action="append",
            dest="chats",
            metavar="ADDRESS",
            help="limit it to this chat, such as milky:group:20001; may be given several times",
        )
        parser.add_argument(
            "--expires", metavar="WHEN", help="90d, 12h, 6w or a date such as 2031-05-10"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        chats = options["chats"]
        key, text = keys.create(
            options["name"],
            scopes=options["scopes"],
            chats=None if chats is None else [_chat(address) for address in chats],
            expires_at=options["expires"] and _instant(options["expires"]),
        )
        reach = f"limited to {', '.join(chats)}" if chats else "for every chat"
        until = f"until {key.expires_at:%Y-%m-%d %H:%M} UTC" if key.expires_at else "for ever"
        self.stderr.write(
            f'key "{key.name}" ({", ".join(key.scopes)}), {reach}, {until}. It is shown this once:',
            self.style.NOTICE,
        )
        self.stdout.write(text)


def _chat(text: str) -> Chat:
    try:
        return chat_for(ChatAddress.target(text))
    except AddressError as error:
        raise CommandError(f"--chat: {error}") from error


def _instant(text: str) -> datetime:
    """Return when a key ends: so long from now, or when a day of the site's time zone begins."""
    now = timezone.now()
    if match := re.fullmatch(r"([1-9][0-9]{0,5})([hdw])", text, re.ASCII):
        span = timedelta(**{UNITS[match[2]]: int(match[1])})
        if span > LONGEST:
            raise CommandError(f"--expires {text} is more than 50 years: leave it out")
        return now + span
    try:
        day = datetime.fromisoformat(text).date()
        at = timezone.make_aware(datetime.combine(day, time()))
    except (ValueError, OverflowError) as error:
        raise CommandError(
            f'--expires "{text}" is no time: write 90d, 12h, 6w or a date such as 2031-05-10'
        ) from error
    if at <= now:
        raise CommandError(f"--expires {text} is over: write a later date")
    return at
