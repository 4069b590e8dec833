"""Whatever the facts are: what is proposed was named by something, and contradicts nothing that a turn says."""

from hypothesis import given
from hypothesis import strategies as st

from channels_app.addresses import ChatAddress, SessionKey
from nahida.legacy.evidence import infer
from nahida.legacy.facts import Facts, JobFacts, SessionFacts, Settled
from nahida.legacy.proposals import Proposal

BASES = ("milky:1", "milky:unknown:1", "telegram:-5", "telegram:7", "milky:10", "webhook:group")
SUFFIXES = ("", "abcd1234", "cron:j1", "cron:daily", "subagent:t1", "abcd1234:subagent:t2", "what")
ODD = ("onlyone", "milky:", "matrix:!room:example.org", "milky:private:abcd1234", "milky:group:1")
KEYS = (*ODD, *(str(base + ":" * bool(suffix) + suffix) for base in BASES for suffix in SUFFIXES))
CHATS = tuple(
    ChatAddress(channel, type_, id).chat_key
    for channel, id in [("milky", "1"), ("telegram", "-5"), ("telegram", "7"), ("webhook", "group")]
    for type_ in ("private", "group", "channel")
)

chats = st.sampled_from(CHATS)
few = st.lists(chats, max_size=2, unique=True).map(tuple)
settled = st.builds(
    Settled,
    st.sampled_from(["renamed", "kept_legacy", "split", "rejected"]),
    chats,
    few.map(frozenset),
)


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=7, unique=True))
    sessions = tuple(
        SessionFacts(
            number,
            key,
            turns=9,
            named=draw(st.dictionaries(chats, st.integers(1, 3), max_size=2)),
            addressless=draw(st.integers(0, 1)),
            metadata=draw(few) if draw(st.integers(0, 3)) == 0 else (),
            requesters=draw(st.lists(st.sampled_from(KEYS), max_size=1).map(tuple)),
        )
        for number, key in enumerate(keys, 1)
    )
    jobs = tuple(
        JobFacts(
            number, "j1", key, "daily", draw(st.booleans()), draw(st.sampled_from(["", *CHATS]))
        )
        for number, key in enumerate(draw(st.lists(st.sampled_from(KEYS), max_size=3)), 1)
    )
    done = draw(
        st.dictionaries(
            st.sampled_from(KEYS).filter(lambda key: key not in keys), settled, max_size=2
        )
    )
    return Facts(sessions, jobs, settled=done, keys=frozenset(keys))


def moves(proposal: Proposal) -> list[SessionKey]:
    """Return the keys that would take the session's turns."""
    keys = [proposal.new_key, *(target.new_session_id for target in proposal.targets)]
    return [SessionKey.parse(key) for key in keys if key]


@given(facts())
def test_it_proposes_only_a_chat_that_something_names(known: Facts):
    for proposal in infer(known):
        named = {part.chat_address for part in proposal.evidence}
        for key in moves(proposal):
            assert key.typed
            assert key.chat_key in named


@given(facts())
def test_it_never_sends_a_turn_where_its_envelope_contradicts(known: Facts):
    sessions = {session.pk: session for session in known.sessions}
    for proposal in infer(known):
        if proposal.recommendation != "rename" or proposal.session is None:
            continue
        assert set(sessions[proposal.session].named) <= {
            SessionKey.parse(proposal.new_key).chat_key
        }


@given(facts())
def test_it_splits_only_between_chats_that_turns_name(known: Facts):
    sessions = {session.pk: session for session in known.sessions}
    for proposal in infer(known):
        if proposal.recommendation == "split":
            assert proposal.session is not None
            targets = {target.chat_address for target in proposal.targets}
            assert targets == set(sessions[proposal.session].named)
            assert len(targets) > 1


@given(facts())
def test_it_keeps_a_job_only_where_its_chat_is_proven(known: Facts):
    jobs = {job.pk: job for job in known.jobs}
    for proposal in infer(known):
        for fate in proposal.affected.jobs:
            proven = jobs[fate.id].stated or SessionKey.parse(proposal.new_key or "x:y").chat_key
            assert fate.outcome != "retarget" or fate.chat_address == proven
            assert fate.outcome != "disable" or jobs[fate.id].active


@given(facts())
def test_it_proposes_for_each_session_once(known: Facts):
    found = [proposal.session for proposal in infer(known) if proposal.session is not None]

    assert sorted(found) == [session.pk for session in known.sessions]
    assert len({proposal.old_key for proposal in infer(known)}) == len(infer(known))


@given(facts())
def test_it_gives_the_same_answer_in_any_order(known: Facts):
    turned = Facts(known.sessions[::-1], known.jobs[::-1], settled=known.settled, keys=known.keys)

    assert infer(known) == infer(turned)
