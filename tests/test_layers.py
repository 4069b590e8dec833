"""The stack: imports point down only, and keys are built in one place (STYLE 1, 9).

import-linter sees imports; here is what it cannot see: ForeignKeys, migrations, dotted strings, and key texts.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("channels_app", "sessions_app", "memory_app", "scheduler_app", "nahida")
# The one exemption: names of tasks, resolved by the queue at run time.
NAMES_TASKS = ("nahida/queue.py",)
KNOWS_KEYS = ("channels_app/addresses.py",)
TYPE_WORDS = ("private", "group", "channel", "thread", "unknown", "topic", "cron", "subagent")


def sources() -> Iterator[tuple[str, ast.Module]]:
    for floor in FLOORS:
        for path in sorted((ROOT / floor).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def height(name: str) -> int | None:
    floor = name.partition(".")[0]
    return FLOORS.index(floor) if floor in FLOORS else None


def test_it_keeps_the_import_contracts():
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_it_points_no_foreign_key_up():
    upward = [
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models(include_auto_created=True)
        for field in model._meta.get_fields()
        if field.is_relation
        and not field.auto_created
        and field.related_model
        and (height(model.__module__) or 0) < (height(field.related_model.__module__) or 0)
    ]

    assert upward == []


def upward_strings(path: str, tree: ast.Module) -> Iterator[str]:
    """Yield dotted strings that name a module of a higher floor, migration dependencies included."""
    own = FLOORS.index(path.partition("/")[0])
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        text = node.value
        if re.fullmatch(r"[a-z_]+(\.[A-Za-z_]+)*", text) is None:
            continue
        floor = height(text)
        if floor is not None and floor > own:
            yield f"{path}:{node.lineno} {text}"


def test_it_names_no_higher_floor_in_a_string():
    found = [name for path, tree in sources() for name in upward_strings(path, tree)]

    assert found == []


def test_it_names_tasks_only_where_the_queue_is_woken():
    found = [
        f"{path}:{node.lineno}"
        for path, tree in sources()
        if path not in NAMES_TASKS
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and str(node.value).startswith("nahida.tasks.")
    ]

    assert found == []


def built_keys(path: str, tree: ast.Module) -> Iterator[str]:
    """Yield f-strings and joins that could build an address or key.

    A key is parts with a colon between and no blank: `{a}:{b}`, `x:private:{id}`, ":".join(...), a + ":" + b.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and _looks_like_a_key(node):
            yield f"{path}:{node.lineno} f-string"
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "join"
            and isinstance(node.func.value, ast.Constant)
            and node.func.value.value == ":"
        ):
            yield f"{path}:{node.lineno} join"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
            for side in (node.left, node.right):
                if isinstance(side, ast.Constant) and isinstance(side.value, str):
                    is_colon = side.value == ":" or re.fullmatch(r"%s(:%s)+", side.value)
                    if is_colon:
                        yield f"{path}:{node.lineno} {side.value!r}"
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "format"
            and isinstance(node.func.value, ast.Constant)
            and re.search(r"\}:(\{|[a-z]+:\{)", str(node.func.value.value))
        ):
            yield f"{path}:{node.lineno} format"


def _looks_like_a_key(node: ast.JoinedStr) -> bool:
    shape = "".join(
        str(value.value) if isinstance(value, ast.Constant) else "\0" for value in node.values
    )
    if re.search(r"\s|://|[/()<>=]", shape):
        return False
    words = "|".join(TYPE_WORDS)
    return bool(re.search(rf"^\0:\0|\0:({words}|user):|:({words}|user):\0", shape))


def test_it_builds_keys_in_one_module_only():
    found = [
        place
        for path, tree in sources()
        if path not in KNOWS_KEYS
        for place in built_keys(path, tree)
    ]

    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        'key = f"{channel}:{chat_id}"',
        'key = f"{channel}:group:{chat_id}"',
        'key = f"web:private:{user.pk}"',
        'key = ":".join(parts)',
        'key = channel + ":" + chat_id',
        'key = "%s:%s" % (channel, chat_id)',
        'key = "{}:{}".format(channel, chat_id)',
    ],
)
def test_it_finds_a_key_that_is_built_elsewhere(code: str):
    """A planted violation of each kind is found."""
    assert list(built_keys("planted.py", ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        'f"{path}:{line} {name}"',
        'f"cache:failures:{name}:{hour}"',
        'f"http://{host}:{port}/v1"',
        'f"{name}: {text}"',
        'f"at {x}:"',
    ],
)
def test_it_takes_other_text_for_what_it_is(code: str):
    assert not list(built_keys("planted.py", ast.parse(code)))


def test_it_finds_a_dotted_string_that_points_up():
    planted = ast.parse('FUNC = "memory_app.turns"')

    assert list(upward_strings("channels_app/planted.py", planted))
    assert not list(upward_strings("nahida/planted.py", planted))
