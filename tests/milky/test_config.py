"""The table of a QQ account: what would not work, or would let anybody in, stops the start."""

from pathlib import Path

import pytest

from channels_app.milky.config import Config as MilkyConfig
from nahida.config import Config, ConfigError, load

QQ = """
[channels.qq]
kind = "milky"
base_url = "http://127.0.0.1:3010/milky/"
"""


def loaded(tmp_path: Path, text: str, **env: str) -> Config:
    path = tmp_path / "nahida.toml"
    path.write_text(text)
    return load(path, env)


def test_it_keeps_the_path_of_the_protocol_end(tmp_path: Path) -> None:
    qq = loaded(tmp_path, QQ).channels["qq"]

    assert isinstance(qq, MilkyConfig)
    assert (qq.base_url, qq.mode) == ("http://127.0.0.1:3010/milky", "events")


def test_it_never_shows_the_token(tmp_path: Path) -> None:
    qq = loaded(tmp_path, f'{QQ}token_env = "T"', T="example-token").channels["qq"]

    assert isinstance(qq, MilkyConfig)
    assert qq.token.get_secret_value() == "example-token"
    assert "example-token" not in repr(qq)


@pytest.mark.parametrize(
    ("lines", "env", "problem"),
    [
        ('mode = "webhook"', {}, "needs a secret, or anybody could send events"),
        ('mode = "webhook"\nsecret_env = "S"', {}, "that environment variable is not set: set S"),
        ('mode = "push"', {}, 'channels.qq.mode = "push"'),
        ('token_env = "T"', {"T": "two words"}, "no blanks"),
        ('token_env = "T"', {"T": "词"}, "it goes in a header"),
        ("text_limit = 100", {}, "at least 200"),
        ("pace_s = -1", {}, "at least 0"),
        ('seen_reaction = "ok"', {}, "channels.qq.seen_reaction"),
        ('token = "t"', {}, "is a secret: write token_env"),
    ],
)
def test_it_refuses_what_would_not_work(
    tmp_path: Path, lines: str, env: dict[str, str], problem: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, f"{QQ}{lines}\n", **env)

    assert problem in str(refused.value)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:3010", "ws://127.0.0.1", "http://", "http://h/?access_token=x", "http://u@h"]
)
def test_it_refuses_an_address_that_is_no_base(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"channels\.qq\.base_url"):
        loaded(tmp_path, f'[channels.qq]\nkind = "milky"\nbase_url = "{url}"')


def test_it_refuses_one_protocol_end_under_two_names(tmp_path: Path) -> None:
    """Both would be the same account, and answer everything twice."""
    twin = QQ.replace("channels.qq", "channels.twin").replace("milky/", "milky")

    with pytest.raises(ConfigError, match=r"channels\.twin: is the same account as channels\.qq"):
        loaded(tmp_path, QQ + twin)
