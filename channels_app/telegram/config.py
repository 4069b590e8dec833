"""What nahida.toml says of a Telegram bot."""

import re
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from channels_app.channels import ChannelConfig

TOKEN = re.compile(r"(\d{1,16}):[A-Za-z0-9_-]{1,128}")
SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")
API = "https://api.telegram.org"


class Config(ChannelConfig):
    token_env: str = Field(min_length=1)
    token: SecretStr = SecretStr("")
    mode: Literal["polling", "webhook"] = "polling"
    secret_env: str = ""
    secret: SecretStr = SecretStr("")
    base_url: str = API
    # Telegram asks for one message a second in a chat and twenty a minute in a group.
    private_pace_s: float = Field(default=1.0, ge=0, le=60)
    group_pace_s: float = Field(default=3.0, ge=0, le=60)

    @field_validator("token")
    @classmethod
    def _right_form(cls, token: SecretStr) -> SecretStr:
        if not TOKEN.fullmatch(token.get_secret_value()):
            raise ValueError("no bot token: write the one that @BotFather gave, <number>:<letters>")
        return token

    @field_validator("secret")
    @classmethod
    def _allowed_letters(cls, secret: SecretStr) -> SecretStr:
        if not SECRET.fullmatch(secret.get_secret_value()):
            raise ValueError("write 1 to 256 of A-Z, a-z, 0-9, _ and -")
        return secret

    @field_validator("base_url")
    @classmethod
    def _no_slash(cls, url: str) -> str:
        if not url.startswith(("http://", "https://")):
            raise ValueError("write a URL that begins with http:// or https://")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _guarded(self) -> Self:
        if self.mode == "webhook" and not self.secret.get_secret_value():
            raise ValueError(
                'mode = "webhook" needs a secret, or anybody could send updates: '
                "write secret_env, the name of a variable that holds one"
            )
        return self

    @property
    def bot_id(self) -> int:
        """The digits of the token are the bot's own user id."""
        return int(self.token.get_secret_value().partition(":")[0])

    @property
    def account(self) -> str:
        return f"telegram bot {self.bot_id}"
