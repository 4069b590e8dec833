"""Which links Telegram takes. Pure."""

import re

LONGEST_URL = 2000  # bytes

_WEB = re.compile(
    r"https?://(?:[\w-]+\.)+[\w-]+\.?(?::(?P<port>[0-9]{1,5}))?(?:[/?#]\S*)?", re.IGNORECASE
)
_INSIDE_TELEGRAM = re.compile(r"tg://[A-Za-z0-9_-]+(?:\?\S*)?")


def is_link(url: str) -> bool:
    """Web addresses with a dot in their host, and places inside of Telegram: for any other the server refuses the whole message."""
    if len(url.encode()) > LONGEST_URL:
        return False
    if web := _WEB.fullmatch(url):
        return web["port"] is None or 0 < int(web["port"]) < 1 << 16
    return bool(_INSIDE_TELEGRAM.fullmatch(url))
