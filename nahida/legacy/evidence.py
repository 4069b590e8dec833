"""Which chat does an old session belong to? Proposals from facts, without guessing: only what something names is proposed.

In order of trust: the turns' own envelopes, the session's metadata, a typed job, the facts of the channel, and the key itself,
which never tells the type. A subagent's session follows its requester. Pure. Source: DESIGN 8, acceptance lists S and X.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from channels_app.addresses import RESERVED_CHANNELS, AddressError, ChatAddress, SessionKey
from nahida.legacy.facts import (
    Facts,
    JobFacts,
    SessionFacts,
    older_key,
    parsed,
    requester_of,
    task_of,
)
from nahida.legacy.jobs import Jobs
from nahida.legacy.proposals import (
    CONFLICT,
    DISABLE,
    DISABLE_CRON,
    HIGH,
    KEEP_LEGACY,
    LOW,
    MANUAL_REVIEW,
    MEDIUM,
    RENAME,
    SKIP_TYPED,
    SPLIT,
    Affected,
    Child,
    Evidence,
    Proposal,
    Target,
)

TURNS = "turns"
METADATA = "session_metadata"
CRON_JOB = "cron_job"
REQUESTER = "requester"

NEW_SUFFIX = re.compile("[0-9a-f]{8}")  # what /new put behind a key
# Channels whose adapters of the old bot always stated the type themselves.
STATES_ITS_TYPES = ("milky", "telegram")


@dataclass(frozen=True, slots=True)
class Verdict:
    recommendation: str
    confidence: str
    note: str
    new_key: str = ""
    targets: tuple[Target, ...] = ()


def infer(facts: Facts) -> list[Proposal]:
    """Return a proposal for every session, and for every key that only jobs have; requesters before their children.

    Targets of a split come without their turns, which are read one by one for the few sessions that need it.
    """
    return list(_Inference(facts).proposals())


def after_forced_rename(facts: Facts, old_key: str, new_key: SessionKey) -> Affected:
    """Return what goes along if a person renames a session to a key of his own."""
    return _Inference(facts).forced(old_key, new_key)


class _Inference:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.jobs = Jobs(facts.jobs)
        self.proposed = {proposal.old_key: proposal for proposal in facts.standing}

    def proposals(self) -> Iterable[Proposal]:
        sessions = sorted(self.facts.sessions, key=lambda session: session.key)
        for session in sorted(
            sessions, key=_is_child
        ):  # stable: of two children, the outer one first
            self.proposed[session.key] = self._propose(session)
        named = self._named_by_family()
        children = self._children()
        for proposal in (self.proposed[session.key] for session in sessions):
            family = _family(proposal.old_key)
            yield _with_jobs(
                proposal,
                self.jobs,
                named=named.get(family, frozenset()) if family else frozenset(),
                children=children.get(proposal.old_key, ()),
            )
        yield from self._jobs_alone()

    def forced(self, old_key: str, new_key: SessionKey) -> Affected:
        proposal = {one.old_key: one for one in self.proposals()}[old_key]
        address = new_key.chat_key
        family = _family(old_key)
        named = self._named_by_family().get(family, frozenset()) if family else frozenset()
        children = sorted(
            (
                replace(child, new=str(new_key.subagent(task_of(SessionKey.parse(child.old)))))
                for requester, child in self._subagents()
                if requester == old_key
                and self._names_only(child.old, address)
                and not task_of(new_key)
            ),
            key=lambda child: child.old,
        )
        fates = self.jobs.fates(old_key, address=address, named=named)
        return replace(proposal.affected, jobs=fates, children=tuple(children))

    def _names_only(self, text: str, address: str) -> bool:
        own = (part for part in self.proposed[text].evidence if part.source != REQUESTER)
        return set(_addresses(own)) <= {address}

    def _propose(self, session: SessionFacts) -> Proposal:
        key = session.parsed
        if key is None:
            verdict = Verdict(MANUAL_REVIEW, LOW, "the key is no session key")
            return self._proposal(session, verdict, _evidence(session, ()))
        if key.typed:
            return self._proposal(session, self._typed(session, key), _evidence(session, ()))
        own = _evidence(session, self.jobs.ran_in(session.key))
        if task := task_of(key):
            return self._child(session, key, task, own)
        return self._proposal(session, _judge(key, own, session.addressless), own)

    def _proposal(
        self, session: SessionFacts, verdict: Verdict, evidence: tuple[Evidence, ...]
    ) -> Proposal:
        affected = Affected(
            sessions=1,
            memory_turns=session.turns,
            active_sessions=len(session.overrides),
            background_tasks=session.tasks,
            memory_items=session.items,
        )
        return Proposal(
            session.pk,
            session.key,
            verdict.recommendation,
            verdict.confidence,
            verdict.new_key,
            evidence,
            verdict.targets,
            affected,
            tuple(self._notes(session, verdict, evidence)),
        )

    def _notes(
        self, session: SessionFacts, verdict: Verdict, evidence: tuple[Evidence, ...]
    ) -> Iterable[str]:
        yield verdict.note
        if session.addressless and evidence:
            yield f"turns of people that name no chat: {session.addressless}"
        if session.copied:
            yield f"turns copied from the requester's history: {session.copied}"
        if session.overrides and verdict.recommendation not in (RENAME, SKIP_TYPED):
            yield f"a /new led here, and stays as it is: {', '.join(session.overrides)}"
        if _is_default(verdict):
            yield "on this channel private may be no more than a default"
        for new_key in filter(
            None, [verdict.new_key, *(t.new_session_id for t in verdict.targets)]
        ):
            if new_key in self.facts.keys:
                yield f"{new_key} exists: the two become one"

    def _typed(self, session: SessionFacts, key: SessionKey) -> Verdict:
        """A key of three parts may also be what `/new` made of a chat whose id is a type word."""
        strangers = [address for address in _named(session) if address != key.chat_key]
        if strangers:
            return Verdict(
                MANUAL_REVIEW, CONFLICT, f"the key looks typed, but names: {', '.join(strangers)}"
            )
        leading = [chat for chat in session.overrides if not _leads_to(chat, key)]
        if leading:
            return Verdict(
                MANUAL_REVIEW, CONFLICT, f"the key looks typed, but is the session of {leading[0]}"
            )
        if not _named(session) and self._may_be_new(key):
            return Verdict(
                MANUAL_REVIEW, CONFLICT, "the key looks typed, but may be a /new of an older chat"
            )
        return Verdict(SKIP_TYPED, HIGH, "the key is typed")

    def _may_be_new(self, key: SessionKey) -> bool:
        """Is there a chat whose id is the type word, with which `/new` could have begun this session?"""
        is_new = NEW_SUFFIX.fullmatch(key.address.target_id) is not None
        return is_new and older_key(key) in self.facts.keys

    def _child(
        self, session: SessionFacts, key: SessionKey, task: str, own: tuple[Evidence, ...]
    ) -> Proposal:
        by_key = requester_of(session.key, task)
        fates = {self._requester(text) for text in (by_key, *session.requesters)} - {None}
        if not fates or (fates == {""} and own and not self._contested(by_key)):
            return self._proposal(session, _judge(key, own, session.addressless), own)
        if len(fates) > 1 or "" in fates:
            verdict = Verdict(KEEP_LEGACY, LOW, "its requester does not move as a whole")
            return self._proposal(session, verdict, own)
        requester = SessionKey.parse(str(fates.pop()))
        address = requester.address.chat_key
        evidence = own if address in _addresses(own) else (*own, Evidence(REQUESTER, address))
        verdict = _judge(key, evidence, session.addressless)
        if verdict.recommendation == RENAME:
            verdict = _below(requester, task, verdict)
        elif verdict.recommendation == SPLIT:
            verdict = Verdict(MANUAL_REVIEW, CONFLICT, "it names other chats than its requester")
        return self._proposal(session, verdict, evidence)

    def _requester(self, text: str) -> str | None:
        """Return the requester's typed key, "" if it stays as it is, None if there is none of that name."""
        if settled := self.facts.settled.get(text):
            return settled.moved_to
        if proposal := self.proposed.get(text):
            if proposal.recommendation == SKIP_TYPED:
                return text
            return proposal.new_key
        key = parsed(text)
        return text if key and key.typed and text in self.facts.keys else None

    def _contested(self, text: str) -> bool:
        """Does the requester itself name chats, so that copies of its history prove nothing?"""
        proposal = self.proposed.get(text)
        return text in self.facts.settled or bool(proposal and proposal.evidence)

    def _named_by_family(self) -> Mapping[ChatAddress, frozenset[str]]:
        """Return all chats that the sessions of one old number name, those that have moved already included."""
        named: dict[ChatAddress, set[str]] = {}
        for text, addresses in [
            *((key, _addresses(proposal.evidence)) for key, proposal in self.proposed.items()),
            *((key, settled.named) for key, settled in self.facts.settled.items()),
        ]:
            if family := _family(text):
                named.setdefault(family, set()).update(addresses)
        return {family: frozenset(addresses) for family, addresses in named.items()}

    def _children(self) -> dict[str, tuple[Child, ...]]:
        """Return the subagents' sessions that move with each requester."""
        children: dict[str, tuple[Child, ...]] = {}
        for requester, child in sorted(self._subagents(), key=lambda pair: pair[1].old):
            if child.new:
                children[requester] = (*children.get(requester, ()), child)
        return children

    def _subagents(self) -> Iterable[tuple[str, Child]]:
        """Yield every subagent's session with the key of its requester; a `new` of "" says that it stays."""
        for proposal in self.proposed.values():
            key = parsed(proposal.old_key)
            task = task_of(key) if key else ""
            if task and proposal.session is not None:
                child = Child(proposal.session, proposal.old_key, proposal.new_key)
                yield requester_of(proposal.old_key, task), child

    def _jobs_alone(self) -> Iterable[Proposal]:
        known = {*self.proposed, *self.facts.settled, *self.facts.keys}
        for text in sorted(self.jobs.keys() - known):
            fates = self.jobs.fates(text, address="", named=frozenset())
            if any(fate.outcome == DISABLE for fate in fates):
                yield Proposal(
                    None,
                    text,
                    DISABLE_CRON,
                    LOW,
                    affected=Affected(cron_jobs=len(fates), jobs=fates),
                    notes=("no session has the key of these jobs, and nothing names its chat",),
                )


