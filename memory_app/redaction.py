"""Secrets are masked before anything is remembered. Pure.

    known shapes    keys of providers, JSON web tokens, bot tokens, private keys, authorization headers, URLs with a password
    named values    what stands behind a word like password, 密码, token, api key, PIN, with or without `:`, `=`, "is", 是
    card numbers    13 to 19 digits that pass the Luhn test and begin like a card

What only looks long or random stays: a phone number, an ISBN, a commit hash, a UUID, an order number, a date are what people want
remembered. So a bare secret with neither a known shape nor a word before it is not found, and a sentence such as "the password
is on the note" stays whole: the value behind the word must look like one.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and what kinds of them it held, each once."""

    text: str
    kinds: tuple[str, ...] = ()


# A secret of these shapes is one wherever it stands. Longest first where one begins like another.
_SHAPES: Final = (
    (
        "private key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[\s\S]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|[\s\S]*)",
    ),
    ("token", r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"),  # JSON web token
    ("token", r"\b\d{6,12}:AA[\w-]{3,}"),  # Telegram bot
    ("API key", r"\bsk-(?:proj-|ant-|or-v1-|svcacct-|live-|test-)?[\w-]{12,}"),
    ("API key", r"\b[spr]k_(?:live|test)_\w{8,}"),  # Stripe
    ("token", r"\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"),
    ("token", r"\bxox[abeoprs]-[\w-]{10,}|\bxapp-[\w-]{10,}"),  # Slack
    ("API key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),  # AWS
    ("API key", r"\bAIza[\w-]{30,}"),  # Google
    ("token", r"\bya29\.[\w-]{20,}"),
    ("token", r"\bhf_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{30,}|\bnhk_\w{16,}"),
    ("API key", r"\bLTAI[A-Za-z0-9]{12,}"),  # Aliyun
    ("API key", r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),  # SendGrid
    ("token", r"\b[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}"),  # Discord bot
    ("webhook", r"https://hooks\.slack\.com/services/[\w/]+"),
)

# What stays before the secret, and the secret.
_PLACES: Final = (
    (
        "password",
        r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{0,200}:)([^\s/]{1,200})(?=@)",
    ),  # scheme://user:password@host
    ("token", r"(\bbearer\s{1,4})([\w.~+/-]{0,500}?\d[\w.~+/-]{7,}=*)"),
    (
        "password",
        r"(\bauthorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:\w{1,40}\s{1,4})?)([\w.~+/-]{8,}=*)",
    ),
    (
        "token",
        r"([?&](?:access_token|token|api_?key|key|secret|password|sig|signature)=)([^\s&#]{6,})",
    ),
    (
        "recovery phrase",
        r"((?:pass\s?phrase|seed phrase|recovery phrase|mnemonic|助记词|助記詞|恢复短语)"
        r"[\"']?\s{0,4}(?:[:=：]|\bis\b|是)\s{0,4})([^\n.。]{3,300})",
    ),
)

_NAMES: Final = (
    (
        "password",
        r"pass\s?words?|passwd|pwd|\bpasscode|passwort|mot de passe|contraseña|пароль"
        r"|密码|密碼|口令|暗号|パスワード|비밀번호|암호",
    ),
    ("PIN", r"\bpins?(?:\s?codes?)?\b|取款码|支付码|验证码|驗證碼|認証コード|인증번호"),
    ("card code", r"\bcvv2?\b|\bcvc2?\b|安全码|安全碼"),
    ("token", r"tokens?|令牌|トークン|토큰"),
    ("API key", r"api[\s_-]?keys?|(?:\b|_)keys?\b|密钥|密鑰|秘钥|私钥|秘密鍵|キー"),
    ("secret", r"secrets?|credentials?"),
)
# `DB_PASSWORD=x`, `"password": "x"`, `password is x`, 密码是x, 密码：x, `password x`, 密码x
_GLUE = (
    r"(?P<glue>[\"'`]?\s{0,4}(?:(?P<sign>[:=：＝]>?)|(?P<verb>\b(?:is|was|to)\b|是|为|為|は|가|는|은)"
    r"\s{0,4}[:：]?)?\s{0,4})"
)
_VALUE = r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{1,200})(?P=quote)|(?P<bare>[!-~]{1,200}))"
_NAMED: Final = tuple(
    (kind, re.compile(rf"(?P<name>{names}){_GLUE}{_VALUE}", re.IGNORECASE))
    for kind, names in _NAMES
)
_SHAPED: Final = tuple((kind, re.compile(shape)) for kind, shape in _SHAPES)
_PLACED: Final = tuple((kind, re.compile(place, re.IGNORECASE)) for kind, place in _PLACES)
_CARD: Final = re.compile(r"(?<![A-Za-z0-9_.+-])[2-6](?:[ -]?[0-9]){12,18}(?![A-Za-z0-9_-])")
_CARD_BRANDS: Final = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}"
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|6(?:011|[245]\d\d)\d{12,15}"
)

