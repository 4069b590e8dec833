"""Old sessions as facts, and what is proposed for one of them."""

import itertools
from typing import Any

from nahida.legacy.evidence import infer
from nahida.legacy.facts import Facts, JobFacts, SessionFacts, Settled
from nahida.legacy.proposals import Proposal

BASE = "milky:10001"
PRIVATE = "milky:private:10001"
GROUP = "milky:group:10001"

_pks = itertools.count(1)


def session(key: str = BASE, *named: str, **facts: Any) -> SessionFacts:
    """A session whose turns name these chats, each once."""
    return SessionFacts(next(_pks), key, **{"named": dict.fromkeys(named, 1), **facts})


def job(key: str = BASE, **facts: Any) -> JobFacts:
    return JobFacts(next(_pks), **{"job_id": "j1", "key": key, **facts})


def proposed(*sessions: SessionFacts, **facts: Any) -> dict[str, Proposal]:
    known = {"keys": frozenset(one.key for one in sessions), **facts}
    return {proposal.old_key: proposal for proposal in infer(Facts(sessions, **known))}


def proposal(one: SessionFacts, *others: SessionFacts, **facts: Any) -> Proposal:
    return proposed(one, *others, **facts)[one.key]


def renamed(to: str, *named: str) -> Settled:
    return Settled("renamed", to, frozenset(named))
