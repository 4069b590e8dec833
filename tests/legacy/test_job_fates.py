"""What becomes of the old bot's jobs: they go along where their chat is proven, and are switched off where it is not."""

from nahida.legacy.facts import Settled
from nahida.legacy.proposals import JobFate
from tests.legacy.families import BASE, GROUP, PRIVATE, job, proposal, proposed, session


def fate(found) -> tuple[str, str]:
    (only,) = found.affected.jobs
    return only.outcome, only.chat_address


def test_it_switches_off_the_job_of_a_session_that_names_nothing():
    found = proposal(session(BASE), jobs=(job(),))

    assert (found.recommendation, found.affected.cron_jobs) == ("disable_cron", 1)
    assert fate(found) == ("disable", "")
    assert "the chat type is unknown" in found.affected.jobs[0].why


def test_it_sends_a_job_where_its_session_goes():
    found = proposal(session(BASE, GROUP), jobs=(job(),))

    assert (found.recommendation, fate(found)) == ("rename", ("retarget", GROUP))


def test_it_keeps_a_finished_job_as_it_is():
    found = proposal(session(BASE), jobs=(job(active=False),))

    assert (found.recommendation, fate(found)) == ("keep_legacy", ("leave", ""))


def test_it_sends_a_finished_job_along():
    found = proposal(session(BASE, GROUP), jobs=(job(active=False),))

    assert fate(found) == ("retarget", GROUP)


def test_it_switches_off_a_job_whose_sessions_name_two_chats():
    """A clean base session proves nothing for the job that every chat of that number shares."""
    found = proposal(session(BASE, PRIVATE), session(f"{BASE}:abcd1234", GROUP), jobs=(job(),))

    assert (found.recommendation, fate(found)) == ("rename", ("disable", ""))
    assert GROUP in found.affected.jobs[0].why
    assert "jobs that would be switched off: 1" in found.notes


def test_it_remembers_what_a_session_named_that_has_moved_already():
    settled = {f"{BASE}:abcd1234": Settled("renamed", f"{GROUP}:abcd1234", frozenset({GROUP}))}

    found = proposal(session(BASE, PRIVATE), jobs=(job(),), settled=settled)

    assert fate(found) == ("disable", "")


def test_it_switches_off_the_job_of_a_splitting_session():
    found = proposal(session(BASE, PRIVATE, GROUP), jobs=(job(),))

    assert (found.recommendation, fate(found)) == ("split", ("disable", ""))


def test_it_switches_off_a_job_without_any_session():
    found = proposed(jobs=(job("milky:30002"),))["milky:30002"]

    assert (found.session, found.recommendation, fate(found)) == (
        None,
        "disable_cron",
        ("disable", ""),
    )
    assert (found.affected.sessions, found.affected.cron_jobs) == (0, 1)


def test_it_leaves_a_job_with_a_typed_key_alone():
    assert proposed(jobs=(job(GROUP, stated=GROUP),)) == {}


def test_it_believes_a_job_that_says_its_chat():
    found = proposal(session(BASE), jobs=(job(stated=GROUP),))

    assert (found.recommendation, fate(found)) == ("keep_legacy", ("retarget", GROUP))


def test_it_takes_no_job_of_a_longer_number():
    found = proposal(session("milky:8100"), jobs=(job("milky:81001"), job("milky:810")))

    assert (found.recommendation, found.affected.jobs) == ("keep_legacy", ())


def test_it_lets_no_other_number_contradict():
    others = (session("devXbot:9_1", "devXbot:group:9_1"), session("dev_bot:9x1", GROUP))
    own = session("dev_bot:9_1", "dev_bot:private:9_1")

    assert fate(proposal(own, *others, jobs=(job("dev_bot:9_1"),))) == (
        "retarget",
        "dev_bot:private:9_1",
    )


def test_it_gives_each_job_its_own_fate():
    found = proposal(session(BASE), jobs=(job(job_id="a"), job(job_id="b", active=False)))

    assert [(one.job_id, one.outcome) for one in found.affected.jobs] == [
        ("a", "disable"),
        ("b", "leave"),
    ]
    assert all(isinstance(one, JobFate) for one in found.affected.jobs)
