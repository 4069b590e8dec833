"""What nahida.toml may say, and what is said when it is wrong."""

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import SecretStr

from channels_app.channels import ChannelConfig
from channels_app.milky import config as milky
from channels_app.telegram import config as telegram
from nahida.config import (
    DEFAULT_PATH,
    ROOT,
    Agent,
    Config,
    ConfigError,
    Files,
    Memory,
    Model,
    Site,
    Workers,
    data_dir,
    load,
)

MODEL = """
[models.main]
base_url = "http://127.0.0.1:1/v1"
model = "m"
"""


class Postcard:
    """A channel class as far as the configuration sees it."""

    class Config(ChannelConfig):
        stamps: int = 1
        token_env: str = ""
        token: SecretStr = SecretStr("")


POSTCARD = f"{__name__}.Postcard"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "nahida.toml"


def loaded(file: Path, text: str, **env: str) -> Config:
    file.write_text(text)
    return load(file, env)


def refused(file: Path, text: str, **env: str) -> str:
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file, env)
    return str(caught.value)


def test_it_answers_with_the_local_model_by_itself(file: Path) -> None:
    config = loaded(file, "", NAHIDA_LOCAL_MODEL_PORT="8799")

    assert config.agent.model == "local"
    assert config.local_model == config.models["local"]
    assert config.models["local"].base_url == "http://127.0.0.1:8799/v1"


def test_it_takes_the_only_model_whatever_its_name(file: Path) -> None:
    config = loaded(file, MODEL.replace("main", "gpt"))

    assert config.agent.model == "gpt"
    assert config.local_model is None


def test_it_can_fall_back_on_the_local_model(file: Path) -> None:
    config = loaded(file, MODEL + '[agent]\nfallbacks = ["local"]')

    assert config.agent.model == "main"
    assert config.local_model == config.models["local"]


def test_it_reads_secrets_from_the_environment(file: Path) -> None:
    config = loaded(file, MODEL + 'api_key_env = "KEY"', KEY="sk-secret")

    assert config.models["main"].api_key.get_secret_value() == "sk-secret"
    assert "sk-secret" not in repr(config)


def test_it_wants_an_endpoint_for_an_embedding_model(file: Path) -> None:
    said = refused(file, '[memory]\nembedding_model = "m"')

    assert "write both embedding_model and embedding_url, or neither" in said


def test_it_reads_the_embedding_key_from_the_environment(file: Path) -> None:
    text = """
[memory]
embedding_model = "m"
embedding_url = "http://127.0.0.1:1/v1/"
embedding_api_key_env = "EMBED_KEY"
"""
    memory = loaded(file, text, EMBED_KEY="abc").memory

    assert memory.embedding_api_key.get_secret_value() == "abc"
    assert memory.embedding_url == "http://127.0.0.1:1/v1"


def test_it_lets_a_channel_class_check_its_table(file: Path) -> None:
    table = f'[channels.post]\nkind = "{POSTCARD}"\nopen = true\ntoken_env = "T"\nstamps = 2'

    config = loaded(file, table, T="secret")

    channel = config.channels["post"]
    assert isinstance(channel, Postcard.Config)
    assert (channel.open, channel.stamps) == (True, 2)
    assert channel.token.get_secret_value() == "secret"


def test_it_names_the_port_in_its_own_url(file: Path) -> None:
    config = loaded(file, "", NAHIDA_PORT="8123")

    assert config.site.url == "http://127.0.0.1:8123"


def test_it_answers_to_the_host_of_its_url(file: Path) -> None:
    config = loaded(file, '[site]\nurl = "https://n.example.org/"\nallowed_hosts = ["n.lan"]')

    assert set(config.site.hosts) == {"localhost", "127.0.0.1", "[::1]", "n.example.org", "n.lan"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("sight = 3", "sight = 3: unknown key: did you mean site? known are site,"),
        ("[site]\nnam = 1", "site.nam = 1: unknown key: did you mean name? known are name,"),
        ("site = 3", "site = 3: write a table: [site]"),
        ('[site]\ntime_zone = "Mars"', 'site.time_zone = "Mars": write a zone of the tz database'),
        ('[site]\nurl = "n.org"', 'site.url = "n.org": write a URL that begins with http'),
        ("[workers]\ncount = 0", "workers.count = 0: write at least 1"),
        ('[agent]\nmax_requests = "x"', 'agent.max_requests = "x": write a valid integer'),
        (MODEL + '[agent]\nmodel = "man"', 'agent.model = "man": no such model: write one of'),
        ('[agent]\nmodel = "gpt"', 'agent.model = "gpt": no such model: write one of local'),
        (MODEL + '[agent]\nfallbacks = ["x"]', 'agent.fallbacks[0] = "x": no such model'),
        ("[models.main]\nmodel = 'm'", "models.main.base_url: is missing"),
        ("[models.Main]", "models.Main: write a name of a-z"),
        (MODEL + "base_ulr = 1", "models.main.base_ulr = 1: unknown key: did you mean base_url?"),
        (MODEL + "max_tokens_field = 'max'", "write 'max_completion_tokens' or 'max_tokens'"),
        (MODEL + "price_in = 1", "models.main: write both price_in and price_out"),
        (MODEL + "local = true", 'models.main.local: remove it; agent.model = "local" is'),
        (MODEL + 'api_key_env = "KEY"', 'api_key_env = "KEY": that environment variable is not'),
        ("[channels.web]\nkind = 'x.Y'", "channels.web: the name web is Nahida's own"),
        ("[channels.post]", "channels.post.kind: is missing: write"),
        ("[channels.post]\nkind = 'pots'", 'channels.post.kind = "pots": write'),
        ("[channels.post]\nkind = 'no.Such'", "cannot be used (No module named 'no'): write"),
        (f"[channels.p]\nkind = '{POSTCARD}'\nstamp = 1", "channels.p.stamp = 1: unknown key: did"),
        (f"[channels.p]\nkind = '{POSTCARD}'\nstamps = 'x'", 'channels.p.stamps = "x": write a'),
        ("x = ?", "not valid TOML: Invalid value (at line 1"),
    ],
)
def test_it_names_key_value_and_way_out(file: Path, text: str, line: str) -> None:
    problem = refused(file, text)

    assert problem.count("\n") == 0
    assert problem.startswith(("nahida.toml: ", f"{file}: "))
    assert line in problem


