"""What list A shows by example, for every value and every text (X35)."""

from itertools import product

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from channels_app.addresses import (
    TARGET_TYPES,
    UNKNOWN,
    AddressError,
    ChatAddress,
    SessionKey,
    account,
    classify,
)

# A busy machine is no fault of the grammar.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Pieces the grammar itself is made of, so that chance finds what collides.
TOKENS = [
    *(":", "%", "%3A", "%3a", "%25", "%2", "%41", "%FF", "%E2%80%A8", "%74opic", "topic", "cron"),
    *("subagent", "a", "A", "1", "-100", "abcd1234", " ", "/", "\n", "\x00", "\x7f", "\x85"),
    *("\u2028", "群", "😀", UNKNOWN, *TARGET_TYPES),
]

segment = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=2).map("".join)
key_text = st.builds(
    lambda channel, word, rest: ":".join([channel, word, *rest]),
    segment,
    st.sampled_from([*TARGET_TYPES, UNKNOWN]) | segment,
    st.lists(st.just("topic") | segment | segment | segment, max_size=4),
)
any_text = key_text | key_text | key_text | st.text(max_size=40)
part = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=4).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40
)
typed_addresses = st.builds(
    ChatAddress, part, st.sampled_from(TARGET_TYPES), part, st.just("") | part
)
untyped_addresses = st.builds(ChatAddress, part, st.just(UNKNOWN), part)
addresses = typed_addresses | untyped_addresses


@st.composite
def session_keys(draw):
    address = draw(addresses)
    suffix = draw(st.just("") | st.lists(part, min_size=1, max_size=3).map(":".join))
    try:
        return SessionKey(address, suffix)
    except AddressError:
        assume(False)


def parsed(read, text):
    try:
        return read(text)
    except AddressError:
        return None


@unhurried
@given(addresses)
def test_it_reads_back_every_address(address):
    """X35: parse of an address's text gives the address back."""
    assert ChatAddress.parse(str(address)) == address


@unhurried
@given(session_keys())
def test_it_reads_back_every_key(key):
    """X35: parse of a key's text gives the key back."""
    assert SessionKey.parse(str(key)) == key


@unhurried
@given(addresses)
def test_it_reads_an_address_alike_as_a_key(address):
    """X35: the text of an address is also the text of its base session, and of nothing else."""
    assert SessionKey.parse(str(address)) == SessionKey(address)


@unhurried
@given(typed_addresses)
def test_it_takes_every_typed_address_as_a_target(address):
    """A55: what we print of a typed address is accepted where a target is asked for."""
    assert ChatAddress.target(str(address)) == address


@unhurried
@given(addresses)
def test_it_prints_a_chat_key_that_reads_as_the_chat(address):
    """A6: the chat key is the text of the same address without its topic."""
    assert ChatAddress.parse(address.chat_key) == address.with_thread("")


@unhurried
@given(typed_addresses)
def test_it_prints_typed_text_on_one_line(address):
    """X35: no control character survives in typed text."""
    assert len(str(address).splitlines()) == 1


def test_it_never_prints_two_values_alike():
    """X35: exhaustively over parts that are made to collide."""
    parts = ["a", ":", "a:b", "%", "%3A", "a%3Ab", "%253A", "topic", UNKNOWN, "group", "unknown:a"]
    threads = ["", "a", "topic", ":", "%3A"]
    suffixes = ["", "a", "topic", "%3A", "a%3Ab", "a:b", "group:a", "unknown:a", "cron:a"]
    chats = [ChatAddress(*x) for x in product(parts, ("group", "private", UNKNOWN), parts)]
    addresses = {c.with_thread(thread) for c in chats for thread in (threads if c.typed else [""])}
    keys = {SessionKey(address, suffix) for address in addresses for suffix in suffixes}

    assert len({str(address) for address in addresses}) == len(addresses)
    assert len({str(key) for key in keys}) == len(keys)


