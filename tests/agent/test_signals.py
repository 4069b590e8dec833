"""Reply signals: the word that says nothing is to be said is never delivered (DESIGN 5, B073)."""

import pytest

from nahida.agent.signals import TOKENS, showable, spoken


@pytest.mark.parametrize(
    "text",
    [
        "[SILENT]",
        "  [SILENT]\n",
        "**[SILENT]**",
        "NO_REPLY",
        "`NO_REPLY`",
        "_HEARTBEAT_OK_",
        "(NO_REPLY).",
        "“NO_REPLY”",
        "<b>NO_REPLY</b>",
        "```\nNO_REPLY\n```",
        '{"reply": "NO_REPLY"}',
        '```json\n{"answer": {"text": "HEARTBEAT_OK"}}\n```',
        "NO_REPLY\nNO_REPLY",
        "",
        " \n\u200b",
    ],
)
def test_it_delivers_nothing_when_only_a_signal_is_said(text: str):
    assert spoken(text) == ""


@pytest.mark.parametrize(
    ("text", "delivered"),
    [
        ("All good [SILENT] but disk 95 % full", "All good but disk 95 % full"),
        ("好的NO_REPLY", "好的"),
        ("Done.\n\nNO_REPLY", "Done."),
        ("NO_REPLYING is a word", "NO_REPLYING is a word"),
        ("no reply", "no reply"),
        ('{"a": "NO_REPLY", "b": "text"}', '{"a": " ", "b": "text"}'),
        ("  plain  ", "plain"),
    ],
)
def test_it_removes_a_signal_from_a_text_that_says_more(text: str, delivered: str):
    assert spoken(text) == delivered


@pytest.mark.parametrize("text", ["N", "NO_", "**NO_R", "[SIL", "HEART", '{"re', "```", "[SILENT]"])
def test_it_holds_back_a_draft_that_could_become_a_signal(text: str):
    assert showable(text) == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Hello", "Hello"),
        ("NOT yet", "NOT yet"),
        ("All good [SIL", "All good "),
        ("All good [SILENT] but", "All good but"),
        ("Now", "Now"),
    ],
)
def test_it_shows_a_draft_without_what_may_be_a_signal(text: str, shown: str):
    assert showable(text) == shown


@pytest.mark.parametrize("token", TOKENS)
def test_it_never_shows_a_part_of_a_signal_as_a_draft_grows(token: str):
    answer = f"Done. {token}"

    shown = [showable(answer[:length]) for length in range(len(answer) + 1)]

    assert max(shown, key=len).rstrip() == "Done."
