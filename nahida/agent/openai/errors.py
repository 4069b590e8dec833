"""What a provider means by an error: its kind, its words, when to come back."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from typing import cast

from nahida.agent.openai.thoughts import clean
from nahida.agent.vocabulary import ErrorKind, ModelError

EXCERPT = 300  # characters of a provider's error text that we keep

TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
TOO_LONG = re.compile(
    r"context.?(length|window|size)|maximum context|(prompt|input) is too long|too many tokens",
    re.IGNORECASE,
)
NO_MONEY_CODES = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "billing_hard_limit_reached",
        "billing_error",
        "insufficient_balance",
    }
)
NO_MONEY = re.compile(r"credit balance|insufficient (balance|quota)", re.IGNORECASE)
MODERATED_CODES = frozenset({"content_filter", "content_policy_violation"})
MISCONFIGURED = frozenset({401, 402, 403, 404, 405, 410})
UNAVAILABLE = frozenset({408, 409, 425})


class BrokenStreamError(ModelError):
    """The stream broke, and nobody has seen anything of it."""


class StreamOptionsError(ModelError):
    """The server does not know `stream_options`."""


def provider_error(
    name: str,
    body: object,
    *,
    status: int | None = None,
    retry_after: float | None = None,
    hint: str = "",
    request_id: str = "",
) -> ModelError:
    """Judge an error body: `{"error": {...}}` with a code of any type, `{"error": "text"}`,
    `{"message"}`, `{"detail"}`, HTML or nothing; without `status` it came inside a stream."""
    error = body.get("error") or body if isinstance(body, dict) else body
    fields = cast("dict[str, object]", error) if isinstance(error, dict) else {}
    said = fields.get("message") or fields.get("detail") or error
    excerpt = " ".join((said if isinstance(said, str) else json.dumps(said)).split())[:EXCERPT]
    code = fields.get("code")
    if status is None and isinstance(code, int | str) and str(code).isdigit():
        status = int(code)
    words = {str(fields.get(key) or "").lower() for key in ("code", "type")}
    kind = _kind(status, words=words, excerpt=excerpt)
    text = f'model "{name}" answered {status or "with an error"}: {clean(excerpt) or "nothing"}'
    text += f" (request {request_id})" if request_id else ""
    text += f"; {hint}" if hint and kind == "misconfigured" else ""
    return ModelError(text, kind=kind, retry_after=retry_after)


def _kind(status: int | None, *, words: set[str], excerpt: str) -> ErrorKind:
    if words & NO_MONEY_CODES or (status in (400, 402, 429) and NO_MONEY.search(excerpt)):
        return "misconfigured"
    if words & TOO_LONG_CODES or status == 413:
        return "too_long"
    if status in (None, 400, 422) and TOO_LONG.search(excerpt):
        return "too_long"
    if words & MODERATED_CODES:
        return "refused"
    if status == 429 or any("rate_limit" in word for word in words):
        return "rate_limited"
    if status in MISCONFIGURED:
        return "misconfigured"
    if status is None or status in UNAVAILABLE or not 400 <= status < 500:
        return "unavailable"
    return "refused"


def retry_after(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        when = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, when.timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
