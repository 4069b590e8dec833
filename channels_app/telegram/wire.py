"""Reading JSON that may be anything: what is not there, or of another type, is empty."""

from collections.abc import Iterator, Mapping
from typing import Any

from channels_app.messages import storable

LARGEST_ID = 2**63 - 1


class Node:
    """An object of the wire. False if it is none, or empty."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value: Mapping[str, Any] = value if isinstance(value, Mapping) else {}

    def __bool__(self) -> bool:
        return bool(self._value)

    def __iter__(self) -> Iterator[str]:
        """Yield its keys."""
        return (key for key in self._value if isinstance(key, str))

    def has(self, key: str) -> bool:
        return self._value.get(key) not in (None, "", 0, False, [])

    def node(self, key: str) -> "Node":
        return Node(self._value.get(key))

    def nodes(self, key: str) -> list["Node"]:
        return objects(self._value.get(key))

    def value(self, key: str) -> Any:
        """Return whatever is there, for what may be of several types."""
        return self._value.get(key)

    def text(self, key: str) -> str:
        found = self._value.get(key)
        return storable(found) if isinstance(found, str) else ""

    def number(self, key: str) -> int | None:
        """Return a whole number that a database takes."""
        found = self._value.get(key)
        if isinstance(found, bool) or not isinstance(found, int) or abs(found) > LARGEST_ID:
            return None
        return found

    def flag(self, key: str) -> bool:
        return self._value.get(key) is True

    def denies(self, key: str) -> bool:
        return self._value.get(key) is False

    def real(self, key: str) -> float | None:
        found = self._value.get(key)
        return found if isinstance(found, float) else self.number(key)


def objects(value: Any) -> list[Node]:
    """Return the objects of a list, none if it is no list."""
    return (
        [Node(each) for each in value if isinstance(each, Mapping)]
        if isinstance(value, list)
        else []
    )
