"""What is proposed for one old key: the value between inference, record and plan file. Pure."""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

RENAME: Final = "rename"
SPLIT: Final = "split"
KEEP_LEGACY: Final = "keep_legacy"
DISABLE_CRON: Final = "disable_cron"
SKIP_TYPED: Final = "skip_typed"
MANUAL_REVIEW: Final = "manual_review"

HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"
CONFLICT: Final = "conflict"

RETARGET: Final = "retarget"
DISABLE: Final = "disable"
LEAVE: Final = "leave"

MOVED: Final = ("renamed", "merged")  # results after which all of a session is elsewhere

COUNTS: Final = (
    "sessions",
    "memory_turns",
    "active_sessions",
    "cron_jobs",
    "background_tasks",
    "memory_items",
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A chat that something names. Only turns are counted."""

    source: str
    chat_address: str
    turn_count: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """A session that takes part of a split one."""

    chat_address: str
    new_session_id: str
    turn_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class JobFate:
    """What an applied record does to a job; `why` says it where the job is switched off."""

    id: int
    job_id: str
    outcome: str
    chat_address: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Child:
    """A subagent's session that goes along with its requester."""

    id: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Affected:
    """Rows of this session alone; what its children have is counted at theirs."""

    sessions: int = 0
    memory_turns: int = 0
    active_sessions: int = 0
    cron_jobs: int = 0
    background_tasks: int = 0
    memory_items: int = 0
    jobs: tuple[JobFate, ...] = ()
    children: tuple[Child, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """`session` is None where only jobs have the key."""

    session: int | None
    old_key: str
    recommendation: str
    confidence: str
    new_key: str = ""
    evidence: tuple[Evidence, ...] = ()
    targets: tuple[Target, ...] = ()
    affected: Affected = field(default_factory=Affected)
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of the record that hold this, as they are read back from the database."""
        return {
            "subject_pk": self.session,
            "recommendation": self.recommendation,
            "confidence": self.confidence,
            "new_key": self.new_key,
            "evidence": plain(self.evidence),
            "targets": plain(self.targets),
            "affected": plain(self.affected),
            "notes": list(self.notes),
            "fingerprint": self.fingerprint,
        }

    @property
    def fingerprint(self) -> str:
        """The same as long as nothing that a decision rests on has changed.

        Notes are not part of it, nor are children: they may go before their requester does.
        """
        parts = {
            "evidence": plain(self.evidence),
            "targets": plain(self.targets),
            "affected": plain(replace(self.affected, children=())),
            "new_key": self.new_key,
        }
        canonical = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def plain(value: Any) -> Any:
    """Return dataclasses and tuples as the objects and lists that JSON gives back."""
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    return _lists(asdict(value))


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lists(part) for name, part in value.items()}
    return [_lists(part) for part in value] if isinstance(value, tuple) else value
