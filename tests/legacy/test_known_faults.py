"""Faults that migrations of other systems had, and that this one must not have."""

from django.db import transaction

from memory_app.index import ITEMS, TURNS
from memory_app.models import MemoryItem, MemoryTurn, TurnKind
from memory_app.tokens import index_text
from memory_app.turns import NewTurn, append_turn
from nahida.legacy.apply import to_apply
from nahida.legacy.inspect import inspect
from nahida.legacy.running import apply_all
from scheduler_app.models import BackgroundTask
from sessions_app.models import MigrationLog, Session
from tests.legacy.imported import BASE, GROUP, old_session, old_task, old_turn, record
from tests.legacy.test_apply import GROUP_CHAT, ApplyCase
from tests.sessions_app.moving import index_entries


class KnownFaultTest(ApplyCase):
    def run_all(self) -> list[str]:
        return [outcome.result for outcome in apply_all(to_apply(), who="alice", allows=True)]

    def test_it_goes_on_after_it_was_broken_off(self):
        """A migration that says its source has changed, and refuses for ever.

        Three of six records were applied; the fourth session has got a turn meanwhile: it alone is looked at again.
        """
        keys = [f"milky:{number}" for number in range(1, 7)]
        for key in keys:
            old_session(key, key.replace(":", ":group:"))
        inspect(who="alice")
        for key in keys:
            self.decide(key)
        for key in keys[:3]:
            self.apply(key)
        old_turn(Session.objects.get(key=keys[3]), keys[3].replace(":", ":group:"))

        assert self.run_all() == ["stale", "renamed", "renamed"]
        inspect(who="alice")
        self.decide(keys[3])
        assert self.run_all() == ["renamed"]

        assert MigrationLog.objects.filter(result="renamed").count() == 6

    def test_it_leaves_nothing_out_of_lists_and_search(self):
        """The data are there, but lists and search are empty, because the new index was not filled."""
        old_session(BASE, *[GROUP] * 100)
        MemoryTurn.objects.update(search_tokens=index_text("tea"))
        for _ in range(10):
            MemoryItem.objects.create(
                kind="fact",
                scope_type="session",
                scope_id=BASE,
                search_tokens=index_text("tea"),
                imported={},
            )

        self.through()

        assert MemoryTurn.objects.filter(session__key=GROUP).count() == 200
        assert MemoryItem.objects.filter(scope_type="chat", scope_id=GROUP).count() == 10
        assert len({entry["row"] for entry in index_entries(TURNS)}) == 200
        assert len({entry["row"] for entry in index_entries(ITEMS)}) == 10

    def test_it_writes_no_more_to_the_old_key(self):
        """Old and new key side by side, and the system goes on writing to the old one."""
        old_session(BASE, *[GROUP] * 20)
        with transaction.atomic():
            append_turn(GROUP_CHAT, NewTurn(kind=TurnKind.MESSAGE, content="before"))
        self.through()

        with transaction.atomic():
            append_turn(GROUP_CHAT, NewTurn(kind=TurnKind.MESSAGE, content="after"))

        said = MemoryTurn.objects.filter(session__key=GROUP).order_by("pk")
        assert (said.count(), said.latest("pk").content) == (42, "after")
        assert Session.objects.count() == 1

    def test_it_changes_no_key_that_only_begins_alike(self):
        """A replacement of text changed other ids, and what people had written."""
        for key in ("milky:1000", "milky:10001", "milky:1000:ab"):
            old_session(key, "milky:group:1000" if key == "milky:1000" else "")
        base = Session.objects.get(key="milky:1000")
        MemoryTurn.objects.filter(session=base).update(content="see milky:1000")
        child = old_session("milky:1000:subagent:t1")
        old_task(base, child)

        self.through("milky:1000")

        assert set(Session.objects.values_list("key", flat=True)) == {
            "milky:group:1000",
            "milky:10001",
            "milky:1000:ab",
            "milky:group:1000:subagent:t1",
        }
        assert set(base.turns.values_list("content", flat=True)) == {"see milky:1000"}
        assert BackgroundTask.objects.get().child == child

    def test_it_keeps_what_memory_says_of_its_origin(self):
        """The tie of a memory to its owner was dropped before anybody had decided where it goes."""
        session = old_session(BASE, GROUP)
        item = MemoryItem.objects.create(
            kind="fact",
            scope_type="global",
            scope_id="__global__",
            source_session=session,
            evidence=[{"session_id": BASE}],
            held=True,
            imported={},
        )

        self.through()

        item.refresh_from_db()
        assert (item.scope_id, item.held) == ("__global__", True)
        assert item.evidence == [{"session_id": BASE}]
        assert item.source_session is not None
        assert item.source_session.key == record().new_key
