"""Turn by turn: who gets what of a session that two chats shared."""

from hypothesis import given
from hypothesis import strategies as st

from nahida.legacy.dividing import Line, divide

A, B = "milky:private:1", "milky:group:1"
SPEAKERS = st.sampled_from(["user", "assistant", "system"])


def divided(*spoken: tuple[str, str]) -> dict[int, str]:
    """Number the turns from 1."""
    return dict(divide(Line(number, role, chat) for number, (role, chat) in enumerate(spoken, 1)))


def test_it_gives_each_chat_the_turns_that_name_it():
    assert divided(("user", A), ("user", B), ("system", A)) == {1: A, 2: B, 3: A}


def test_it_gives_an_answer_between_two_turns_of_one_chat_to_it():
    assert divided(("user", A), ("assistant", ""), ("system", ""), ("user", A)) == dict.fromkeys(
        range(1, 5), A
    )


def test_it_does_not_mind_that_nothing_follows():
    assert divided(("user", A), ("assistant", "")) == {1: A, 2: A}


def test_it_gives_an_answer_between_two_chats_to_neither():
    """A line of the group may have been stored between a private question and its answer."""
    assert divided(("user", A), ("assistant", ""), ("user", B)) == {1: A, 3: B}


def test_it_gives_an_answer_before_any_named_chat_to_nobody():
    assert divided(("assistant", ""), ("user", A)) == {2: A}


def test_it_never_gives_a_users_turn_without_a_chat_to_anybody():
    assert divided(("user", A), ("user", ""), ("user", A)) == {1: A, 3: A}


def test_it_gives_the_answer_to_such_a_turn_to_nobody():
    assert divided(("user", A), ("user", ""), ("assistant", ""), ("user", A)) == {1: A, 4: A}


def test_it_looks_past_such_a_turn_for_the_next_chat():
    turns = [("user", A), ("assistant", ""), ("user", ""), ("user", B)]

    assert divided(*turns) == {1: A, 4: B}
    assert divided(*turns[:3], ("user", A)) == {1: A, 2: A, 4: A}


def test_it_does_not_take_an_answers_own_address_for_evidence():
    assert divided(("user", A), ("assistant", B), ("assistant", A), ("user", A)) == {
        1: A,
        3: A,
        4: A,
    }


@given(st.lists(st.tuples(SPEAKERS, st.sampled_from(["", A, B])), max_size=12))
def test_it_contradicts_no_turns_own_address(spoken: list[tuple[str, str]]):
    found = divided(*spoken)

    for number, chat in found.items():
        assert spoken[number - 1][1] in ("", chat)
    for number, (role, chat) in enumerate(spoken, 1):
        assert role == "assistant" or found.get(number, "") == chat or not chat
        assert role != "user" or chat or number not in found