def _judge(key: SessionKey, evidence: tuple[Evidence, ...], addressless: int) -> Verdict:
    addresses = _addresses(evidence)
    if not addresses:
        return Verdict(KEEP_LEGACY, LOW, "nothing names its chat")
    for part in evidence:
        # A requester has proved its chat already, or a person has decided it.
        address = ChatAddress.parse(part.chat_address)
        if part.source != REQUESTER and (objection := _objection(key, address)):
            return Verdict(MANUAL_REVIEW, CONFLICT, objection)
    by_turns = _addresses(part for part in evidence if part.source == TURNS)
    if len(addresses) == 1:
        sure = bool(by_turns) and not addressless
        new_key = str(key.at(ChatAddress.parse(addresses[0])))
        return Verdict(RENAME, HIGH if sure else MEDIUM, f"only {addresses[0]} is named", new_key)
    if len(by_turns) > 1 and set(by_turns) == set(addresses):
        targets = tuple(
            Target(address, str(key.at(ChatAddress.parse(address)))) for address in by_turns
        )
        return Verdict(SPLIT, CONFLICT, f"its turns name {len(by_turns)} chats", targets=targets)
    return Verdict(MANUAL_REVIEW, CONFLICT, f"it names {' and '.join(addresses)}")


def _objection(key: SessionKey, address: ChatAddress) -> str:
    """Return why this address cannot be the chat of this key, or ""."""
    if (address.channel, address.target_id) != (key.address.channel, key.address.target_id):
        return f"{address} is named, which is another chat than the key's"
    if address.channel in RESERVED_CHANNELS:
        return f"{address.channel} is the name of a channel of our own"
    if address.channel == "telegram" and _contradicts_sign(address):
        return f"{address} is named, but on Telegram private ids are positive and others negative"
    return ""


