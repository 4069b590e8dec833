import re

import pytest

from channels_app.addresses import AddressError, ChatAddress, SessionKey, classify

GROUP = ChatAddress("milky", "group", "20001")
BASE = SessionKey(GROUP)


# Text and parts


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        pytest.param("", "milky:group:20001", id="A31"),
        pytest.param("abcd1234", "milky:group:20001:abcd1234", id="A32"),
        pytest.param("cron:abc123", "milky:group:20001:cron:abc123", id="A33"),
    ],
)
def test_it_prints_the_suffix_behind_the_address(suffix, text):
    """A31-A33: the text of a key is its address, and behind it the suffix if there is one."""
    assert str(SessionKey(GROUP, suffix)) == text


def test_it_is_derived_with_a_suffix():
    """A34: without suffix not derived, with suffix derived."""
    assert not BASE.derived
    assert SessionKey(GROUP, "abcd1234").derived


@pytest.mark.parametrize(
    ("text", "address", "suffix"),
    [
        pytest.param("milky:group:20001", GROUP, "", id="A35"),
        pytest.param("milky:group:20001:abcd1234", GROUP, "abcd1234", id="A36"),
        pytest.param("milky:group:20001:cron:abc123", GROUP, "cron:abc123", id="A37"),
    ],
)
def test_it_reads_a_typed_key(text, address, suffix):
    """A35-A37: what follows the address is the suffix, whole."""
    key = SessionKey.parse(text)

    assert (key.address, key.suffix) == (address, suffix)
    assert str(key) == text


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        pytest.param("milky:10001", "", id="A38"),
        pytest.param("milky:unknown:10001", "", id="A39"),
        pytest.param("milky:unknown:10001:abcd1234", "abcd1234", id="A40"),
        pytest.param("milky:10001:abcd1234", "abcd1234", id="A41"),
        pytest.param("milky:10001:cron:job42", "cron:job42", id="A42"),
    ],
)
def test_it_reads_a_legacy_key(text, suffix):
    """A38-A42: no known type in the second segment is a legacy key; its own text is not lost."""
    key = SessionKey.parse(text)

    assert key.address == ChatAddress("milky", "unknown", "10001")
    assert key.suffix == suffix
    assert SessionKey.parse(str(key)) == key
    assert text in (str(key), key.legacy_key)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "empty", id="A43"),
        pytest.param("onlyone", "too few", id="A44"),
        pytest.param(":1", "empty channel", id="no-channel"),
        pytest.param("milky:", "empty id", id="no-id"),
        pytest.param("milky:1:", "empty part", id="empty-suffix"),
        pytest.param("milky:group:1:cron:", "empty part", id="empty-name"),
        pytest.param("milky:group:1::x", "empty part", id="empty-first-part"),
    ],
)
def test_it_refuses_text_that_is_no_key(text, reason):
    """A43, A44: empty text, too few segments or an empty part are errors that say so."""
    with pytest.raises(AddressError, match=reason):
        SessionKey.parse(text)


@pytest.mark.parametrize("text", ["webhook:a%3Ab:c%3Ad", "webhook:unknown:a%3Ab:c%3Ad"])
def test_it_never_decodes_a_legacy_key(text):
    """A legacy key is read and printed literally, so that its row is found by its own text."""
    key = SessionKey.parse(text)

    assert (key.address.target_id, key.suffix) == ("a%3Ab", "c%3Ad")
    assert text in (str(key), key.legacy_key)


def test_it_takes_format_words_in_the_ids_place_for_ids():
    """`x:cron:1` is chat `cron` of channel `x` with suffix `1`, not a cron session."""
    key = SessionKey.parse("x:cron:1")

    assert (key.address.target_id, key.suffix) == ("cron", "1")