@pytest.mark.parametrize("character", list(":%/ \t\n\x00\x7f\x85\u2028群😀é"))
@pytest.mark.parametrize("target_type", [*TARGET_TYPES, UNKNOWN])
def test_it_reads_back_ids_of_any_characters(character, target_type):
    """X35: an id may begin with, end with, hold or be nothing but any character."""
    for target_id in (character, f"{character}a", f"a{character}", f"a{character}b", character * 9):
        address = ChatAddress("webx", target_type, target_id)

        assert ChatAddress.parse(str(address)) == address
        assert SessionKey.parse(f"{address}:abcd1234") == SessionKey(address, "abcd1234")


@pytest.mark.parametrize("target_type", [*TARGET_TYPES, UNKNOWN])
def test_it_reads_back_an_id_of_five_hundred_characters(target_type):
    """X35: a long id is kept whole."""
    address = ChatAddress("webx", target_type, "x:" * 125 + "y" * 250)

    assert ChatAddress.parse(str(address)) == address


@unhurried
@given(any_text)
@example("milky:unknown::a%3Ab:c")
@example("milky:group:1:%74opic:42")
def test_it_prints_what_it_read_in_one_lasting_form(text):
    """X35: `str(parse(text))` of any text is stable: a stored text is found by itself."""
    for read in (ChatAddress.parse, SessionKey.parse):
        value = parsed(read, text)
        assume(value is not None)

        assert read(str(value)) == value
        assert str(read(str(value))) == str(value)


@unhurried
@given(any_text)
def test_it_classifies_as_it_parses(text):
    """A45-A49: classify says invalid exactly of what does not parse, and else what it parsed."""
    key = parsed(SessionKey.parse, text)

    if key is None:
        assert classify(text) == "invalid"
        return
    word = "typed" if key.address.typed else "legacy"
    assert classify(text) == (f"{word}-derived" if key.suffix else word)


@unhurried
@given(any_text)
def test_it_keeps_legacy_text_byte_for_byte(text):
    """A38-A42: an untyped text is the printed form or the legacy key of what it parses to."""
    key = parsed(SessionKey.parse, text)
    assume(key is not None and not key.typed)

    assert text in (str(key), key.legacy_key)


@unhurried
@given(any_text)
def test_it_calls_text_typed_only_by_its_second_segment(text):
    """A28: nothing but a known word in the type's place makes a chat private or a group."""
    key = parsed(SessionKey.parse, text)
    assume(key is not None)

    second = text.split(":")[1]
    assert key.address.target_type in (second, UNKNOWN)


@unhurried
@given(any_text)
@example("milky:10001")
@example("telegram:group:-100:42")
def test_it_takes_no_target_but_a_typed_address(text):
    """A55: a target is a typed key without a suffix, read alike; all else is AddressError."""
    key = parsed(SessionKey.parse, text)

    if key is None or not key.typed or key.derived:
        with pytest.raises(AddressError):
            ChatAddress.target(text)
        return
    assert ChatAddress.target(text) == ChatAddress.parse(text) == key.address


@unhurried
@given(session_keys())
def test_it_takes_no_derived_key_as_a_target(key):
    """A55: the text of a derived session is refused."""
    assume(key.derived)

    with pytest.raises(AddressError):
        ChatAddress.target(str(key))


@unhurried
@given(session_keys(), part, part)
def test_it_makes_different_sessions_of_different_names(key, name, other):
    """X35: no two jobs of a chat share a session, whatever they are called."""
    assume(key.typed and name != other)

    assert str(key.cron(name)) != str(key.cron(other))
    assert SessionKey.parse(str(key.cron(name))) == key.cron(name)


@unhurried
@given(part, part, part, part)
def test_it_gives_different_people_different_accounts(channel, user_id, other_channel, other_id):
    """X35: accounts never collide either."""
    assume((channel, user_id) != (other_channel, other_id))

    assert account(channel, user_id) != account(other_channel, other_id)


@unhurried
@given(untyped_addresses, typed_addresses, part, part)
def test_it_keeps_sessions_apart_that_move_together(old, new, suffix, other):
    """X35: sessions of one legacy chat stay different sessions when their chat gets its type."""
    assume(suffix != other)
    keys = [parsed(lambda text: SessionKey(old, text), text) for text in (suffix, other)]
    assume(None not in keys)

    moved = {key.at(new) for key in keys}

    assert len(moved) == 2
    assert {SessionKey.parse(str(key)) for key in moved} == moved
