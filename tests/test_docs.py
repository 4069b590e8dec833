"""What the papers say is what the code does."""

import pkgutil
import re
import shlex
from pathlib import Path

import pytest

from channels_app.channels import config_path
from nahida.agent import slash
from nahida.agent.policy import NEEDED
from nahida.gateway.keys import SCOPES
from nahida.legacy.management.commands import import_legacy, migrate_session_keys

ROOT = Path(__file__).resolve().parent.parent
PAPERS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def paper(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.name)
def test_it_links_only_to_what_is_there(path: Path):
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.name)
def test_it_names_only_files_that_are_there(path: Path):
    for name in re.findall(r"`([a-z_]+/[a-z_/]+\.py)", path.read_text()):
        assert (ROOT / name).exists(), f"{path.name} names {name}"


def test_it_lists_every_command_with_its_help_and_rights():
    listed = re.findall(r"^\| `(/\w+)` \| (.+?) \| (\w+) \|$", paper("docs/chats.md"), re.MULTILINE)

    assert {row[0]: (row[1], row[2]) for row in listed} == {
        name: (entry.help, NEEDED[name].word) for name, entry in slash.COMMANDS.items()
    }


def test_it_names_every_variable_of_the_environment():
    """Each variable that the code reads has its line, and no other has one."""
    read = set()
    for path in (*ROOT.glob("nahida/**/*.py"), ROOT / "bin" / "up", ROOT / "bin" / "environment"):
        read |= set(re.findall(r"\b(NAHIDA_[A-Z_]+|DJANGO_[A-Z_]+)\b", path.read_text()))
    internal = {"NAHIDA_ROLE", "DJANGO_SETTINGS_MODULE"}

    named = set(re.findall(r"`(NAHIDA_[A-Z_]+|DJANGO_[A-Z_]+)`", paper("docs/running.md")))

    assert named == read - internal


def test_it_opens_the_readme_with_the_two_commands():
    first_block = paper("README.md").split("```sh\n")[1].split("```")[0]

    commands = [line.split()[0] for line in first_block.splitlines()]

    assert commands == ["bin/up", "bin/test"]
    assert all((ROOT / command).stat().st_mode & 0o111 for command in commands)


@pytest.mark.parametrize(
    ("page", "config"),
    [("docs/telegram.md", "telegram")],
)
def test_it_lists_every_setting_of_a_channel(page: str, config: str):
    fields = pkgutil.resolve_name(config_path(config)).model_fields
    settings = {
        name: "" if field.is_required() or field.default == "" else str(field.default)
        for name, field in fields.items()
        if name != "kind" and f"{name}_env" not in fields
    }

    section = paper(page).split("## Settings\n")[1]
    listed = re.findall(r"^\| `(\w+)` \| (?:`(.*?)`)? ?\|", section, re.MULTILINE)

    assert {name: default.lower() for name, default in listed} == {
        name: default.lower() for name, default in settings.items()
    }


def test_it_moves_an_old_database_with_commands_that_are_there():
    """Each command of the page is understood as written, and each act has its place there."""
    lines = re.findall(r"^\$ manage\.py (.+)$", paper("docs/migrating.md"), re.MULTILINE)
    commands = {"import_legacy": import_legacy, "migrate_session_keys": migrate_session_keys}

    for name, *words in map(shlex.split, lines):
        commands[name].Command().create_parser("manage.py", name).parse_args(words)

    acts = {words[1] for words in map(shlex.split, lines) if words[0] == "migrate_session_keys"}
    assert acts == set(migrate_session_keys.ACTS)


def test_it_lists_every_scope_of_a_key():
    listed = re.findall(r"^\| `([a-z:]+)` \| (.+?) \|$", paper("docs/api.md"), re.MULTILINE)

    assert dict(listed) == dict(SCOPES)
