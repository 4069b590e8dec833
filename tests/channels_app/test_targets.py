import pytest

from channels_app.addresses import AddressError, ChatAddress

EXAMPLE = "write <channel>:<type>:<id>, for example milky:group:20001"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("milky:private:10001", ChatAddress("milky", "private", "10001")),
        ("milky:group:10001", ChatAddress("milky", "group", "10001")),
        ("telegram:group:-100:topic:42", ChatAddress("telegram", "group", "-100", "42")),
        ("webx:group:a%3Ab:topic:c%3Ad", ChatAddress("webx", "group", "a:b", "c:d")),
    ],
)
def test_it_takes_a_typed_address(text, address):
    """A target is the text of a typed address, with or without a topic."""
    assert ChatAddress.target(text) == address


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "10001",
            '"10001" has no channel and no chat type: '
            "write <channel>:private:10001 or <channel>:group:10001",
        ),
        (
            "milky:10001",
            '"milky:10001" has no chat type: write milky:private:10001 or milky:group:10001',
        ),
        ("group:7788", '"group:7788" has no channel: write <channel>:group:7788'),
        ("", f"the target is missing: {EXAMPLE}"),
        (None, f"the target is missing: {EXAMPLE}"),
        ("milky:", '"milky:" has an empty id: write milky:private:<id> or milky:group:<id>'),
        (":::", f'":::" has an empty channel: {EXAMPLE}'),
        ("milky:group:", '"milky:group:" has an empty id: write milky:group:<id>'),
        ("group:", '"group:" has no channel: write <channel>:group:<id>'),
        ("milky:group", '"milky:group" has no id: write milky:group:<id>'),
    ],
)
def test_it_says_what_an_incomplete_target_lacks(text, message):
    """B010: part of a target is refused with what is missing and the right form, never guessed."""
    with pytest.raises(AddressError) as caught:
        ChatAddress.target(text)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "milky:unknown:10001",
            '"milky:unknown:10001" has no chat type: '
            "write milky:private:10001 or milky:group:10001",
        ),
        (
            "milky:10001:abcd1234",
            '"milky:10001:abcd1234" has no chat type: '
            "write milky:private:10001 or milky:group:10001",
        ),
        (
            "milky:friend:10001",
            '"milky:friend:10001" has no chat type, "friend" is none: '
            "write milky:private:10001 or milky:group:10001",
        ),
    ],
)
def test_it_refuses_an_untyped_target(text, message):
    """A55: an untyped address in any spelling is refused with the typed forms."""
    with pytest.raises(AddressError) as caught:
        ChatAddress.target(text)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "milky:group:1:abcd1234",
            '"milky:group:1:abcd1234" is a session key or an old topic address: write '
            "milky:group:1 for the chat or milky:group:1:topic:abcd1234 for its topic",
        ),
        (
            "telegram:group:-100:42",
            '"telegram:group:-100:42" is a session key or an old topic address: write '
            "telegram:group:-100 for the chat or telegram:group:-100:topic:42 for its topic",
        ),
        (
            "milky:group:1:cron:j1",
            '"milky:group:1:cron:j1" is a session key: write milky:group:1',
        ),
        (
            "telegram:group:-100:topic:42:abcd1234",
            '"telegram:group:-100:topic:42:abcd1234" is a session key: '
            "write telegram:group:-100:topic:42",
        ),
        (
            "telegram:group:-100:topic",
            '"telegram:group:-100:topic" has no topic: '
            "write telegram:group:-100 or telegram:group:-100:topic:<topic>",
        ),
    ],
)
def test_it_refuses_session_keys_and_the_old_topic_form(text, message):
    """A55: a session key or the four-part topic form is refused with the right form."""
    with pytest.raises(AddressError) as caught:
        ChatAddress.target(text)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "milky:\n\x1b[31m\udc80", "milky:group:" + "x" * 9_000]
)
def test_it_answers_hostile_text_in_one_short_line(text):
    """A55: the error of long or unprintable text can be shown in a log or to a model."""
    with pytest.raises(AddressError) as caught:
        ChatAddress.target(text)

    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()
