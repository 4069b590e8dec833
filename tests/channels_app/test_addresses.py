import dataclasses

import pytest

from channels_app.addresses import (
    MAX_KEY_BYTES,
    TARGET_TYPES,
    AddressError,
    ChatAddress,
    account,
)

GROUP = ChatAddress("milky", "group", "20001")
LEGACY = ChatAddress("milky", "unknown", "10001")


# Construction


def test_it_prints_channel_type_and_id():
    """A1: the text of an address is its three parts."""
    assert str(GROUP) == "milky:group:20001"


def test_it_marks_the_topic_in_the_text():
    """A2: a thread is printed behind `topic`, so that it cannot be read as a suffix."""
    assert str(ChatAddress("telegram", "group", "-100", "42")) == "telegram:group:-100:topic:42"


def test_it_prints_an_unknown_type_as_unknown():
    """A3: an untyped address prints the word `unknown` in the type's place."""
    assert str(LEGACY) == "milky:unknown:10001"


@pytest.mark.parametrize("target_type", ["private", "group", "channel", "thread"])
def test_it_is_typed_with_each_of_the_four_types(target_type):
    """A4: private, group, channel and thread are types."""
    assert ChatAddress("milky", target_type, "1").typed


def test_it_is_not_typed_when_unknown():
    """A5: `unknown` is no type."""
    assert not LEGACY.typed


@pytest.mark.parametrize("thread_id", ["", "42"])
def test_it_shares_the_chat_key_between_topics(thread_id):
    """A6: the chat key is the first three segments, the same for every topic of a group."""
    assert ChatAddress("telegram", "group", "-100", thread_id).chat_key == "telegram:group:-100"


def test_it_knows_the_key_the_old_bot_used():
    """A7: the legacy key of milky/group/20001 is `milky:20001`."""
    assert GROUP.legacy_key == "milky:20001"


def test_it_refuses_an_empty_channel():
    """A8: an empty channel is an error that names the channel."""
    with pytest.raises(AddressError, match="channel"):
        ChatAddress("", "group", "20001")


def test_it_refuses_an_empty_id():
    """A9: an empty id is an error that names the id."""
    with pytest.raises(AddressError, match="empty id"):
        ChatAddress("milky", "group", "")


