"""Webhooks: set, looked at, taken away, and delivered to when a test says so."""

import http.client
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.fakes.telegram.answers import bad_request
from tests.fakes.telegram.bodies import Params
from tests.fakes.telegram.bot import Bot, Webhook
from tests.fakes.telegram.chats import Update
from tests.fakes.telegram.faults import PATIENCE_S
from tests.fakes.telegram.polling import choose_kinds

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"

Post = Callable[[str, bytes, Mapping[str, str]], tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One try to deliver an update, and what came back; status 0: no answer."""

    update: Update
    status: int
    body: bytes = b""

    @property
    def is_taken(self) -> bool:
        return 200 <= self.status < 300


def set_webhook(bot: Bot, params: Params, *, loopback: bool) -> bool:
    """`loopback` lets a test have one at http://127.0.0.1 and any port."""
    url = params.get("url", "")
    if not url:
        return delete_webhook(bot, params)
    _check_url(url, loopback=loopback)
    secret = params.get("secret_token", "")
    if len(secret) > 256:
        raise bad_request("secret token is too long")
    if re.fullmatch("[A-Za-z0-9_-]*", secret) is None:
        raise bad_request("secret token contains unallowed characters")
    choose_kinds(bot, params)
    _drop_pending(bot, params)
    bot.webhook = Webhook(url, secret, params.get("max_connections", 40))
    return True


def delete_webhook(bot: Bot, params: Params) -> bool:
    _drop_pending(bot, params)
    bot.webhook = None
    return True


def get_webhook_info(bot: Bot, params: Params) -> dict[str, Any]:
    hook = bot.webhook or Webhook("")
    info: dict[str, Any] = {
        "url": hook.url,
        "has_custom_certificate": False,
        "pending_update_count": len(bot.updates),
    }
    if hook.url:
        info["max_connections"] = hook.max_connections
    if hook.last_error:
        info |= {"last_error_date": hook.last_error_at, "last_error_message": hook.last_error}
    if bot.allowed is not None:
        info["allowed_updates"] = sorted(bot.allowed)
    return info


def over_http(url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_S)
    try:
        connection.request("POST", parts.path, body, dict(headers))
        response = connection.getresponse()
        return response.status, response.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


def deliver(bot: Bot, *, post: Post = over_http) -> Delivery:
    """Try once to deliver the oldest update that waits. One that is not taken stays the oldest."""
    hook, update = bot.webhook, bot.updates[0]
    assert hook is not None, "the bot has no webhook"
    headers = {"Content-Type": "application/json"}
    if hook.secret:
        headers[SECRET_HEADER] = hook.secret
    delivery = Delivery(update, *post(hook.url, json.dumps(update).encode(), headers))
    with bot.changed:
        if delivery.is_taken:
            bot.updates.remove(update)
        else:
            hook.last_error = _reason(delivery.status)
            hook.last_error_at = bot.now()
    return delivery


def _reason(status: int) -> str:
    if not status:
        return "Connection refused"
    name = http.client.responses.get(status, "")
    return f"Wrong response from the webhook: {status} {name}"


def _check_url(url: str, *, loopback: bool) -> None:
    parts = urlsplit(url)
    if not parts.hostname:
        raise bad_request("invalid webhook URL specified")
    if parts.hostname == "127.0.0.1":
        if not loopback:
            raise bad_request("bad webhook: IP address 127.0.0.1 is reserved")
        return
    if parts.scheme != "https":
        raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
    if (parts.port or 443) not in (80, 88, 443, 8443):
        raise bad_request("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")


def _drop_pending(bot: Bot, params: Params) -> None:
    if params.get("drop_pending_updates"):
        bot.updates.clear()
