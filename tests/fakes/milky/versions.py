"""What a protocol end of an older Milky version does not say."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

Version = Literal["1.1", "1.2", "1.3"]

EVENTS_SINCE: Mapping[str, Version] = {"peer_pin_change": "1.2", "group_disband": "1.3"}
SEGMENTS_SINCE: Mapping[str, Version] = {"markdown": "1.3"}
SENT_SEGMENTS_SINCE: Mapping[str, Version] = {"light_app": "1.2"}
APIS_SINCE: Mapping[str, Version] = {"persist_group_file": "1.3"}

# By the word before them: a segment's type, an event's type, or the key an entity stands under.
_FIELDS_OF_1_2: Mapping[str, frozenset[str]] = {
    "mention": frozenset({"name"}),
    "reply": frozenset({"sender_id", "sender_name", "time", "segments"}),
    "group": frozenset({"remark", "created_time", "description", "question", "announcement"}),
    "forwarded": frozenset({"message_seq"}),
    "group_message_reaction": frozenset({"reaction_type"}),
    "group_invitation": frozenset({"source_group_id"}),
}


def in_words_of(version: Version, value: Any) -> Any:
    """Return an event or an answer as an end of that version would put it.

    ValueError for what such an end knows nothing of, so that no test rests on it.
    """
    _refuse_the_unheard_of(version, value)
    return _thinned(value) if version == "1.1" else value


def _refuse_the_unheard_of(version: Version, value: Any) -> None:
    for part in _objects(value):
        for key, since in (("event_type", EVENTS_SINCE), ("type", SEGMENTS_SINCE)):
            if since.get(part.get(key, ""), version) > version:
                raise ValueError(f"Milky {version} has no {part[key]}")


def _objects(value: Any) -> Iterable[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, (dict, list)):
            yield from _objects(inner)


def _thinned(value: Any, word: str = "") -> Any:
    if isinstance(value, list):
        return [_thinned(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    kind = "forwarded" if "avatar_url" in value else word
    own = value.get("event_type") or value.get("type")
    return {
        key: _thinned(inner, own if key == "data" and isinstance(own, str) else key)
        for key, inner in value.items()
        if key not in _FIELDS_OF_1_2.get(kind, ())
    }