def test_it_cannot_be_changed():
    """A10: changing a field is an error."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        GROUP.target_id = "7"  # type: ignore[misc]


def test_it_equals_an_address_of_the_same_parts():
    """A11: same parts are equal and hash alike."""
    same = ChatAddress("milky", "group", "20001")

    assert same == GROUP
    assert len({same, GROUP}) == 1


def test_it_differs_between_private_and_group_of_one_number():
    """A12: private 10001 and group 10001 are two chats."""
    private = ChatAddress("milky", "private", "10001")
    group = ChatAddress("milky", "group", "10001")

    assert private != group
    assert private.chat_key != group.chat_key
    assert private.legacy_key == group.legacy_key


@pytest.mark.parametrize("target_type", ["", "friend", "supergroup", "Group", "temp"])
def test_it_refuses_any_other_type(target_type):
    """A4: a word outside the four types is an error that lists them."""
    with pytest.raises(AddressError, match="private, group, channel, thread"):
        ChatAddress("milky", target_type, "1")


def test_it_refuses_a_topic_of_an_untyped_chat():
    """Only typed addresses have a thread."""
    with pytest.raises(AddressError, match="no chat type"):
        ChatAddress("milky", "unknown", "10001", "42")


@pytest.mark.parametrize("field", ["channel", "target_id", "thread_id"])
def test_it_refuses_a_lone_surrogate(field):
    """Half a character cannot be stored: an error, which itself can be printed."""
    with pytest.raises(AddressError, match="lone surrogate") as caught:
        dataclasses.replace(GROUP, **{field: "a\ud83d"})

    assert str(caught.value).encode()


def test_it_takes_text_of_a_thousand_bytes():
    """The longest address is 1,000 bytes of printed text."""
    longest = "x" * (MAX_KEY_BYTES - len("milky:group:"))

    assert len(str(ChatAddress("milky", "group", longest))) == 1000


@pytest.mark.parametrize(
    ("target_id", "size"),
    [("x" * 989, 1001), ("界" * 330, 1002), (":" * 330, 1002)],
)
def test_it_refuses_longer_text_with_its_length(target_id, size):
    """One byte more is an error that tells the length in bytes, escapes included."""
    with pytest.raises(AddressError, match=f"{size} bytes"):
        ChatAddress("milky", "group", target_id)


def test_it_moves_between_the_topics_of_a_chat():
    """The address of another topic is the same chat; "" leaves the topic."""
    topic = ChatAddress("telegram", "group", "-100", "42")

    assert str(topic.with_thread("7")) == "telegram:group:-100:topic:7"
    assert str(topic.with_thread("")) == topic.chat_key


# Parsing


@pytest.mark.parametrize(
    ("text", "parts", "typed"),
    [
        pytest.param("milky:group:20001", ("milky", "group", "20001", ""), True, id="A13"),
        pytest.param("telegram:group:-100:42", ("telegram", "group", "-100", "42"), True, id="A14"),
        pytest.param(
            "telegram:group:-100:topic:42", ("telegram", "group", "-100", "42"), True, id="A14-ours"
        ),
        pytest.param("milky:10001", ("milky", "unknown", "10001", ""), False, id="A15"),
        pytest.param("milky:unknown:10001", ("milky", "unknown", "10001", ""), False, id="A16"),
        pytest.param("milky:10001:abcd1234", ("milky", "unknown", "10001", ""), False, id="A18"),
        pytest.param(
            "telegram:private:123456", ("telegram", "private", "123456", ""), True, id="A19"
        ),
        pytest.param("telegram:channel:news", ("telegram", "channel", "news", ""), True, id="A20"),
        pytest.param("discord:thread:99", ("discord", "thread", "99", ""), True, id="A21"),
    ],
)
def test_it_reads_an_address(text, parts, typed):
    """A13-A16, A18-A21: the parts of an address text, and whether it is typed."""
    address = ChatAddress.parse(text)

    assert dataclasses.astuple(address) == parts
    assert address.typed is typed


def test_it_prints_the_old_topic_form_with_its_marker():
    """A14: the four-part form is only read; it is printed with `topic`."""
    assert str(ChatAddress.parse("telegram:group:-100:42")) == "telegram:group:-100:topic:42"


@pytest.mark.parametrize("text", ["milky:10001", "milky:unknown:10001", "milky:10001:abcd1234"])
def test_it_reads_the_text_of_an_unknown_address_as_the_same_address(text):
    """A17: text of an unknown address parses back to the same."""
    address = ChatAddress.parse(text)

    assert ChatAddress.parse(str(address)) == address == LEGACY


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "empty", id="A22"),
        pytest.param("onlyone", "too few", id="A23"),
        pytest.param("__global__", "too few", id="A23-global"),
        pytest.param(":10001", "empty channel", id="A24"),
        pytest.param(":::", "empty channel", id="only-colons"),
        pytest.param("milky:", "empty id", id="no-id"),
        pytest.param("milky:group:", "empty id", id="typed-without-id"),
        pytest.param("milky:unknown:", "empty id", id="unknown-without-id"),
        pytest.param("milky:unknown::abcd1234", "empty id", id="old-row-without-id"),
        pytest.param("milky:1:", "empty part", id="empty-suffix"),
        pytest.param("telegram:group:-100:topic:", "empty part", id="empty-topic"),
        pytest.param("milky:gr\udc80up:1", "lone surrogate", id="surrogate"),
        pytest.param("milky:group:1:cron:j1", "session key", id="session-key"),
        pytest.param("telegram:group:-100:topic:42:abcd1234", "session key", id="topic-session"),
    ],
)
def test_it_refuses_text_that_is_no_address(text, reason):
    """A22-A24: empty text, too few parts, an empty part or a session key are errors that say so."""
    with pytest.raises(AddressError, match=reason):
        ChatAddress.parse(text)


@pytest.mark.parametrize("word", TARGET_TYPES)
def test_it_reads_a_type_word_without_an_id_as_a_legacy_id(word):
    """A chat whose id is a type word had the two-segment key `webhook:group`: legacy."""
    address = ChatAddress.parse(f"webhook:{word}")

    assert (address.target_type, address.target_id) == ("unknown", word)
    assert ChatAddress.parse(str(address)) == address


def test_it_keeps_case():
    """`Milky:1` and `milky:1` are two chats."""
    assert ChatAddress.parse("Milky:1") != ChatAddress.parse("milky:1")


# From an inbound message


@pytest.mark.parametrize(
    ("target_type", "is_group", "expected", "typed"),
    [
        pytest.param("group", False, "group", True, id="A25"),
        pytest.param("private", False, "private", True, id="A26"),
        pytest.param(None, True, "group", True, id="A27"),
        pytest.param("", True, "group", True, id="A27-empty"),
        pytest.param(None, False, "unknown", False, id="A28"),
        pytest.param("", False, "unknown", False, id="A28-empty"),
        pytest.param("private", True, "private", True, id="A29"),
        pytest.param("unknown", False, "unknown", False, id="A30"),
        pytest.param("unknown", True, "unknown", False, id="A30-group-flag"),
    ],
)
def test_it_takes_the_type_an_inbound_message_states(target_type, is_group, expected, typed):
    """A25-A30: a stated type wins over the group flag; nothing known is unknown, never private."""
    address = ChatAddress.of("milky", target_type, "10001", is_group=is_group)

    assert address == ChatAddress("milky", expected, "10001")
    assert address.typed is typed


def test_it_keeps_the_topic_of_an_inbound_message():
    """The thread of an inbound message is part of its address."""
    address = ChatAddress.of("telegram", "group", "-100", thread_id="42")

    assert str(address) == "telegram:group:-100:topic:42"


# Escapes


@pytest.mark.parametrize(
    ("target_id", "printed"),
    [
        ("a:b", "a%3Ab"),
        ("%41", "%2541"),
        ("100%", "100%25"),
        ("a\nb", "a%0Ab"),
        ("\x00", "%00"),
        ("\x7f", "%7F"),
        ("\x85", "%C2%85"),
        ("\u2028\u2029", "%E2%80%A8%E2%80%A9"),
        ("/ 群 😀\u00a0", "/ 群 😀\u00a0"),
    ],
)
def test_it_escapes_what_would_break_a_key(target_id, printed):
    """X35: percent, colon, C0, DEL, C1, U+2028/2029 print as UTF-8 bytes, the rest as is."""
    address = ChatAddress("milky", "group", target_id)

    assert str(address) == f"milky:group:{printed}"
    assert ChatAddress.parse(str(address)) == address


@pytest.mark.parametrize(
    ("text", "target_id"),
    [
        ("100%", "100%"),
        ("%4", "%4"),
        ("%zz", "%zz"),
        ("%ff", "%ff"),
        ("%E2%80", "%E2%80"),
        ("%ED%A0%80", "%ED%A0%80"),
        ("%C0%80", "%C0%80"),
        ("%FF%41%e2%82%ac%fe", "%FFA€%fe"),
    ],
)
def test_it_reads_a_percent_that_is_no_escape_literally(text, target_id):
    """A54: `%` not followed by two hex digits, or by bytes that are no UTF-8, means itself."""
    address = ChatAddress.parse(f"milky:group:{text}")

    assert address.target_id == target_id
    assert ChatAddress.parse(str(address)) == address


def test_it_reads_every_spelling_of_an_id_as_one_address():
    """Typed text is looked up as `str(parse(text))`: needless escapes and hex case do not count."""
    spellings = ["milky:group:a%3Ab", "milky:group:a%3ab", "mil%6By:group:%61%3Ab"]

    assert {str(ChatAddress.parse(text)) for text in spellings} == {"milky:group:a%3Ab"}


@pytest.mark.parametrize("text", ["webhook:a%3Ab", "webhook:unknown:a%3Ab"])
def test_it_never_decodes_legacy_text(text):
    """The old bot escaped nothing: a percent in an untyped id means itself, in and out."""
    address = ChatAddress.parse(text)

    assert address.target_id == "a%3Ab"
    assert text in (str(address), address.legacy_key)


def test_it_prints_a_colon_of_an_untyped_id_apart_from_all_legacy_text():
    """X35: an untyped id with a colon round-trips too, and no old text reads as it."""
    room = ChatAddress.of("matrix", None, "!room:example.org")

    assert str(room) == "matrix:unknown::!room%3Aexample.org"
    assert ChatAddress.parse(str(room)) == room
    assert ChatAddress.parse("matrix:!room:example.org") != room
    assert ChatAddress.parse("matrix:unknown:!room%3Aexample.org") != room


@pytest.mark.parametrize("rest", ["plain", "a%3ab", "%61%3Ab", "%41"])
def test_it_refuses_any_other_text_behind_an_empty_id(rest):
    """An old row with an empty id is invalid, whatever suffix follows."""
    with pytest.raises(AddressError, match="empty id"):
        ChatAddress.parse(f"matrix:unknown::{rest}")


def test_it_keeps_chats_apart_whose_glued_ids_are_alike():
    """X36, B001: chat `a:b` topic `c` and chat `a` topic `b:c` are two chats and two texts."""
    first = ChatAddress("webx", "group", "a:b", "c")
    second = ChatAddress("webx", "group", "a", "b:c")

    assert str(first) == "webx:group:a%3Ab:topic:c"
    assert str(second) == "webx:group:a:topic:b%3Ac"
    assert first.chat_key != second.chat_key


# Addresses and accounts we make


def test_it_names_the_chat_of_a_web_user():
    """The web page's chats are `web:private:<user pk>`."""
    assert str(ChatAddress.web(7)) == "web:private:7"


