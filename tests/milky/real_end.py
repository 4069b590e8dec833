"""Ask a real protocol end, in a network of its own that leads nowhere, and print what our side makes of its answers.

Run by test_real_end.py as `unshare -n python -m tests.milky.real_end <program>`. The end is logged out and finds no way to QQ.
"""

# ruff: noqa: E402  # Django reads its settings first
import tests.environment  # noqa: F401  # isort: skip
import django  # isort: skip

django.setup()

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from channels_app.addresses import ChatAddress
from channels_app.channels import ListenError, SendError
from channels_app.messages import ChannelNews, OutboundMessage, OutboundPart
from channels_app.milky.channel import Channel
from channels_app.milky.client import MilkyClient
from channels_app.milky.config import Config

URL = "http://127.0.0.1:3010"
TOKEN = "example-token"
SETTINGS = {
    "configVersion": 3,
    "protocol": {
        "uin": 1234567890,
        "password": "",
        "os": "Linux",
        "version": "39038",
        "signApiUrl": "http://127.0.0.1:9/sign",
        "pcLagrangeSignToken": "",
        "androidUseLegacySign": False,
        "autoRenewSession": True,
    },
    "milky": {
        "http": {
            "host": "127.0.0.1",
            "port": 3010,
            "prefix": "/qq",
            "accessToken": TOKEN,
            "corsOrigins": [],
        },
        "webhook": {"endpoints": []},
        "reportSelfMessage": True,
        "preloadContacts": False,
        "ffmpegPath": "",
    },
    "logging": {"ansiLevel": "NONE", "coreLogLevel": "DEBUG"},
    "security": {"skipOnLaunchListenAddressCheck": False},
    "debug": {"enableFaceDetailsApi": False},
}
START_S = 20


@contextmanager
def running(program: Path) -> Iterator[None]:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "config.json").write_text(json.dumps(SETTINGS))
        log = Path(directory, "log")
        with log.open("wb") as out:
            end = subprocess.Popen([program.resolve()], cwd=directory, stdout=out, stderr=out)
        try:
            yield
        finally:
            end.kill()  # it takes no other signal
            end.wait()


def account(*, token: str = TOKEN, path: str = "/qq") -> Channel:
    config = {"kind": "milky", "base_url": URL + path, "token": token}
    return Channel("qq", Config.model_validate(config))


async def first_news(channel: Channel) -> str:
    """Return the status that the listener comes to."""
    try:
        async for event in channel.listen({}):
            assert isinstance(event, ChannelNews)
            return event.status
    except ListenError as error:
        return error.status
    return "nothing"


async def opened(token: str) -> str:
    """Return what becomes of opening the stream of events."""
    try:
        async with (
            MilkyClient(base_url=f"{URL}/qq", token=token).listening() as line,
            line.events(silence_s=1) as heard,
        ):
            return "quiet" if await anext(heard) is None else "an event"
    except ListenError as error:
        return error.status


def sent(channel: Channel) -> str:
    try:
        channel.send(OutboundMessage(ChatAddress("qq", "group", "10001"), OutboundPart("hi")))
    except SendError as error:
        return f"again after {error.retry_after}" if error.not_sent else str(error)
    return "sent"


def wait_until_it_answers() -> None:
    end = time.monotonic() + START_S
    while asyncio.run(first_news(account())) == "unreachable" and time.monotonic() < end:
        time.sleep(0.2)


if __name__ == "__main__":
    with running(Path(sys.argv[1])):
        wait_until_it_answers()
        outcome = {
            "right": asyncio.run(first_news(account())),
            "wrong token": asyncio.run(first_news(account(token="another"))),
            "wrong path": asyncio.run(first_news(account(path=""))),
            "stream": asyncio.run(opened(TOKEN)),
            "stream with a wrong token": asyncio.run(opened("another")),
            "send": sent(account()),
            "send with a wrong token": sent(account(token="another")),
        }
    print(json.dumps(outcome))
