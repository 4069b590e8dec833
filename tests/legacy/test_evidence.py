"""What is proposed for an old session: only what something names, and never that it is private."""

import pytest

from nahida.legacy.proposals import Evidence
from tests.legacy.families import BASE, GROUP, PRIVATE, proposal, session


def test_it_renames_a_session_whose_turns_name_one_chat():
    found = proposal(session(BASE, GROUP, turns=1))

    assert (found.recommendation, found.new_key, found.confidence) == ("rename", GROUP, "high")
    assert found.evidence == (Evidence("turns", GROUP, 1),)
    assert found.affected.memory_turns == 1


def test_it_keeps_a_session_of_which_nothing_is_known():
    found = proposal(session(BASE, turns=2, addressless=1))

    assert (found.recommendation, found.new_key, found.confidence) == ("keep_legacy", "", "low")


@pytest.mark.parametrize("key", ["onlyone", "10001", "milky:", ":1", "milky:1:", "__global__"])
def test_it_leaves_a_key_that_is_none_to_a_person(key: str):
    found = proposal(session(key, GROUP))

    assert (found.recommendation, found.new_key, found.confidence) == ("manual_review", "", "low")


def test_it_splits_a_session_whose_turns_name_two_chats():
    found = proposal(session("milky:10001:abcd1234", PRIVATE, GROUP))

    assert (found.recommendation, found.confidence, found.new_key) == ("split", "conflict", "")
    assert {target.chat_address: target.new_session_id for target in found.targets} == {
        PRIVATE: "milky:private:10001:abcd1234",
        GROUP: "milky:group:10001:abcd1234",
    }


def test_it_is_less_sure_where_people_spoke_without_an_address():
    found = proposal(session(BASE, GROUP, addressless=2))

    assert (found.recommendation, found.confidence) == ("rename", "medium")
    assert "turns of people that name no chat: 2" in found.notes


def test_it_keeps_the_suffix():
    found = proposal(session("milky:10001:9c5e96eb", PRIVATE))

    assert found.new_key == "milky:private:10001:9c5e96eb"


def test_it_escapes_a_suffix_that_was_written_literally():
    found = proposal(session("milky:10001:cron:50%25", GROUP))

    assert found.new_key == "milky:group:10001:cron:50%2525"


@pytest.mark.parametrize(
    "address", ["milky:group:10002", "qq:group:10001", "Milky:group:10001", "milky:group:1000"]
)
def test_it_proves_nothing_by_another_chat(address: str):
    """An envelope must name the channel and the id of the key."""
    found = proposal(session(BASE, GROUP, address))

    assert (found.recommendation, found.new_key, found.confidence) == (
        "manual_review",
        "",
        "conflict",
    )


@pytest.mark.parametrize(
    "address", ["telegram:private:-100", "telegram:group:100", "telegram:channel:100"]
)
def test_it_distrusts_a_type_that_contradicts_a_telegram_id(address: str):
    key = address.replace("private:", "").replace("group:", "").replace("channel:", "")

    found = proposal(session(key, address))

    assert (found.recommendation, found.confidence) == ("manual_review", "conflict")


def test_it_takes_a_telegram_id_and_type_that_agree():
    found = proposal(session("telegram:-1009000000001", "telegram:group:-1009000000001"))

    assert (found.recommendation, found.confidence) == ("rename", "high")


def test_it_does_not_take_a_telegram_id_for_the_type():
    found = proposal(session("telegram:700004", turns=2))

    assert (found.recommendation, found.new_key) == ("keep_legacy", "")


def test_it_leaves_an_id_with_colons_to_a_person():
    """The old key broke at the second colon, so the envelope's id is longer than the key's."""
    found = proposal(session("matrix:!room:example.org", "matrix:group:!room%3Aexample.org"))

    assert found.recommendation == "manual_review"


def test_it_does_not_move_an_old_chat_into_a_channel_of_our_own():
    found = proposal(session("web:1", "web:private:1"))

    assert (found.recommendation, found.new_key) == ("manual_review", "")


def test_it_takes_metadata_where_no_turn_speaks():
    found = proposal(session(BASE, metadata=(GROUP,)))

    assert (found.recommendation, found.new_key, found.confidence) == ("rename", GROUP, "medium")
    assert found.evidence == (Evidence("session_metadata", GROUP, 0),)


def test_it_never_renames_where_metadata_contradicts_the_turns():
    found = proposal(session(BASE, PRIVATE, metadata=(GROUP,)))

    assert (found.recommendation, found.confidence) == ("manual_review", "conflict")


def test_it_splits_nothing_where_metadata_names_a_third_chat():
    found = proposal(session(BASE, PRIVATE, GROUP, metadata=("milky:channel:10001",)))

    assert (found.recommendation, found.targets) == ("manual_review", ())


def test_it_splits_by_turns_where_metadata_names_one_of_their_chats():
    found = proposal(session(BASE, PRIVATE, GROUP, metadata=(GROUP,)))

    assert found.recommendation == "split"


def test_it_leaves_metadata_that_names_two_chats_to_a_person():
    found = proposal(session(BASE, metadata=(GROUP, PRIVATE)))

    assert (found.recommendation, found.new_key, found.targets) == ("manual_review", "", ())


def test_it_says_that_private_may_be_a_default():
    """A plugin that filled only the bare fields of a message left every chat private."""
    found = proposal(session("webhook:7", "webhook:private:7"))

    assert found.recommendation == "rename"
    assert any("no more than a default" in note for note in found.notes)


def test_it_says_that_a_session_with_that_key_exists():
    found = proposal(session(BASE, GROUP), keys=frozenset({BASE, GROUP}))

    assert found.recommendation == "rename"
    assert f"{GROUP} exists: the two become one" in found.notes


def test_it_renames_both_forms_of_one_untyped_key():
    first, second = session("milky:10001", GROUP), session("milky:unknown:10001", GROUP)

    assert proposal(first, second).new_key == proposal(second, first).new_key == GROUP


def test_it_passes_over_a_typed_key():
    found = proposal(session("milky:group:20001:abcd1234", "milky:group:20001"))

    assert (found.recommendation, found.new_key) == ("skip_typed", "")


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("webhook:group:1a2b3c4d", "webhook:private:group"),
        ("milky:private:abcd1234", "milky:group:10001"),
    ],
)
def test_it_leaves_a_key_that_only_looks_typed_to_a_person(key: str, named: str):
    """The turns of a `/new` session of a chat called `group` name that chat."""
    found = proposal(session(key, named))

    assert (found.recommendation, found.confidence) == ("manual_review", "conflict")


def test_it_asks_the_override_whether_a_key_is_typed():
    found = proposal(session("webhook:group:1a2b3c4d", overrides=("webhook:unknown:group",)))

    assert found.recommendation == "manual_review"


def test_it_asks_for_an_older_chat_that_a_typed_key_may_come_from():
    found = proposal(session("webhook:group:1a2b3c4d"), session("webhook:group"))

    assert found.recommendation == "manual_review"


def test_it_takes_an_override_of_the_same_number_for_its_own():
    own = session("milky:private:10001:abcd1234", overrides=("milky:unknown:10001",))

    assert proposal(own).recommendation == "skip_typed"


def test_it_tells_a_key_from_a_longer_one():
    from_facts = proposal(
        session("milky:8100", "milky:group:8100"), session("milky:81001", PRIVATE)
    )

    assert from_facts.new_key == "milky:group:8100"