def test_it_names_the_chat_of_an_api_user():
    """The API's chats are `api:private:<key id>.<user>`, whatever the user is called."""
    address = ChatAddress.api(3, user="bob:x.y")

    assert str(address) == "api:private:3.bob%3Ax.y"
    assert ChatAddress.parse(str(address)) == address


def test_it_refuses_an_api_chat_without_a_user():
    """Without a user an API turn keeps no session, so it has no chat."""
    with pytest.raises(AddressError, match="no user"):
        ChatAddress.api(3, user="")


def test_it_names_the_account_of_a_sender():
    """An account is `<channel>:user:<id>`, escaped like an address."""
    assert account("milky", "10001") == "milky:user:10001"
    assert account("matrix", "@bob:example.org") == "matrix:user:@bob%3Aexample.org"


@pytest.mark.parametrize(
    ("channel", "user_id", "reason"),
    [
        ("", "1", "empty channel"),
        ("milky", "", "empty id"),
        ("milky", "\udc80", "lone surrogate"),
        ("milky", "x" * 1000, "1011 bytes"),
    ],
)
def test_it_refuses_an_account_that_names_nobody(channel, user_id, reason):
    """An account needs a channel and an id that can be stored."""
    with pytest.raises(AddressError, match=reason):
        account(channel, user_id)
