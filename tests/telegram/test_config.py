"""The table of a Telegram bot: what would not work, or would let anybody in, stops the start."""

from pathlib import Path

import pytest

from channels_app.telegram.config import Config as TelegramConfig
from nahida.config import Config, ConfigError, load

TOKEN = "42000001:AAtest-token"
BOT = """
[channels.bot]
kind = "telegram"
token_env = "TOKEN"
"""


def loaded(tmp_path: Path, text: str, **env: str) -> Config:
    path = tmp_path / "nahida.toml"
    path.write_text(text)
    return load(path, {"TOKEN": TOKEN, **env})


def test_it_reads_a_bot(tmp_path: Path) -> None:
    bot = loaded(tmp_path, BOT).channels["bot"]

    assert isinstance(bot, TelegramConfig)
    assert (bot.bot_id, bot.mode, bot.base_url) == (42000001, "polling", "https://api.telegram.org")
    assert "AAtest" not in repr(bot)


@pytest.mark.parametrize(
    ("lines", "env", "problem"),
    [
        ("", {"TOKEN": "AAtest-token"}, "channels.bot.token: no bot token: write the one that"),
        ("", {"TOKEN": f" {TOKEN}"}, "no bot token"),
        ('mode = "webhook"', {}, "needs a secret, or anybody could send updates"),
        ('mode = "webhook"\nsecret_env = "S"', {}, "that environment variable is not set: set S"),
        ('mode = "webhook"\nsecret_env = "S"', {"S": "a secret"}, "write 1 to 256 of A-Z"),
        ('mode = "webhook"\nsecret_env = "S"', {"S": "a" * 257}, "write 1 to 256 of A-Z"),
        ('mode = "push"', {}, 'channels.bot.mode = "push"'),
        ('base_url = "api.telegram.org"', {}, "begins with http:// or https://"),
        ("group_pace_s = -1", {}, "at least 0"),
        ('token = "1:a"', {}, "is a secret: write token_env"),
    ],
)
def test_it_refuses_what_would_not_work(
    tmp_path: Path, lines: str, env: dict[str, str], problem: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, f"{BOT}{lines}\n", **env)

    assert problem in str(refused.value)
    assert "AAtest" not in str(refused.value)


def test_it_refuses_one_bot_under_two_names(tmp_path: Path) -> None:
    """Each would take the other's messages."""
    twin = BOT.replace("channels.bot", "channels.twin").replace("TOKEN", "OTHER")

    with pytest.raises(ConfigError, match=r"channels\.twin: is the same account as channels\.bot"):
        loaded(tmp_path, BOT + twin, OTHER="42000001:AAnewer-token")


def test_it_takes_several_bots(tmp_path: Path) -> None:
    other = BOT.replace("channels.bot", "channels.other").replace("TOKEN", "OTHER")

    assert len(loaded(tmp_path, BOT + other, OTHER="42000002:AAother").channels) == 2
