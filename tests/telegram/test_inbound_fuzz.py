"""Whatever Telegram may send, parsing it never raises, and never makes up an address or an empty message."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels_app.messages import ChatMoved, InboundMessage, ReachChanged, Skipped, storable
from channels_app.telegram.inbound import Me, parse
from tests.telegram import contents

SAMPLES: list[Any] = [
    *json.loads(Path(__file__).with_name("samples.json").read_text(encoding="utf-8")),
    *contents.ALL,
]
ME = Me(42000001, "nahida_bot")
GONE = object()
# Half a character, a NUL, nothing to see, a heap of brackets; numbers that fit nowhere; values of other types.
ODD_TEXTS = ("", "a\ud83d", "\udc00b", "\0", "\u200b", "[" * 9000)
ODD_NUMBERS = (10**400, -(2**62), -1, 0, 1e308, float("nan"))
ODD_VALUES: tuple[Any, ...] = (
    *ODD_TEXTS,
    *ODD_NUMBERS,
    GONE,
    None,
    True,
    False,
    [],
    {},
    [{}],
    [[]],
    {"": {}},
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(ODD_TEXTS + ODD_NUMBERS)
    | st.text(st.characters(codec=None), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside."""
    return [path, *(found for key, value in items(node) for found in places(value, (*path, key)))]


def items(node: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(node, dict):
        yield from node.items()
    elif isinstance(node, list):
        yield from enumerate(node)


def changed(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy with another value at a place, or without it."""
    if not path:
        return None if value is GONE else value
    copy = dict(node) if isinstance(node, dict) else list(node)
    if len(path) == 1 and value is GONE:
        del copy[path[0]]
    else:
        copy[path[0]] = changed(node[path[0]], path[1:], value)
    return copy


@st.composite
def broken_updates(draw: st.DrawFn) -> Any:
    """A true update with one to three of its values gone, taken from another, or replaced by anything."""
    update: Any = draw(st.sampled_from(SAMPLES))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(update)))
        other: Any = draw(st.sampled_from(SAMPLES))
        for key in draw(st.sampled_from(places(other))):
            other = other[key]
        update = changed(update, path, draw(st.just(GONE) | st.just(other) | JSON))
    return update


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts(inner)


def stumble_over(update: Any) -> None:
    found = parse(update, channel="telegram", me=ME)

    assert isinstance(found, InboundMessage | ChatMoved | ReachChanged | Skipped)
    if isinstance(found, InboundMessage):
        assert found.address.typed
        assert found.text.strip() or found.attachments
        assert all(text == storable(text) for text in texts(asdict(found)))


@given(broken_updates() | JSON)
def test_it_never_stumbles(update: Any) -> None:
    stumble_over(update)


@pytest.mark.parametrize("odd", ODD_VALUES, ids=lambda odd: repr(odd)[:20])
def test_it_reads_an_odd_value_at_any_place(odd: Any) -> None:
    for sample in SAMPLES:
        for path in places(sample):
            stumble_over(changed(sample, path, odd))
