"""docs/milky.md tells every setting with its default, and every state a channel can show."""

import re
from pathlib import Path

from channels_app.milky.config import Config

ROOT = Path(__file__).resolve().parents[2]
PAPER = (ROOT / "docs" / "milky.md").read_text()
FOLDER = ROOT / "channels_app" / "milky"
SECRETS = {"token", "secret", "kind"}


def table(heading: str) -> dict[str, str]:
    """Return the second column of a table by its first."""
    section = PAPER.split(f"## {heading}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.*?) \|", section, re.MULTILINE))


def test_it_tells_every_setting_with_its_default():
    told = table("Settings")

    assert told.keys() == Config.model_fields.keys() - SECRETS
    for name, default in told.items():
        if shown := re.fullmatch(r"`(.+)`", default):
            assert str(Config.model_fields[name].default).lower() == shown[1]


def test_it_tells_every_state():
    code = "".join(path.read_text() for path in FOLDER.glob("*.py"))
    shown = re.findall(r'(?:status=|ChannelNews\(|STATUS = )"([a-z ]+)"', code)

    assert table("States").keys() == set(shown)
