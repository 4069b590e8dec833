"""Random old databases: nothing is lost on the way, nothing contradicts its own envelope, and everything comes back."""

import io
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db.models import F
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from channels_app.addresses import AddressError, ChatAddress
from memory_app.models import MemoryTurn
from nahida.legacy.apply import to_apply
from nahida.legacy.decide import DecisionError, decide
from nahida.legacy.inspect import inspect
from nahida.legacy.revert import revert
from nahida.legacy.running import apply_all
from sessions_app.models import Lane, MigrationLog, Session
from tests.legacy.builder import OldDatabase
from tests.sessions_app.moving import rows

# Few ids, so that they meet: one is a prefix of another, one a wildcard, one a type word, one not a number.
CHANNELS = ("milky", "telegram", "x")
IDS = ("1", "10", "-1", "1_", "group", "!r")
SUFFIXES = ("", "", ":abcd1234", ":0badcafe", ":subagent:t1", ":abcd1234:subagent:t2", ":cron:j1")
CHATS = ("", "", "private", "group", "channel", "unknown")

keys = st.builds(
    lambda channel, unknown, number, suffix: f"{channel}:{unknown}{number}{suffix}",
    st.sampled_from(CHANNELS),
    st.sampled_from(["", "", "", "unknown:", "group:"]),
    st.sampled_from(IDS),
    st.sampled_from(SUFFIXES),
)
odd_keys = st.sampled_from(["onlyone", "milky:", "matrix:!room:example.org", "agent:t9"])
decisions = st.sampled_from(["approved"] * 6 + ["rejected", "force_keep_legacy", "pending"])


# The chat type its envelope names, a foreign id or "", and whether the bot spoke.
turns = st.tuples(st.sampled_from(CHATS), st.sampled_from(["", "", "", "", "99"]), st.booleans())


@st.composite
def databases(draw: Any) -> dict[str, Any]:
    sessions = draw(st.lists(st.one_of(keys, keys, keys, odd_keys), unique=True, max_size=8))
    named = st.sampled_from(sessions) if sessions else keys
    return {
        "sessions": {key: draw(st.lists(turns, max_size=5)) for key in sessions},
        "overrides": draw(st.dictionaries(keys, named, max_size=2)),
        "jobs": draw(st.lists(keys, max_size=3)),
        "tasks": draw(st.lists(st.tuples(named, named), max_size=2)),
        "items": draw(st.lists(st.tuples(st.sampled_from(["session", "chat"]), named), max_size=2)),
    }


def write(path: Path, database: dict[str, Any]) -> None:
    with OldDatabase(path) as old:
        for key, said in database["sessions"].items():
            old.session(key)
            for chat_type, foreign, is_answer in said:
                _turn(old, key, chat_type, foreign, is_answer=is_answer)
        for chat_key, key in database["overrides"].items():
            old.override(chat_key, key)
        for number, key in enumerate(database["jobs"]):
            old.job(key, job_id=f"j{number}")
        for number, (requester, child) in enumerate(database["tasks"]):
            old.task(requester, child, task_id=f"t{number}")
        for number, (scope_type, key) in enumerate(database["items"]):
            old.item(f"mem_{number}", scope_type=scope_type, scope_id=key)


def _turn(old: OldDatabase, key: str, chat_type: str, foreign: str, *, is_answer: bool) -> None:
    channel, _, rest = key.partition(":")
    number = foreign or rest.removeprefix("unknown:").removeprefix("group:").partition(":")[0]
    if is_answer:
        old.answer(key)
    elif chat_type and number:
        old.turn(key, chat=f"{channel}:{chat_type}:{number}")
    else:
        old.turn(key)


def contradictions() -> Counter[str]:
    """Count the turns in typed sessions whose own envelope names another chat, by session."""
    found: Counter[str] = Counter()
    for session in Session.objects.exclude(chat=None).exclude(chat__target_type="unknown"):
        for turn in session.turns.exclude(role="assistant").exclude(origin=""):
            if _named(turn) not in ("", session.session_key.chat_key):
                found[session.key] += 1
    return found


def astray() -> set[int]:
    """Return the lanes of typed chats whose active session is of another chat."""
    lanes = Lane.objects.exclude(chat__target_type="unknown")
    return set(lanes.exclude(active_session__chat=F("chat")).values_list("pk", flat=True))


def _named(turn: MemoryTurn) -> str:
    try:
        address = ChatAddress.parse(turn.origin)
    except AddressError:
        return ""
    return address.chat_key if address.typed else ""


class RandomTest(TestCase):
    @settings(max_examples=60)
    @given(databases(), st.data())
    def test_it_moves_nothing_wrongly_and_everything_back(
        self, database: dict[str, Any], data: Any
    ):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder, "old.db"), database)
            silent = {"stdout": io.StringIO(), "stderr": io.StringIO()}
            call_command("import_legacy", str(Path(folder, "old.db")), **silent)
        inspect(who="alice")
        for record in MigrationLog.objects.filter(result="").order_by("pk"):
            self.decide(record, data.draw(decisions))
        imported, doubtful, strayed = rows(), contradictions(), astray()
        said = Counter(MemoryTurn.objects.values_list("pk", "content", "role"))

        outcomes = list(apply_all(to_apply(), who="alice", allows=True))

        assert {outcome.result for outcome in outcomes if outcome.is_open} <= {"failed"}, outcomes
        for outcome in outcomes:
            assert not outcome.is_open or self.is_explained(outcome.reason), outcome
        assert contradictions() == doubtful
        assert Counter(MemoryTurn.objects.values_list("pk", "content", "role")) == said
        assert astray() <= strayed
        self.take_back()
        assert rows() == imported

    def decide(self, record: MigrationLog, approval: str) -> None:
        try:
            decide(record, approval, who="alice")
        except DecisionError:
            return  # that one cannot be decided so

    def is_explained(self, reason: str) -> bool:
        return any(said in reason for said in ("its requester is not", "in doubt itself"))

    def take_back(self) -> None:
        applied = MigrationLog.objects.filter(undo__isnull=False).exclude(result="reverted")
        while record := applied.order_by("-undo__pk").first():
            revert(record.pk, who="alice")
