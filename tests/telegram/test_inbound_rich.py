"""A message of blocks is read as the text that a person sees, with its pictures and its mentions."""

from typing import Any

from channels_app.messages import InboundMessage, Skipped, WireEvent
from channels_app.telegram.inbound import Me, parse
from tests.telegram import contents
from tests.telegram.contents import paragraph

SHOWN = """\
## Plan

for us, see here (https://e.org/x)🌱, ask @nahida_bot

```python
x = 1
```

1. tea
2. [x] milk

a | `b`

> said once
> Somebody

More
x

$a^2$

a view
[location 52.50000, 13.40000]"""


def event(*blocks: Any) -> WireEvent:
    update = contents.update({"rich_message": {"blocks": list(blocks)}})
    return parse(update, channel="telegram", me=Me(42000001, "nahida_bot"))


def message(*blocks: Any) -> InboundMessage:
    found = event(*blocks)
    assert isinstance(found, InboundMessage), found
    return found


def test_it_reads_every_kind_of_block() -> None:
    assert message(*contents.RICH["blocks"]).text == SHOWN


def test_it_finds_the_files_of_blocks() -> None:
    gallery = {"type": "collage", "blocks": [{"type": "photo", "photo": contents.PHOTO}]}

    found = message(gallery, {"type": "voice_note", "voice_note": contents.VOICE})

    assert [(file.kind, file.platform_id) for file in found.attachments] == [
        ("image", "id-large"),
        ("voice", "id-voice"),
    ]


def test_it_is_addressed_by_its_name_in_a_block() -> None:
    bold = {"type": "bold", "text": {"type": "mention", "text": "@Nahida_bot"}}
    quoted = {"type": "blockquote", "blocks": [paragraph("ask ", bold)]}

    assert message(quoted).addressed
    assert not message(paragraph("ask @nahida_bot")).addressed


def test_it_is_addressed_by_its_number_in_a_block() -> None:
    named = {"type": "text_mention", "text": "you", "user": {"id": 42000001, "is_bot": True}}

    assert message(paragraph(named)).addressed


def test_it_takes_a_command_out_of_a_block() -> None:
    command = {"type": "bot_command", "text": "/ask@nahida_bot", "bot_command": "/ask"}

    found = message(paragraph(command, " why"))

    assert (found.addressed, found.text) == (True, "/ask why")


def test_it_skips_a_message_of_blocks_that_show_nothing() -> None:
    assert isinstance(event({"type": "divider"}, {"type": "anchor", "name": "a"}), Skipped)


def test_it_does_not_drown_in_blocks_of_blocks() -> None:
    """Nor in texts of texts: what is deeper than any message goes is left out."""
    text: Any = "deep"
    texts: Any = "deep"
    block: Any = paragraph("deep")
    for _ in range(900):
        text = {"type": "bold", "text": [text]}
        texts = [texts]
        block = {"type": "details", "summary": "x", "blocks": [block]}

    found = message(paragraph("high", text, texts), block)

    assert found.text.startswith("high\n\nx")
    assert "deep" not in found.text
