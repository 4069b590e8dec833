"""Which memory a session writes to and may read."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels_app.addresses import TARGET_TYPES, ChatAddress, SessionKey
from memory_app.models import ItemKind
from memory_app.scopes import (
    CHAT_KINDS,
    GLOBAL,
    SHARED_KINDS,
    Scope,
    ScopeError,
    readable,
    scope_for,
    scope_of,
)

GROUP = Scope("chat", "milky:group:20001")

ADDRESSES = st.builds(
    ChatAddress,
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
    st.sampled_from(TARGET_TYPES),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("milky:group:20001", GROUP),
        ("milky:group:20001:cron:abc", GROUP),
        ("milky:group:20001:abcd1234", GROUP),
        ("milky:group:20001:topic:7:abcd1234", GROUP),
        ("milky:private:20001", Scope("chat", "milky:private:20001")),
        ("telegram:group:-100:42", Scope("chat", "telegram:group:-100")),
    ],
)
def test_it_gives_a_typed_session_the_scope_of_its_chat(text: str, expected: Scope):
    """M1, M3: suffix and topic do not matter, the type does."""
    assert scope_of(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("milky:20001", "milky:20001:abcd1234", "milky:unknown:20001", "milky:20001:cron:abc"),
        *(
            "",
            "onlyone",
            ":",
            ":1",
            "milky:group:",
            "milky::1",
            "milky:group:1::x",
            "\ud800:group:1",
        ),
        "milky:group:" + "1" * 2_000,
    ],
)
def test_it_gives_any_other_session_id_the_global_scope(text: str):
    """M2, M11: bare, empty or malformed is global and no error."""
    assert scope_of(text) == GLOBAL


@given(st.text(max_size=40))
def test_it_resolves_any_text(text: str):
    """The resolver is total, and what it makes of a chat's scope is itself."""
    scope = scope_of(text)

    assert scope == GLOBAL or scope_of(scope.scope_id) == scope


@given(ADDRESSES, ADDRESSES)
def test_it_keeps_chats_apart(one: ChatAddress, other: ChatAddress):
    """Two chats share a scope only if they are one chat, and neither may read the other's."""
    mine = scope_for(SessionKey(one), kind="fact")
    theirs = readable(SessionKey(other))

    assert (mine in theirs) == (one.chat_key == other.chat_key)
    assert scope_of(str(SessionKey(one).new())) == mine


@pytest.mark.parametrize("kind", ["preference", "fact", "task"])
def test_it_stores_what_a_chat_says_of_itself_in_the_chat(kind: str):
    """M4, M6, M7; a session beside the base one, or of a topic, has the chat's scope."""
    key = SessionKey.parse("milky:group:20001:topic:7:cron:abc")

    assert scope_for(key, kind=kind) == GROUP


@pytest.mark.parametrize("kind", ["decision", "procedure", "warning", "summary"])
@pytest.mark.parametrize("text", ["milky:group:20001", "milky:20001"])
def test_it_shares_what_is_for_all(kind: str, text: str):
    """M5, M8, M9, M10."""
    assert scope_for(SessionKey.parse(text), kind=kind) == GLOBAL


@pytest.mark.parametrize("kind", ["", "Fact", "secret"])
def test_it_refuses_an_unknown_kind(kind: str):
    """A kind nobody decided about is not shared by accident."""
    with pytest.raises(ScopeError, match="is no kind of memory"):
        scope_for(SessionKey.parse("milky:group:20001"), kind=kind)


@pytest.mark.parametrize("kind", CHAT_KINDS)
def test_it_refuses_to_share_what_an_untyped_chat_says_of_itself(kind: str):
    """Global would show one chat's words to all others."""
    with pytest.raises(ScopeError, match=r"milky:unknown:10001.*has no chat type"):
        scope_for(SessionKey.parse("milky:10001"), kind=kind)


def test_it_lets_a_chat_read_its_own_before_the_shared():
    """The group's session reads the group's scope, then global, and not its namesake's."""
    scopes = readable(SessionKey.parse("milky:group:20001:abcd1234"))

    assert scopes == (GROUP, GLOBAL)


def test_it_lets_an_untyped_session_read_the_shared_only():
    """A key without a type names no chat, so it reads no chat's memory."""
    assert readable(SessionKey.parse("milky:10001")) == (GLOBAL,)


@pytest.mark.parametrize(
    ("scope_type", "scope_id"),
    [
        *(("chat", ""), ("global", ""), ("", ""), ("", "milky:group:20001")),
        *(("user", "milky:user:1"), ("Chat", "milky:group:20001"), ("global", "milky:group:20001")),
    ],
)
def test_it_refuses_a_scope_that_is_none(scope_type: str, scope_id: str):
    """An empty or unknown scope is an error wherever one is named, not a search of everything."""
    with pytest.raises(ScopeError):
        Scope(scope_type, scope_id)


def test_it_cannot_be_changed():
    """A scope once resolved stays."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        GROUP.scope_id = "milky:group:1"  # type: ignore[misc]


def test_it_names_every_kind_of_item_once():
    """A new kind of item has to be given a place."""
    assert sorted((*CHAT_KINDS, *SHARED_KINDS)) == sorted(ItemKind.values)