# Classification


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param("milky:group:10001", "typed", id="A45"),
        pytest.param("milky:group:10001:abcd1234", "typed-derived", id="A46"),
        pytest.param("milky:10001", "legacy", id="A47"),
        pytest.param("milky:10001:abcd1234", "legacy-derived", id="A48"),
        pytest.param("onlyone", "invalid", id="A49"),
        pytest.param("telegram:group:-100:topic:42", "typed", id="A51"),
        pytest.param("telegram:group:-100:topic:42:abcd1234", "typed-derived", id="A52"),
        ("telegram:group:-100:42", "typed-derived"),
        ("milky:unknown:10001", "legacy"),
        ("milky:unknown:10001:abcd1234", "legacy-derived"),
        ("agent:task_aa11bb22cc33", "legacy"),
        ("webhook:group", "legacy"),
        ("__global__", "invalid"),
        ("", "invalid"),
        ("milky:", "invalid"),
        (":1", "invalid"),
        ("milky:1:", "invalid"),
        ("milky:group:" + "x" * 989, "invalid"),
    ],
)
def test_it_classifies_key_text(text, kind):
    """A45-A49, A51, A52: typed or legacy, derived or not; what does not parse is invalid."""
    assert classify(text) == kind


# Ours


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("milky:private:10002:9c5e96eb:subagent:task_x", "9c5e96eb:subagent:task_x"),
        ("milky:group:1:cron:j1:subagent:t1", "cron:j1:subagent:t1"),
    ],
)
def test_it_keeps_a_suffix_of_several_parts(text, suffix):
    """A50: a subagent of a derived session round-trips."""
    key = SessionKey.parse(text)

    assert key.suffix == suffix
    assert str(key) == text


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        pytest.param("telegram:group:-100:topic:42", "", id="A51"),
        pytest.param("telegram:group:-100:topic:42:abcd1234", "abcd1234", id="A52"),
    ],
)
def test_it_reads_a_topic_as_part_of_the_address(text, suffix):
    """A51, A52: `topic` and the part behind it are the thread, what follows is the suffix."""
    key = SessionKey.parse(text)

    assert key.address == ChatAddress("telegram", "group", "-100", "42")
    assert key.suffix == suffix
    assert key.chat_key == "telegram:group:-100"
    assert str(key) == text


def test_it_reads_the_old_topic_form_as_a_suffix():
    """A14: as a session key, the fourth part without a marker is a suffix."""
    key = SessionKey.parse("telegram:group:-100:42")

    assert (key.address.thread_id, key.suffix) == ("", "42")


@pytest.mark.parametrize("suffix", ["topic:42", "%74opic:42", "topic:42:abcd1234"])
def test_it_refuses_a_suffix_that_reads_as_a_topic(suffix):
    """A53: a suffix that begins with `topic:` in any spelling is an error."""
    with pytest.raises(AddressError, match="topic"):
        SessionKey(GROUP, suffix)


@pytest.mark.parametrize(
    "text", ["milky:10001:topic:42", "telegram:group:-100:topic:42:topic:7", "x:group:1:%74opic:7"]
)
def test_it_refuses_key_text_with_a_topic_in_the_suffix(text):
    """A53: such a suffix is refused when read, too."""
    with pytest.raises(AddressError, match="topic"):
        SessionKey.parse(text)


def test_it_reads_a_percent_that_is_no_escape_literally():
    """A54: in a suffix as in an id, and is printed so that it stays one."""
    key = SessionKey.parse("milky:group:100%:cron:5%")

    assert str(key) == "milky:group:100%25:cron:5%25"
    assert SessionKey.parse(str(key)) == key


def test_it_takes_every_spelling_of_a_suffix_for_one_session():
    """Equal sessions are equal values, whatever needless escapes their text held."""
    assert SessionKey(GROUP, "cron:%64aily%3a") == SessionKey(GROUP, "cron:daily%3A")


def test_it_keeps_sessions_apart_whose_glued_ids_are_alike():
    """X36, B001: chat `a:b` topic `c` and chat `a` topic `b:c` have two session keys."""
    first = SessionKey(ChatAddress("webx", "group", "a:b", "c"))
    second = SessionKey(ChatAddress("webx", "group", "a", "b:c"))

    assert first != second
    assert str(first) != str(second)
    assert [SessionKey.parse(str(key)) for key in (first, second)] == [first, second]


def test_it_keeps_a_topic_apart_from_a_suffix_of_the_same_text():
    """A2: topic `42` and suffix `42` of one group are two sessions."""
    topic = SessionKey(ChatAddress("telegram", "group", "-100", "42"))
    suffix = SessionKey(ChatAddress("telegram", "group", "-100"), "42")

    assert str(topic) != str(suffix)