_MASKED: Final = re.compile(r"\[[A-Za-z ]+ removed\]?")
_DATE: Final = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}")
_TAIL = ".,;:!?)]}>'\"`"  # ends the sentence, not the secret
# "the password is wrong" tells no password.
_PLAIN: Final = frozenset(
    [
        "wrong",
        "right",
        "correct",
        "incorrect",
        "invalid",
        "valid",
        "required",
        "needed",
        "missing",
        "empty",
        "expired",
        "changed",
        "reset",
        "unknown",
        "lost",
        "stored",
        "saved",
        "kept",
        "secret",
        "secure",
        "weak",
        "strong",
        "same",
        "different",
        "long",
        "short",
        "too",
        "very",
        "not",
        "never",
        "always",
        "also",
        "still",
        "only",
        "just",
        "now",
        "here",
        "there",
        "hidden",
        "hashed",
        "encrypted",
        "optional",
        "set",
        "unset",
        "null",
        "none",
        "true",
        "false",
        "what",
        "which",
        "that",
        "this",
        "something",
        "fine",
        "okay",
        "good",
        "bad",
        "easy",
        "hard",
    ]
)


def redact(text: str) -> Redacted:
    """Return `text` with each secret replaced by what it was: `[API key removed]`."""
    found: dict[str, None] = {}
    for kind, shape in _SHAPED:
        text = _mask(shape, text, kind, found, lambda match: (match.start(), match.end()))
    for kind, place in _PLACED:
        text = _mask(place, text, kind, found, lambda match: match.span(2))
    for kind, named in _NAMED:
        text = _mask(named, text, kind, found, partial(_named_value, kind))
    text = _mask(_CARD, text, "card number", found, _card)
    return Redacted(text, tuple(found))


def redact_json(value: Any) -> Any:
    """Return a JSON value with the secrets of every text in it masked, keys apart."""
    if isinstance(value, str):
        return redact(value).text
    if isinstance(value, dict):
        return {key: redact_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact_json(inner) for inner in value]
    return value


def _mask(
    pattern: re.Pattern[str],
    text: str,
    kind: str,
    found: dict[str, None],
    secret: Callable[[re.Match[str]], tuple[int, int] | None],
) -> str:
    parts: list[str] = []
    at = 0
    for match in pattern.finditer(text):
        span = secret(match)
        if (
            span is None
            or _MASKED.match(text, span[0])
            or _MASKED.match(text, max(match.start() - 1, 0))
        ):
            continue
        parts += (text[at : span[0]], f"[{kind} removed]")
        at = span[1]
        found[kind] = None
    return "".join((*parts, text[at:])) if parts else text


def _named_value(kind: str, match: re.Match[str]) -> tuple[int, int] | None:
    """Return where the value behind a word such as password stands, None if it does not look like one."""
    if match["quoted"] is not None:
        start, end = match.span("quoted")
    else:
        start, end = match.span("bare")
        end = start + len(match["bare"].rstrip(_TAIL))
    value = match.string[start:end]
    if not match["sign"] and not match["verb"] and _joins_on(match):
        return None
    return (start, end) if _JUDGES[kind](value, match) else None


def _joins_on(match: re.Match[str]) -> bool:
    """Is what looks like a value the rest of a longer word? passwords, password-manager, token_count"""
    last = match["name"][-1]
    return not match["glue"] and last.isascii()


def _is_password(value: str, match: re.Match[str]) -> bool:
    if match["sign"] or match["quoted"] is not None:
        return len(value) >= 3 and not _DATE.fullmatch(value)
    if match["verb"] and _is_plain_word(value):
        return len(value) >= 4 and value.lower() not in _PLAIN and _ends_clause(match)
    return len(value) >= 4 and _is_mixed(value)


def _is_pin(value: str, match: re.Match[str]) -> bool:
    digits = value.replace("-", "")
    return digits.isdigit() and 4 <= len(digits) <= 12 and not _DATE.fullmatch(value)


def _is_card_code(value: str, match: re.Match[str]) -> bool:
    return value.isdigit() and 3 <= len(value) <= 4


def _is_token(value: str, match: re.Match[str]) -> bool:
    has_letter = any(char.isalpha() for char in value)
    return has_letter and ((len(value) >= 8 and _is_mixed(value)) or len(value) >= 24)


_JUDGES: Final[dict[str, Callable[[str, re.Match[str]], bool]]] = {
    "password": _is_password,
    "PIN": _is_pin,
    "card code": _is_card_code,
    "token": _is_token,
    "API key": _is_token,
    "secret": _is_token,
}


def _is_plain_word(value: str) -> bool:
    return value.isalpha() and (value.islower() or value.istitle())


def _is_mixed(value: str) -> bool:
    """Has it a digit, an inner capital, or a sign that words do not have? A date, a URL or a path has not."""
    if _DATE.match(value) or value.startswith(("http", "/", "~/", "./")):
        return False
    has_digit = any(char.isdigit() for char in value)
    letters = [char for char in value if char.isalpha()]
    has_inner_capital = any(char.isupper() for char in letters[1:]) and not value.isupper()
    return has_digit or has_inner_capital or any(char in "!@#$%^&*+~" for char in value[1:])


def _ends_clause(match: re.Match[str]) -> bool:
    if match["quoted"] is not None or match["bare"][-1] in _TAIL:
        return True
    return match.string[match.end() : match.end() + 1] not in (" ", "\t")


def _card(match: re.Match[str]) -> tuple[int, int] | None:
    digits = re.sub(r"[ -]", "", match.group())
    is_card = _CARD_BRANDS.fullmatch(digits) is not None and _passes_luhn(digits)
    return match.span() if is_card else None


def _passes_luhn(digits: str) -> bool:
    """Does the check digit fit? Of random numbers, one in ten does."""
    doubled = [int(digit) * 2 if at % 2 else int(digit) for at, digit in enumerate(digits[::-1])]
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0
