"""A language model's Markdown as Telegram shows it: plain text, and entities that say what is bold, code or a link. Pure."""

import logging

from channels_app.markdown import links, render
from channels_app.markdown.marked import Marked
from channels_app.messages import OutboundPart, storable
from channels_app.telegram.entities import on_wire, tidied
from channels_app.telegram.links import is_link
from channels_app.telegram.parts import messages

logger = logging.getLogger(__name__)


def split(text: str) -> list[OutboundPart]:
    """Return the messages that a Markdown text becomes, in order, none of them blank."""
    text = storable(text)
    try:
        parts = list(messages(_rendered(text)))
    except Exception:  # the parser is not ours: an answer is worth more than its looks
        logger.exception("a text is sent as it was written")
        parts = []
    parts = parts or list(messages(Marked(text)))
    return [OutboundPart(part.text, markup=on_wire(part)) for part in parts]


def _rendered(text: str) -> Marked:
    return tidied(links.written_out(render(text), unless=is_link))
