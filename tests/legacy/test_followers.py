"""Sessions of subagents follow their requester; those of jobs follow a job that says its chat."""

import pytest

from nahida.legacy.facts import Settled
from nahida.legacy.proposals import Child, Evidence
from tests.legacy.families import BASE, GROUP, PRIVATE, job, proposal, proposed, renamed, session

CHILD = "milky:10001:subagent:task_1"
CRON = "milky:10001:cron:j1"


def test_it_moves_a_child_that_names_nothing_with_its_requester():
    child = session(CHILD, turns=2)

    found = proposed(session(BASE, GROUP), child)

    assert found[CHILD].new_key == "milky:group:10001:subagent:task_1"
    assert (found[CHILD].recommendation, found[CHILD].confidence) == ("rename", "medium")
    assert found[CHILD].evidence == (Evidence("requester", GROUP),)
    assert found[BASE].affected.children == (Child(child.pk, CHILD, found[CHILD].new_key),)


def test_it_moves_the_child_of_a_derived_session():
    parent, child = "milky:10001:9c5e96eb", "milky:10001:9c5e96eb:subagent:task_1"

    found = proposed(session(parent, PRIVATE), session(child))

    assert found[child].new_key == "milky:private:10001:9c5e96eb:subagent:task_1"


def test_it_counts_copies_for_the_child_that_holds_them():
    child = session(CHILD, named={GROUP: 6}, copied=6)

    found = proposal(child, session(BASE, GROUP))

    assert (found.recommendation, found.evidence) == ("rename", (Evidence("turns", GROUP, 6),))


@pytest.mark.parametrize(
    "parent",
    [
        session(BASE),
        session(BASE, PRIVATE, GROUP),
        session(BASE, "milky:group:9"),
        session(BASE, PRIVATE, metadata=(GROUP,)),
    ],
)
def test_it_keeps_the_child_of_a_requester_that_stays_or_splits(parent):
    found = proposal(session(CHILD), parent)

    assert (found.recommendation, found.new_key, found.confidence) == ("keep_legacy", "", "low")


def test_it_keeps_a_child_with_copies_of_both_halves():
    """Copies of a mixed history prove nothing about the one who asked."""
    child = session(CHILD, PRIVATE, GROUP, copied=2)

    found = proposal(child, session(BASE, PRIVATE, GROUP))

    assert (found.recommendation, found.targets) == ("keep_legacy", ())


def test_it_keeps_a_child_with_copies_of_one_half():
    child = session(CHILD, PRIVATE, copied=1)

    assert proposal(child, session(BASE, PRIVATE, GROUP)).recommendation == "keep_legacy"


@pytest.mark.parametrize("others", [(), (session(BASE),)])
def test_it_judges_a_child_alone_where_no_requester_speaks(others):
    found = proposal(session(CHILD, GROUP, copied=1), *others)

    assert found.new_key == "milky:group:10001:subagent:task_1"


def test_it_leaves_a_child_that_contradicts_its_requester_to_a_person():
    found = proposal(session(CHILD, PRIVATE), session(BASE, GROUP))

    assert (found.recommendation, found.confidence) == ("manual_review", "conflict")


def test_it_follows_a_requester_that_has_moved_already():
    found = proposal(session(CHILD), settled={BASE: renamed(GROUP, GROUP)})

    assert found.new_key == "milky:group:10001:subagent:task_1"


def test_it_follows_a_requester_wherever_a_person_sent_it():
    elsewhere = "matrix:group:%21room%3Aexample.org"
    child = "matrix:!room:example.org:subagent:task_1"

    found = proposal(session(child), settled={"matrix:!room:example.org": renamed(elsewhere)})

    assert found.new_key == "matrix:group:!room%3Aexample.org:subagent:task_1"


def test_it_keeps_the_child_of_a_requester_that_was_rejected():
    settled = {BASE: Settled("rejected", named=frozenset({GROUP}))}

    assert proposal(session(CHILD), settled=settled).recommendation == "keep_legacy"


def test_it_follows_the_requester_that_the_task_ledger_names():
    found = proposal(session(CHILD, requesters=(GROUP,)), keys=frozenset({CHILD, GROUP}))

    assert found.new_key == "milky:group:10001:subagent:task_1"


def test_it_keeps_a_child_of_two_requesters():
    found = proposal(
        session(CHILD, requesters=(PRIVATE,)),
        session(BASE, GROUP),
        keys=frozenset({BASE, CHILD, PRIVATE}),
    )

    assert found.recommendation == "keep_legacy"


def test_it_gives_a_child_none_of_its_chats_jobs():
    found = proposal(session(CHILD), session(BASE), jobs=(job(BASE),))

    assert (found.recommendation, found.affected.cron_jobs) == ("keep_legacy", 0)


def test_it_takes_a_chat_called_subagent_for_a_chat():
    found = proposal(session("x:subagent:1", "x:group:subagent"))

    assert found.new_key == "x:group:subagent:1"


def test_it_renames_a_jobs_session_as_the_job_says():
    found = proposal(session(CRON), jobs=(job(stated=GROUP),))

    assert (found.recommendation, found.new_key) == ("rename", "milky:group:10001:cron:j1")
    assert (found.evidence, found.affected.cron_jobs) == ((Evidence("cron_job", GROUP),), 1)


def test_it_sends_the_job_itself_to_the_chat():
    (fate,) = proposal(session(CRON), jobs=(job(stated=GROUP),)).affected.jobs

    assert (fate.outcome, fate.chat_address) == ("retarget", GROUP)


def test_it_finds_a_job_by_the_name_of_its_session():
    jobs = (job("milky:999", session_name="daily"), job(session_name="daily", stated=GROUP))

    assert proposal(session("milky:10001:cron:daily"), jobs=jobs).evidence == (
        Evidence("cron_job", GROUP),
    )


def test_it_does_not_believe_a_job_of_another_chat():
    found = proposal(session(CRON), jobs=(job(stated="milky:group:999"),))

    assert found.recommendation == "manual_review"


def test_it_learns_nothing_from_an_untyped_job():
    assert proposal(session(CRON), jobs=(job(),)).recommendation == "keep_legacy"


def test_it_takes_a_chat_called_cron_for_a_chat():
    found = proposal(session("x:cron:1"), jobs=(job("x:cron", job_id="1", stated=GROUP),))

    assert found.evidence == ()


def test_it_sends_an_override_with_its_session():
    found = proposal(session(BASE, GROUP, overrides=("milky:unknown:10001",)))

    assert found.affected.active_sessions == 1
    assert not any("/new" in note for note in found.notes)


@pytest.mark.parametrize("named", [(), (PRIVATE, GROUP), ("milky:group:9",)])
def test_it_notes_an_override_that_stays(named):
    found = proposal(session(BASE, *named, overrides=("milky:unknown:10001",)))

    assert "a /new led here, and stays as it is: milky:unknown:10001" in found.notes