def _contradicts_sign(address: ChatAddress) -> bool:
    is_number = address.target_id.removeprefix("-").isdecimal()
    positive = not address.target_id.startswith("-")
    return is_number and positive != (address.target_type == "private")


def _is_default(verdict: Verdict) -> bool:
    """A plugin that filled only the bare fields of a message left every chat private."""
    if not verdict.new_key:
        return False
    address = SessionKey.parse(verdict.new_key).address
    return address.target_type == "private" and address.channel not in STATES_ITS_TYPES


def _below(requester: SessionKey, task: str, verdict: Verdict) -> Verdict:
    try:
        return replace(verdict, new_key=str(requester.subagent(task)))
    except AddressError as error:
        return Verdict(MANUAL_REVIEW, CONFLICT, str(error))


def _evidence(session: SessionFacts, jobs: Iterable[JobFacts]) -> tuple[Evidence, ...]:
    turns = sorted(session.named.items(), key=lambda pair: (-pair[1], pair[0]))
    stated = sorted({job.stated for job in jobs} - {""})
    return (
        *(Evidence(TURNS, address, count) for address, count in turns),
        *(Evidence(METADATA, address) for address in sorted(set(session.metadata))),
        *(Evidence(CRON_JOB, address) for address in stated),
    )


def _with_jobs(
    proposal: Proposal, jobs: Jobs, *, named: frozenset[str], children: tuple[Child, ...]
) -> Proposal:
    if proposal.recommendation == SKIP_TYPED:
        return proposal
    address = ""
    if proposal.recommendation == RENAME:
        address = SessionKey.parse(proposal.new_key).address.chat_key
    fates = jobs.fates(proposal.old_key, address=address, named=named)
    at_risk = sum(fate.outcome == DISABLE for fate in fates)
    affected = replace(
        proposal.affected,
        cron_jobs=len(fates),
        jobs=fates,
        children=children if proposal.recommendation == RENAME else (),
    )
    proposal = replace(proposal, affected=affected)
    if not at_risk:
        return proposal
    if proposal.recommendation == KEEP_LEGACY:
        proposal = replace(proposal, recommendation=DISABLE_CRON)
    return replace(proposal, notes=(*proposal.notes, f"jobs that would be switched off: {at_risk}"))


def _addresses(evidence: Iterable[Evidence]) -> list[str]:
    return list(dict.fromkeys(part.chat_address for part in evidence))


def _named(session: SessionFacts) -> list[str]:
    return sorted({*session.named, *session.metadata})


def _family(text: str) -> ChatAddress | None:
    """Return the untyped chat that all sessions of one old number share."""
    key = parsed(text)
    return key.address if key and not key.typed else None


def _leads_to(chat: str, key: SessionKey) -> bool:
    """A chat of the same number, typed or not, may have this session."""
    address = ChatAddress.parse(chat)
    return (address.channel, address.target_id) == (key.address.channel, key.address.target_id)


def _is_child(session: SessionFacts) -> bool:
    key = session.parsed
    return bool(key and task_of(key))
