"""What nahida.toml says of a QQ account behind a Milky protocol end."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from channels_app.channels import ChannelConfig


class Config(ChannelConfig):
    base_url: str  # its path stays: an end may live below a prefix
    token_env: str = ""
    token: SecretStr = SecretStr("")
    mode: Literal["events", "webhook"] = "events"
    secret_env: str = ""
    secret: SecretStr = SecretStr("")
    uin: int | None = Field(default=None, ge=10001, le=4294967295)  # who must be logged in there
    # The protocol names no limit and no pace; QQ throttles accounts that write like machines.
    text_limit: int = Field(default=4000, ge=200, le=20_000)  # UTF-16 units of one message
    pace_s: float = Field(default=1.0, ge=0, le=60)
    seen_reaction: str = Field(default="", pattern=r"^\d{0,6}$")  # number of a face, "" for none

    @field_validator("base_url")
    @classmethod
    def _web_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("write a URL that begins with http:// or https://")
        if parts.query or parts.fragment or parts.username is not None:
            raise ValueError(
                "write host, port and path only: a token belongs to token_env, it goes in a header"
            )
        return url.rstrip("/")

    @field_validator("token", "secret")
    @classmethod
    def _fits_a_header(cls, secret: SecretStr) -> SecretStr:
        text = secret.get_secret_value()
        if not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError("write letters, digits and signs only, no blanks: it goes in a header")
        return secret

    @model_validator(mode="after")
    def _guarded(self) -> Self:
        if self.mode == "webhook" and not self.secret.get_secret_value():
            raise ValueError(
                'mode = "webhook" needs a secret, or anybody could send events: write secret_env, '
                "the name of a variable that holds the token the protocol end sends along"
            )
        return self

    @property
    def account(self) -> str:
        """Return the protocol end: each is logged in to one account."""
        parts = urlsplit(self.base_url)
        return f"milky end {parts.netloc.lower()}{parts.path}"
