"""nahida.toml, read once at start into typed, checked, frozen values.

Every problem of the file is one line of ConfigError: the key, its value, and the way out. Secrets
never stand in the file: a key `<secret>_env` names the environment variable that holds them.
"""

from __future__ import annotations

import difflib
import json
import pkgutil
import re
import tempfile
import tomllib
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    SecretStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from channels_app.channels import KINDS, ChannelConfig, config_path

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_PATH = ROOT / "nahida.toml"
EXAMPLE = "nahida.example.toml"

NAME = re.compile(r"[a-z][a-z0-9_-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET = re.compile(r"(key|token|secret|password)$", re.IGNORECASE)  # such a value is never shown
# These begin addresses of our own, or stand second in an address (channels_app/addresses.py).
RESERVED_CHANNELS = frozenset(
    {"web", "api", "agent", "private", "group", "channel", "thread", "unknown"}
)

MB = 1_000_000  # bytes

LOCAL_MODEL = "local"
LOCAL_MODEL_PORT = 8766
HOST = "127.0.0.1"
PORT = 8000

M = TypeVar("M", bound=BaseModel)


class ConfigError(Exception):
    """What is wrong with the configuration, one line for each problem."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError("write a zone of the tz database, such as Asia/Shanghai") from error
    return name


def _web_url(text: str) -> str:
    try:
        _URL.validate_python(text)
    except ValidationError as error:
        raise ValueError("write a URL that begins with http:// or https://") from error
    return text.rstrip("/")


_URL: TypeAdapter[HttpUrl] = TypeAdapter(HttpUrl)
Zone = Annotated[str, AfterValidator(_known_zone)]
WebUrl = Annotated[str, AfterValidator(_web_url)]


class Table(BaseModel):
    """A table of the file: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Site(Table):
    name: str = Field(default="Nahida", min_length=1)
    time_zone: Zone = "UTC"
    url: WebUrl = f"http://127.0.0.1:{PORT}"
    allowed_hosts: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host name the site answers to: this machine, that of `url`, and `allowed_hosts`."""
        host = urlsplit(self.url).hostname or ""
        own = f"[{host}]" if ":" in host else host
        return tuple(dict.fromkeys(("localhost", "127.0.0.1", "[::1]", own, *self.allowed_hosts)))


class Agent(Table):
    system_prompt: str = (
        "You are {name}, an assistant who lives in people's chats. Answer in the language of the "
        "person who writes to you, say plainly when you do not know, and be brief unless asked "
        "for more."
    )
    model: str = "main"
    fallbacks: tuple[str, ...] = ()
    max_tool_rounds: int = Field(default=8, ge=0, le=100)
    max_requests: int = Field(default=12, ge=1, le=200)  # model requests a turn, fallbacks included
    max_tokens_per_turn: int = Field(
        default=200_000, ge=1_000
    )  # in and out, over all requests of a turn
    history_tokens: int = Field(default=12_000, ge=200)  # of the chat's past lines sent with a turn
    answer_limit: int = Field(default=20_000, ge=200)  # characters of an answer; the rest is cut


class Model(Table):
    base_url: WebUrl
    model: str = Field(min_length=1)
    api_key_env: str = ""
    api_key: SecretStr = SecretStr("")  # filled from the variable that api_key_env names
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    max_output_tokens: int = Field(default=4_096, ge=16)
    context_tokens: int = Field(default=32_000, ge=512)
    vision: bool = False
    reasoning_back: bool = False
    price_in: Decimal | None = Field(
        default=None, ge=0
    )  # for 1,000,000 tokens, in the owner's currency
    price_out: Decimal | None = Field(default=None, ge=0)
    temperature: float | None = Field(default=None, ge=0, le=2)
    extra_body: dict[str, Any] = {}
    connect_s: float = Field(default=10, gt=0)
    read_s: float = Field(default=120, gt=0)  # longest silence inside a stream
    max_retries: int = Field(default=2, ge=0, le=10)
    local: bool = False  # the small model that our own supervisor serves

    @model_validator(mode="after")
    def _whole_price(self) -> Self:
        if (self.price_in is None) != (self.price_out is None):
            raise ValueError("write both price_in and price_out, or neither")
        return self


class Files(Table):
    """Sizes are in MB of 1,000,000 bytes."""

    largest_mb: int = Field(default=20, ge=1, le=200)  # of one file, and of all of one API request
    turn_mb: int = Field(default=40, ge=1, le=1_000)  # of all files downloaded for one turn
    per_turn: int = Field(default=10, ge=0, le=100)  # files downloaded for one turn; 0: none
    shown_images: int = Field(default=4, ge=0, le=20)  # pictures one request to the model carries
    shown_characters: int = Field(default=20_000, ge=0)  # of a text file; the rest is cut

    @property
    def largest(self) -> int:
        """In bytes."""
        return self.largest_mb * MB

    @property
    def a_turn(self) -> int:
        """In bytes."""
        return self.turn_mb * MB


class Memory(Table):
    recall_items: int = Field(default=8, ge=0, le=100)  # shown with a turn; 0: nothing is recalled
    recall_tokens: int = Field(default=1_500, ge=100)  # of all of them together
    embedding_model: str = ""  # none: memory is searched by keyword alone
    embedding_url: WebUrl | Literal[""] = ""
    embedding_api_key_env: str = ""
    embedding_api_key: SecretStr = SecretStr("")  # filled like a model's
    embedding_floor: float = Field(default=0.25, ge=0, lt=1)  # a cosine: below, it is unrelated

    @model_validator(mode="after")
    def _whole_endpoint(self) -> Self:
        if bool(self.embedding_model) != bool(self.embedding_url):
            raise ValueError("write both embedding_model and embedding_url, or neither")
        return self


class Workers(Table):
    count: int = Field(default=4, ge=1, le=64)
    stall_s: int = Field(default=60, ge=2)  # oldest unclaimed work may be this old before a restart


class Config(Table):
    site: Site = Site()
    agent: Agent = Agent()
    files: Files = Files()
    memory: Memory = Memory()
    models: Mapping[str, Model]
    channels: Mapping[str, ChannelConfig] = {}
    workers: Workers = Workers()
    path: Path | None = None  # None: there is no file, everything is a default

    @property
    def local_model(self) -> Model | None:
        """Return the model our supervisor has to serve, if the agent may ask one."""
        names = (self.agent.model, *self.agent.fallbacks)
        return next((self.models[name] for name in names if self.models[name].local), None)


def load(path: Path | None, env: Mapping[str, str]) -> Config:
    """Read and check the file; without `path` the one NAHIDA_CONFIG names, else nahida.toml.

    Raises ConfigError. Only the default file may be missing.
    """
    if path is None:
        path = Path(env["NAHIDA_CONFIG"]) if env.get("NAHIDA_CONFIG") else DEFAULT_PATH
    raw = _read(path)
    return _Reader(path.name, env).config(raw or {}, path=None if raw is None else path)


def data_dir(env: Mapping[str, str]) -> Path:
    """Return the directory of everything that is kept, made if it is not there.

    Raises ConfigError if it cannot be written to.
    """
    path = Path(env.get("NAHIDA_DATA_DIR") or ROOT / "data").resolve()
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)  # keys and chats: its owner's alone
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        fix = "name one that this user may write to in NAHIDA_DATA_DIR"
        problem = f"the data directory {path} cannot be written to ({error.strerror}): {fix}"
        raise ConfigError([problem]) from error


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if path == DEFAULT_PATH:
            return None
        fix = f"copy {EXAMPLE} there, or correct NAHIDA_CONFIG"
        raise ConfigError([f"{path}: no such file: {fix}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path}: byte {error.start} is not UTF-8: save it as UTF-8"]) from error
    except OSError as error:
        fix = "make it a file that this user may read"
        raise ConfigError([f"{path}: {error.strerror}: {fix}"]) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([f"{path}: not valid TOML: {error}"]) from error


class _Reader:
    """Collects every problem of one file, so that the owner mends them in one go."""

    def __init__(self, file: str, env: Mapping[str, str]) -> None:
        self.file = file
        self.env = env
        self.problems: list[str] = []

    def config(self, raw: dict[str, Any], *, path: Path | None) -> Config:
        self._refuse_unknown_tables(raw)
        site = self._checked(Site, self._site(raw), "site")
        workers = self._checked(Workers, self._part(raw, "workers"), "workers")
        agent = self._checked(Agent, self._part(raw, "agent"), "agent")
        files = self._checked(Files, self._part(raw, "files"), "files")
        remembering = self._with_secrets(self._part(raw, "memory"), key="memory", model=Memory)
        memory = self._checked(Memory, remembering, "memory")
        channels = self._channels(self._part(raw, "channels"))
        tables = self._part(raw, "models")
        models = self._models(tables)
        if agent:
            agent = self._with_models(agent, models, written=tables)
        if self.problems:
            raise ConfigError(self.problems)
        assert site is not None  # each None has left a problem
        assert workers is not None
        assert agent is not None
        assert files is not None
        assert memory is not None
        prompt = agent.system_prompt.replace("{name}", site.name)
        agent = agent.model_copy(update={"system_prompt": prompt})
        return Config(
            site=site,
            agent=agent,
            files=files,
            memory=memory,
            models=models,
            channels=channels,
            workers=workers,
            path=path,
        )

    def _refuse_unknown_tables(self, raw: dict[str, Any]) -> None:
        known = [name for name in Config.model_fields if name != "path"]
        for key in sorted(raw.keys() - set(known)):
            self._problem(_shown(key, raw[key]), _unknown(key, known))

    def _part(self, raw: dict[str, Any], key: str) -> dict[str, Any]:
        part = raw.get(key, {})
        if isinstance(part, dict):
            return part
        self._problem(f"{key} = {_toml(part)}", f"write a table: [{key}]")
        return {}

    def _site(self, raw: dict[str, Any]) -> dict[str, Any]:
        port = self._port("NAHIDA_PORT", default=PORT)
        return {"url": f"http://127.0.0.1:{port}"} | self._part(raw, "site")

    def _models(self, tables: dict[str, Any]) -> dict[str, Model]:
        models = {}
        for name in tables:
            key = f"models.{name}"
            if not NAME.fullmatch(name):
                self._problem(key, "write a name of a-z, 0-9, _ and -, a letter first")
                continue
            table = self._with_secrets(self._part(tables, name), key=key, model=Model)
            if "local" in table:
                del table["local"]
                fix = f'remove it; agent.model = "{LOCAL_MODEL}" is the model Nahida serves itself'
                self._problem(f"{key}.local", fix)
            if model := self._checked(Model, table, key):
                models[name] = model
        return models

    def _with_models(
        self, agent: Agent, models: dict[str, Model], *, written: Collection[str]
    ) -> Agent:
        """Settle which model answers first, and add the local one if it is meant."""
        if "model" not in agent.model_fields_set and len(written) < 2:
            agent = agent.model_copy(update={"model": next(iter(written), LOCAL_MODEL)})
        named = {"agent.model": agent.model}
        named |= {f"agent.fallbacks[{i}]": name for i, name in enumerate(agent.fallbacks)}
        for key, name in named.items():
            if name == LOCAL_MODEL and name not in written:
                models[name] = self._local_model()
            elif name not in written:
                known = ", ".join(sorted({*written, LOCAL_MODEL}))
                self._problem(f"{key} = {_toml(name)}", f"no such model: write one of {known}")
        return agent

    def _local_model(self) -> Model:
        port = self._port("NAHIDA_LOCAL_MODEL_PORT", default=LOCAL_MODEL_PORT)
        return Model(
            base_url=f"http://127.0.0.1:{port}/v1",
            model="smollm2",
            max_tokens_field="max_tokens",
            max_output_tokens=400,  # some ten seconds on two cores
            context_tokens=4_096,
            temperature=0.2,  # it is small: it wanders off at more, and says the same again and again
            extra_body={"repeat_penalty": 1.15},
            local=True,
        )

    def _channels(self, tables: dict[str, Any]) -> dict[str, ChannelConfig]:
        channels = {}
        for name in tables:
            if channel := self._channel(name, self._part(tables, name)):
                channels[name] = channel
        self._refuse_twins(channels)
        return channels

    def _channel(self, name: str, table: dict[str, Any]) -> ChannelConfig | None:
        key = f"channels.{name}"
        if not NAME.fullmatch(name):
            self._problem(key, "write a name of a-z, 0-9, _ and -, a letter first")
            return None
        if name in RESERVED_CHANNELS:
            self._problem(key, f"the name {name} is Nahida's own: choose another")
            return None
        if "kind" not in table:
            self._problem(f"{key}.kind", f"is missing: write {_one_of(KINDS)}")
            return None
        config_class = self._channel_config(table["kind"], key=f"{key}.kind")
        if config_class is None:
            return None
        table = self._with_secrets(table, key=key, model=config_class)
        return self._checked(config_class, table, key)

    def _channel_config(self, kind: object, *, key: str) -> type[ChannelConfig] | None:
        """Find the configuration of a channel. Settings are not there yet, so its module must do without models."""
        if not isinstance(kind, str) or (kind not in KINDS and "." not in kind):
            hint = _nearest(str(kind), KINDS)
            self._problem(f"{key} = {_toml(kind)}", f"{hint}write {_one_of(KINDS)}")
            return None
        try:
            config_class: type[ChannelConfig] = pkgutil.resolve_name(config_path(kind))
        except (ImportError, AttributeError, ValueError) as error:
            fix = f"cannot be used ({error}): write {_one_of(KINDS)}"
            self._problem(f"{key} = {_toml(kind)}", fix)
            return None
        assert issubclass(config_class, ChannelConfig), f"{kind} has no ChannelConfig"
        return config_class

    def _refuse_twins(self, channels: Mapping[str, ChannelConfig]) -> None:
        """One account under two names would take every message twice, or fight itself for them."""
        names: dict[str, str] = {}
        for name, config in channels.items():
            account = config.account
            if account and (twin := names.setdefault(account, name)) != name:
                fix = f"is the same account as channels.{twin}: remove one of them"
                self._problem(f"channels.{name}", fix)

    def _with_secrets(
        self, table: dict[str, Any], *, key: str, model: type[BaseModel]
    ) -> dict[str, Any]:
        """Fill each secret from the environment variable its `_env` key names."""
        filled = dict(table)
        for env_field in model.model_fields:
            secret, is_secret, _ = env_field.partition("_env")
            if not is_secret or secret not in model.model_fields:
                continue
            if secret in filled:
                del filled[secret]
                fix = f'is a secret: write {env_field} = "NAME" and set the variable NAME to it'
                self._problem(f"{key}.{secret}", fix)
            if not (variable := filled.get(env_field)):
                continue
            if not isinstance(variable, str) or not VARIABLE.fullmatch(variable):
                # Often the secret itself, written here by mistake: it must not reach a log.
                fix = "is no name of an environment variable: write one, such as OPENAI_API_KEY"
                self._problem(f"{key}.{env_field} = {_toml(str(variable)[:3] + '...')}", fix)
            elif not self.env.get(variable):
                fix = f"that environment variable is not set: set {variable}, or remove the key"
                self._problem(f"{key}.{env_field} = {_toml(variable)}", fix)
            else:
                filled[secret] = self.env[variable]
        return filled

    def _port(self, variable: str, *, default: int) -> int:
        text = self.env.get(variable) or str(default)
        if text.isascii() and text.isdigit() and 0 < int(text) < 65_536:
            return int(text)
        self.problems.append(f"{variable}={text}: write a port, 1 to 65535")
        return default

    def _checked(self, model: type[M], table: dict[str, Any], key: str) -> M | None:
        try:
            return model.model_validate(table)
        except ValidationError as error:
            for detail in error.errors():
                self._report(detail, model=model, key=key)
            return None

    def _report(self, detail: ErrorDetails, *, model: type[BaseModel], key: str) -> None:
        place = key + "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"]
        )
        if detail["type"] == "extra_forbidden":
            known = _fields_at(model, detail["loc"][:-1])
            fix = _unknown(str(detail["loc"][-1]), known)
            self._problem(_shown(place, detail["input"]), fix)
        elif detail["type"] == "missing":
            self._problem(place, "is missing: write it")
        else:
            self._problem(_shown(place, detail["input"]), _fix(detail))

    def _problem(self, key: str, fix: str) -> None:
        self.problems.append(f"{self.file}: {key}: {fix}")


def _fields_at(model: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    """Return the keys known at `place` inside `model`, none where it is no plain table."""
    for part in place:
        field = model.model_fields.get(str(part))
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    # What the loader fills in is no key of the file.
    filled = {name.removesuffix("_env") for name in model.model_fields if name.endswith("_env")}
    return [name for name in model.model_fields if name not in filled | {"local"}]


def _shown(key: str, value: object) -> str:
    """Return `key = value`, without a value that is a table or may be a secret."""
    if isinstance(value, dict | SecretStr) or SECRET.search(key.rpartition(".")[2]):
        return key
    return f"{key} = {_toml(value)}"


def _unknown(key: str, known: Iterable[str]) -> str:
    hint = _nearest(key, known)
    return f"unknown key: {hint or 'remove it; '}known are {', '.join(known)}"


def _nearest(text: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(text, list(known), n=1)
    return f"did you mean {near[0]}? " if near else ""


def _one_of(kinds: Iterable[str]) -> str:
    own = "the dotted path of a channel class"
    return f"{' or '.join(_toml(kind) for kind in kinds)}, or {own}" if kinds else own


_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def _fix(detail: ErrorDetails) -> str:
    if detail["type"] in _BOUNDS:
        words, bound = _BOUNDS[detail["type"]]
        return f"write {words} {detail.get('ctx', {})[bound]}"
    if detail["type"] == "value_error":
        return detail["msg"].removeprefix("Value error, ")
    return detail["msg"].replace("Input should be", "write").replace("String should", "it should")


def _toml(value: Any) -> str:
    """Write a value as it stands in the file, on one short line."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
