"""What the inference looks at, and nothing else: imported sessions, their jobs, and what was settled before. Pure."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from channels_app.addresses import UNKNOWN, AddressError, ChatAddress, SessionKey
from nahida.legacy.proposals import MOVED, Proposal

CRON = "cron:"
SUBAGENT = "subagent:"


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A job of the old bot. `stated` is the typed chat that the job itself names, or ""."""

    pk: int
    job_id: str
    key: str
    session_name: str = ""
    active: bool = True
    stated: str = ""


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """One session in figures. Addresses are texts of typed chats, without topics.

    `named` counts the turns that name each chat, assistants' left out; `copied` of them were copied from a requester's history.
    `addressless` counts the turns of people that name none. `overrides` are the keys of the chats whose `/new` leads here,
    `requesters` the keys that metadata and the task ledger give as its requester.
    """

    pk: int
    key: str
    turns: int = 0
    named: Mapping[str, int] = field(default_factory=dict)
    copied: int = 0
    addressless: int = 0
    metadata: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    tasks: int = 0
    items: int = 0
    requesters: tuple[str, ...] = ()

    @property
    def parsed(self) -> SessionKey | None:
        return parsed(self.key)


@dataclass(frozen=True, slots=True)
class Settled:
    """A finished record: what became of an old key, and the chats its evidence named."""

    result: str
    new_key: str = ""
    named: frozenset[str] = frozenset()

    @property
    def moved_to(self) -> str:
        return self.new_key if self.result in MOVED else ""


@dataclass(frozen=True, slots=True)
class Facts:
    """`keys` are those of all sessions there are, the new bot's own included.

    `standing` are proposals that are taken as they are, when only some sessions are looked at anew.
    """

    sessions: tuple[SessionFacts, ...]
    jobs: tuple[JobFacts, ...] = ()
    standing: tuple[Proposal, ...] = ()
    settled: Mapping[str, Settled] = field(default_factory=dict)
    keys: Set[str] = frozenset()


def parsed(text: str) -> SessionKey | None:
    try:
        return SessionKey.parse(text)
    except AddressError:
        return None


def task_of(key: SessionKey) -> str:
    """Return the task whose subagent had this session, or ""."""
    head, found, task = key.suffix.rpartition(SUBAGENT)
    return task if found and (not head or head.endswith(":")) else ""


def requester_of(text: str, task: str) -> str:
    """Return the key text of the session that started the task, byte for byte."""
    return text[: -len(SUBAGENT + task) - 1]


def base_of(text: str, key: SessionKey) -> str:
    """Return the text without its suffix, byte for byte."""
    return text[: -len(key.suffix) - 1] if key.suffix else text


def older_key(key: SessionKey) -> str:
    """Return the key of a chat whose id is a typed key's type word: with `/new` it made keys of the same form."""
    address = key.address
    return ChatAddress(address.channel, UNKNOWN, address.target_type).legacy_key


def job_of(key: SessionKey) -> str:
    """Return the id or name of the job whose own session this is, or ""."""
    if not key.suffix.startswith(CRON) or task_of(key):
        return ""
    return key.suffix.removeprefix(CRON)
