"""A language model's Markdown as QQ shows it, which is letter by letter: no marks, links written out. Pure."""

import logging

from channels_app.markdown import render
from channels_app.markdown.links import written_out
from channels_app.messages import storable

logger = logging.getLogger(__name__)


def flattened(markdown: str) -> str:
    markdown = storable(markdown)
    try:
        text = written_out(render(markdown), unless=lambda url: False).text
    except Exception:  # the parser is not ours: an answer is worth more than its looks
        logger.exception("a text is sent as it was written")
        text = markdown
    return text.strip()
