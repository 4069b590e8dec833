"""TDLib's own reading of texts, which is the server's, and the names the Bot API has for its entities."""

import json
from typing import Any

import tdjson

from tests.fakes.telegram.answers import bad_request

Entity = dict[str, Any]

_PLAIN = {
    "mention": "Mention",
    "hashtag": "Hashtag",
    "cashtag": "Cashtag",
    "bot_command": "BotCommand",
    "url": "Url",
    "email": "EmailAddress",
    "phone_number": "PhoneNumber",
    "bold": "Bold",
    "italic": "Italic",
    "underline": "Underline",
    "strikethrough": "Strikethrough",
    "spoiler": "Spoiler",
    "blockquote": "BlockQuote",
    "expandable_blockquote": "ExpandableBlockQuote",
    "code": "Code",
    "pre": "Pre",
}
_PREFIX = "textEntityType"
_BACK = {_PREFIX + td: name for name, td in _PLAIN.items()}
_MODES = {
    "html": {"@type": "textParseModeHTML"},
    "markdownv2": {"@type": "textParseModeMarkdown", "version": 2},
    "markdown": {"@type": "textParseModeMarkdown", "version": 1},
}


def execute(**request: Any) -> dict[str, Any]:
    """Ask the library. Raises what the Bot API would say to an error."""
    answer = json.loads(tdjson.td_execute(json.dumps(request).encode()) or b"")
    if answer["@type"] == "error":
        message = answer["message"]
        raise bad_request(message[:1].lower() + message[1:])
    return dict(answer)


execute(**{"@type": "setLogVerbosityLevel", "new_verbosity_level": 0})


def find_entities(text: str) -> list[Entity]:
    """Return what a server finds in a person's text by itself: mentions, commands, links."""
    found = execute(**{"@type": "getTextEntities", "text": text})["entities"]
    return [read for entity in found if (read := _from_td(entity))]


def parse(text: str, mode: str) -> tuple[str, list[Entity]]:
    if mode.lower() not in _MODES:
        raise bad_request("unsupported parse_mode")
    parsed = execute(
        **{"@type": "parseTextEntities", "text": text, "parse_mode": _MODES[mode.lower()]}
    )
    return parsed["text"], [read for entity in parsed["entities"] if (read := _from_td(entity))]


def require_sound(text: str, entities: list[Entity]) -> None:
    """Raise unless every entity lies in the text, between characters, and has a kind and a link that can be sent."""
    asked = [_to_td(entity) for entity in entities]
    whole = {"@type": "formattedText", "text": text, "entities": [e for e in asked if e]}
    # The request itself is of no use here: it is one of the few offline ones that check what they are given.
    execute(**{"@type": "getMarkdownText", "text": whole})


def _from_td(entity: dict[str, Any]) -> Entity | None:
    place = {"offset": entity["offset"], "length": entity["length"]}
    kind = entity["type"]
    match kind["@type"].removeprefix(_PREFIX):
        case "PreCode":
            return {"type": "pre", **place, "language": kind["language"]}
        case "TextUrl":
            return {"type": "text_link", **place, "url": kind["url"]}
    name = _BACK.get(kind["@type"])
    return {"type": name, **place} if name else None


def _to_td(entity: Entity) -> dict[str, Any] | None:
    place = {"@type": "textEntity", "offset": entity["offset"], "length": entity["length"]}
    match entity:
        case {"type": "pre", "language": language}:
            kind: dict[str, Any] = {"@type": _PREFIX + "PreCode", "language": language}
        case {"type": "text_link", "url": url}:
            kind = {"@type": _PREFIX + "TextUrl", "url": url}
        case {"type": "text_mention", "user": {"id": user_id}}:
            kind = {"@type": _PREFIX + "MentionName", "user_id": user_id}
        case {"type": "custom_emoji", "custom_emoji_id": emoji}:
            kind = {"@type": _PREFIX + "CustomEmoji", "custom_emoji_id": emoji}
        case {"type": "date_time"}:
            return None
        case {"type": str(name)} if name in _PLAIN:
            kind = {"@type": _PREFIX + _PLAIN[name]}
        case _:
            raise bad_request("can't parse MessageEntity: Unsupported type specified")
    return place | {"type": kind}