@pytest.mark.parametrize("suffix", [":", "a:", ":a", "a::b"])
def test_it_refuses_a_suffix_with_an_empty_part(suffix):
    """An extra colon is an error, not a part without a name."""
    with pytest.raises(AddressError, match="empty part"):
        SessionKey(GROUP, suffix)


def test_it_refuses_a_suffix_with_a_lone_surrogate():
    """Half a character cannot be stored."""
    with pytest.raises(AddressError, match="lone surrogate"):
        SessionKey(GROUP, "\ud83d")


def test_it_refuses_a_key_of_more_than_a_thousand_bytes():
    """The limit holds for the whole key; the error tells its length."""
    longest = SessionKey(GROUP, "x" * (1000 - len("milky:group:20001:")))

    assert len(str(longest)) == 1000
    with pytest.raises(AddressError, match="1001 bytes"):
        SessionKey(GROUP, longest.suffix + "x")


# Keys we make


def test_it_leaves_the_suffix_out_of_the_base():
    """The base of a derived session is the session of its address, topic included."""
    key = SessionKey.parse("telegram:group:-100:topic:42:abcd1234")

    assert str(key.base) == "telegram:group:-100:topic:42"
    assert key.base.base == key.base


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("milky:10001", "milky:group:20001"),
        ("milky:10001:cron:j1:subagent:t1", "milky:group:20001:cron:j1:subagent:t1"),
        ("milky:10001:a%41", "milky:group:20001:a%2541"),
        ("milky:10001:aA", "milky:group:20001:aA"),
        ("milky:group:7:a%3Ab", "milky:group:20001:a%3Ab"),
    ],
)
def test_it_moves_to_another_address(text, moved):
    """X35: a rename keeps the suffix, and two legacy sessions never become one by their escapes."""
    assert str(SessionKey.parse(text).at(GROUP)) == moved


@pytest.mark.parametrize("suffix", ["", "abcd1234", "cron:daily"])
def test_it_makes_a_new_session_of_eight_hex_digits(suffix):
    """`/new` anywhere in a chat starts a session beside the present one."""
    key = SessionKey(GROUP, suffix).new()

    assert key.address == GROUP
    assert re.fullmatch("[0-9a-f]{8}", key.suffix)
    assert key != SessionKey(GROUP, suffix).new()


@pytest.mark.parametrize("suffix", ["", "abcd1234", "cron:daily"])
def test_it_makes_the_session_of_a_job(suffix):
    """A job's session hangs on the address, not on the session that made the job."""
    assert str(SessionKey(GROUP, suffix).cron("abc123")) == "milky:group:20001:cron:abc123"


@pytest.mark.parametrize(
    ("suffix", "made"),
    [
        ("", "subagent:task_x"),
        ("9c5e96eb", "9c5e96eb:subagent:task_x"),
        ("cron:j1", "cron:j1:subagent:task_x"),
    ],
)
def test_it_makes_the_session_of_a_subagent(suffix, made):
    """A50: a subagent's session hangs on the session that started it."""
    assert SessionKey(GROUP, suffix).subagent("task_x").suffix == made


@pytest.mark.parametrize("name", ["a:b", "a%3Ab", "100%", "topic:1", "每天 9 点", "\n"])
def test_it_holds_any_name_in_a_suffix(name):
    """X35: a job may be called anything; its name is one part of the suffix."""
    key = BASE.cron(name)

    assert len(key.suffix.split(":")) == 2
    assert SessionKey.parse(str(key)) == key
    assert BASE.cron("a:b") != BASE.cron("a%3Ab")


@pytest.mark.parametrize("make", [BASE.cron, BASE.subagent])
def test_it_refuses_a_made_session_without_a_name(make):
    """A job or task must be named."""
    with pytest.raises(AddressError, match="empty name"):
        make("")


def test_it_refuses_a_subagent_of_a_subagent():
    """The grammar has one subagent at most."""
    with pytest.raises(AddressError, match="starts none"):
        BASE.subagent("t1").subagent("t2")


@pytest.mark.parametrize("make", ["new", "cron", "subagent"])
def test_it_makes_no_session_of_an_untyped_chat(make):
    """New sessions are typed only."""
    arguments = [] if make == "new" else ["x"]

    with pytest.raises(AddressError, match="no chat type"):
        getattr(SessionKey.parse("milky:10001"), make)(*arguments)