def test_it_tells_every_problem_at_once(file: Path) -> None:
    problems = refused(file, "sight = 1\n[workers]\ncount = 0\nsize = 1\n[models.main]")

    assert [line.split()[1].rstrip(":") for line in problems.splitlines()] == [
        "sight",
        "workers.count",
        "workers.size",
        "models.main.base_url",
        "models.main.model",
    ]


@pytest.mark.parametrize(
    "text",
    [
        MODEL + 'api_key = "sk-secret"',
        MODEL + 'api_key_env = "sk-secret"',
        MODEL + 'apikey = "sk-secret"',
        MODEL + 'price_in = 1\napi_key = "sk-secret"',
        f"[channels.p]\nkind = '{POSTCARD}'\ntoken = 'sk-secret'",
    ],
)
def test_it_never_repeats_a_secret(file: Path, text: str) -> None:
    assert "secret" not in refused(file, text).replace("is a secret", "")


def test_it_refuses_a_port_that_is_none(file: Path) -> None:
    assert "NAHIDA_PORT=80000: write a port" in refused(file, "", NAHIDA_PORT="80000")


def test_it_misses_only_a_file_that_was_asked_for(file: Path) -> None:
    with pytest.raises(ConfigError, match="no such file: copy"):
        load(None, {"NAHIDA_CONFIG": str(file)})
    if not DEFAULT_PATH.exists():
        assert load(None, {}).path is None


def test_it_makes_the_data_directory_for_its_owner_alone(tmp_path: Path) -> None:
    path = data_dir({"NAHIDA_DATA_DIR": str(tmp_path / "a" / "data")})

    assert path.stat().st_mode & 0o777 == 0o700


def test_it_refuses_a_data_directory_that_is_none(file: Path) -> None:
    file.write_text("")

    with pytest.raises(ConfigError, match="cannot be written to"):
        data_dir({"NAHIDA_DATA_DIR": str(file)})


TELEGRAM_TOKEN = "42000001:AAtest-token"
SECRETS = {"token", "secret"}


class Example:
    """nahida.example.toml with everything in force."""

    text = re.sub(
        r"^# (?=\[|[a-z_]+ = )", "", (ROOT / "nahida.example.toml").read_text(), flags=re.MULTILINE
    ).replace("channels.NAME", "channels.name")
    tables = tomllib.loads(text)


def test_it_documents_only_what_loads(file: Path) -> None:
    keys = dict.fromkeys(re.findall(r'_env = "(\w+)"', Example.text), "key")
    keys["TELEGRAM_TOKEN"] = TELEGRAM_TOKEN

    config = loaded(file, Example.text.replace("package.module.Class", POSTCARD), **keys)

    assert set(config.models) == {"main", "ollama", "vllm", "deepseek", "claude", "cheap"}


@pytest.mark.parametrize(
    ("table", "keys"),
    [
        (Example.tables["site"], Site.model_fields),
        (Example.tables["agent"], Agent.model_fields),
        (Example.tables["files"], Files.model_fields),
        (Example.tables["memory"], Memory.model_fields.keys() - {"embedding_api_key"}),
        (Example.tables["workers"], Workers.model_fields),
        (Example.tables["models"]["main"], Model.model_fields.keys() - {"api_key", "local"}),
        (Example.tables["channels"]["name"], ChannelConfig.model_fields),
        (Example.tables["channels"]["milky"], milky.Config.model_fields.keys() - SECRETS),
        (Example.tables["channels"]["telegram"], telegram.Config.model_fields.keys() - SECRETS),
    ],
)
def test_it_documents_every_key(table: dict[str, object], keys: set[str]) -> None:
    assert set(table) == set(keys)


@pytest.mark.parametrize(
    ("name", "model"),
    [("agent", Agent()), ("files", Files()), ("memory", Memory()), ("workers", Workers())],
)
def test_it_documents_the_true_defaults(name: str, model: Agent | Files | Memory | Workers) -> None:
    shown = {key: value for key, value in Example.tables[name].items() if isinstance(value, int)}

    assert shown == {key: getattr(model, key) for key in shown}
