"""What becomes of the old bot's jobs. A job hangs on a bare key, which every chat of that number shared. Pure."""

from collections.abc import Iterable, Set

from nahida.legacy.facts import JobFacts, base_of, job_of, parsed
from nahida.legacy.proposals import DISABLE, LEAVE, RETARGET, JobFate


class Jobs:
    """The jobs, found by the key they hang on, and by the id or name that a session of their own has."""

    def __init__(self, jobs: Iterable[JobFacts]) -> None:
        self._at: dict[str, list[JobFacts]] = {}
        self._called: dict[str, list[JobFacts]] = {}
        for job in jobs:
            self._at.setdefault(job.key, []).append(job)
            for name in {job.job_id, job.session_name} - {""}:
                self._called.setdefault(name, []).append(job)

    def keys(self) -> Set[str]:
        return self._at.keys()

    def at(self, key: str) -> list[JobFacts]:
        return self._at.get(key, [])

    def ran_in(self, text: str) -> list[JobFacts]:
        """Return the jobs whose own session this is: by id wherever they hang, by name below their own key."""
        key = parsed(text)
        name = job_of(key) if key else ""
        base = base_of(text, key) if key else ""
        return [job for job in self._called.get(name, []) if name == job.job_id or base == job.key]

    def fates(self, text: str, *, address: str, named: frozenset[str]) -> tuple[JobFate, ...]:
        """Return what a record on this key does to its jobs.

        `address` is the chat the session moves to as a whole, or ""; `named` are all chats that the sessions of this number name.
        """
        hanging = [_fate(job, address, named) for job in self.at(text)]
        own = [_told(job) for job in self.ran_in(text) if job.key != text]
        return tuple(sorted((*hanging, *own), key=lambda fate: fate.id))


def _told(job: JobFacts) -> JobFate:
    """A job that hangs on another key only follows what it says itself."""
    return JobFate(job.pk, job.job_id, RETARGET if job.stated else LEAVE, job.stated)


def _fate(job: JobFacts, address: str, named: frozenset[str]) -> JobFate:
    if job.stated:
        return _told(job)
    if address and named <= {address}:
        return JobFate(job.pk, job.job_id, RETARGET, address)
    if not job.active:
        return JobFate(job.pk, job.job_id, LEAVE)
    return JobFate(job.pk, job.job_id, DISABLE, why=_why(named))


def _why(named: frozenset[str]) -> str:
    if len(named) > 1:
        return f"the chat type is unknown: sessions of this number name {', '.join(sorted(named))}"
    return "the chat type is unknown: nothing proves it for this job's session"
