"""What the blocks of a rich message say, as Markdown where that says more than plain text.

Pure, and deep nesting ends instead of raising. Source: protocols/telegram.md, section 4; Bot API 10.3, RichMessage.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from channels_app.messages import storable
from channels_app.telegram.marks import Entity, block_fences, fences, leading_to
from channels_app.telegram.wire import Node, objects

DEEPEST = 64  # levels; the Bot API nests blocks up to 16 deep, and the texts in them
MENTIONS = ("mention", "text_mention", "bot_command")
SOMEWHERE = -1  # the offset of what is marked in a rich text: its place is of no use to anybody


def text(message: Node) -> str:
    return _joined(message.node("rich_message"), DEEPEST)


def blocks(message: Node) -> Iterator[Node]:
    """Yield every block, those inside of others too. A block of media has the fields of a message with that file."""
    return (node for node in _nodes(message.value("rich_message"), DEEPEST) if node.has("type"))


def mentions(message: Node) -> Iterator[Entity]:
    for node in blocks(message):
        if node.text("type") in MENTIONS:
            covered = _written(node.value("text"), DEEPEST)
            user_id = node.node("user").number("id")
            yield Entity(node.text("type"), SOMEWHERE, SOMEWHERE, covered, user_id=user_id)


def _nodes(value: Any, levels: int) -> Iterator[Node]:
    if isinstance(value, Mapping):
        yield Node(value)
        value = list(value.values())
    if isinstance(value, list) and levels:
        for inner in value:
            yield from _nodes(inner, levels - 1)


def _joined(owner: Node, levels: int) -> str:
    shown = (_block(block, levels - 1) for block in owner.nodes("blocks")) if levels else ()
    return "\n\n".join(block.strip("\n") for block in shown if block.strip())


def _block(block: Node, levels: int) -> str:
    match block.text("type"):
        case "heading":
            return (
                f"{'#' * min(block.number('size') or 1, 6)} {_written(block.value('text'), levels)}"
            )
        case "pre":
            code = _written(block.value("text"), levels)
            return code.join(block_fences(code, block.text("language")))
        case "mathematical_expression":
            return f"${block.text('expression')}$"
        case "list":
            return "\n".join(_item(item, levels) for item in block.nodes("items"))
        case "table":
            cells = block.value("cells")
            rows = (_row(row, levels) for row in cells) if isinstance(cells, list) else ()
            return "\n".join((*rows, _written(block.value("caption"), levels)))
        case "blockquote" | "expandable_blockquote" | "pullquote":
            return "\n".join(f"> {line}" for line in _plain(block, levels).splitlines())
    return _plain(block, levels)


def _plain(block: Node, levels: int) -> str:
    """Return whatever texts a block has, in the order in which they are shown."""
    caption = block.node("caption")
    lines = (
        _written(block.value("summary"), levels),
        _written(block.value("text"), levels),
        _joined(block, levels),
        _written(caption.value("text"), levels),
        _written(caption.value("credit") or block.value("credit"), levels),
    )
    return "\n".join(line for line in lines if line.strip())


def _item(item: Node, levels: int) -> str:
    box = ("[x] " if item.flag("is_checked") else "[ ] ") if item.flag("has_checkbox") else ""
    inner = _joined(item, levels).replace("\n", "\n  ")
    return f"{item.text('label') or '-'} {box}{inner}"


def _row(row: Any, levels: int) -> str:
    return " | ".join(_written(cell.value("text"), levels) for cell in objects(row))


def _written(value: Any, levels: int) -> str:
    """Return a rich text, which is a text, a list of rich texts, or an object around one."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list) and levels:
        return "".join(_written(each, levels - 1) for each in value)
    if not isinstance(value, Mapping) or not levels:
        return ""
    node = Node(value)
    inner = _written(node.value("text"), levels - 1)
    match node.text("type"):
        case "url":
            return inner + leading_to(inner, node.text("url"))
        case "code":
            return inner.join(fences(inner))
        case "custom_emoji":
            return node.text("alternative_text")
        case "mathematical_expression":
            return f"${node.text('expression')}$"
        case "button":
            return f"[{_written(node.node('button').value('text'), levels - 1)}]"
    return inner
