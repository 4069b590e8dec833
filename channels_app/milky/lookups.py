"""What an event leaves out of a message and only the protocol end can tell. It may not, and then the message stays as it is.

Ends before 1.2 name a quoted message by its number alone, and every end names forwarded messages by an id.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from channels_app.messages import Attachment, InboundMessage
from channels_app.milky.inbound import UNFINISHED
from channels_app.milky.segments import (
    DEEPEST,
    LONGEST_QUOTE,
    MOST_FILES,
    MOST_SEGMENTS,
    described,
    number,
    pieces,
    text,
    words,
)

MOST_ASKED = 6  # forwards of one message, those inside others included
LONGEST_FORWARD = 8000  # characters

# Calls an API and returns its data, {} if it will not tell.
Ask = Callable[..., Mapping[str, Any]]


def completed(message: InboundMessage, ask: Ask) -> InboundMessage:
    """Return the message with its quote and its forwards. Never raises."""
    unfinished = message.metadata.get(UNFINISHED)
    if not unfinished:
        return message
    metadata = {key: mark for key, mark in message.metadata.items() if key != UNFINISHED}
    message = replace(message, metadata=metadata)
    if where := unfinished.get("quoted"):
        found = ask("get_message", **where, message_seq=int(message.reply_to)).get("message")
        message = _quoting(message, found, self_id=unfinished["self_id"])
    return _unfolded(message, unfinished.get("forwards", {}), ask)


def _quoting(message: InboundMessage, found: Any, *, self_id: int) -> InboundMessage:
    quoted: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    said = words(quoted.get("segments"), iter(range(MOST_SEGMENTS)))
    is_ours = number(quoted, "sender_id") == self_id
    return replace(message, quote=said[:LONGEST_QUOTE], addressed=message.addressed or is_ours)


def _unfolded(message: InboundMessage, forwards: Mapping[str, str], ask: Ask) -> InboundMessage:
    unfolding = _Unfolding(ask)
    said = message.text
    for forward_id, shown in forwards.items():
        lines = list(unfolding.lines(forward_id, depth=1))
        if lines:
            head = shown.partition("\n")[0]
            whole = "\n".join([head, *lines])[:LONGEST_FORWARD]
            said = said.replace(shown, whole, 1)
    return replace(
        message,
        text=said,
        attachments=(*message.attachments, *unfolding.images)[:MOST_FILES],
    )


class _Unfolding:
    """One message's forwards: how much of them may still be read, and which pictures they held."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._calls = iter(range(MOST_ASKED))
        self._room = iter(range(MOST_SEGMENTS))
        self.images: list[Attachment] = []

    def lines(self, forward_id: str, *, depth: int) -> Iterator[str]:
        """Yield who said what; a forward in a forward is indented below the line that names it."""
        if not forward_id or depth > DEEPEST or next(self._calls, None) is None:
            return
        found = self._ask("get_forwarded_messages", forward_id=forward_id).get("messages")
        for message in found if isinstance(found, list) else ():
            if isinstance(message, Mapping) and next(self._room, None) is not None:
                yield from self._message(message, depth=depth)

    def _message(self, message: Mapping[str, Any], *, depth: int) -> Iterator[str]:
        segments = message.get("segments")
        said = [self._shown(piece) for piece in pieces(segments, self._room)]
        yield f"{text(message, 'sender_name') or '?'}: {''.join(said).strip()}"
        for inner in _forward_ids(segments):
            for line in self.lines(inner, depth=depth + 1):
                yield f"  {line}"

    def _shown(self, piece: str | Attachment) -> str:
        if isinstance(piece, str):
            return piece
        if piece.kind == "image":
            self.images.append(piece)
        return described(piece)


def _forward_ids(segments: Any) -> Iterator[str]:
    for segment in segments if isinstance(segments, list) else ():
        match segment:
            case {"type": "forward", "data": {"forward_id": str(forward_id)}}:
                yield forward_id
