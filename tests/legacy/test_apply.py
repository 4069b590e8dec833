"""An applied record, line by line of the acceptance list: what moves, what stays, and what the log says."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.test import TestCase
from django.utils import timezone

from channels_app.addresses import ChatAddress
from memory_app.index import ITEMS
from memory_app.models import DreamState, MemoryCandidate, MemoryItem, MemoryTurn
from memory_app.turns import requeue
from nahida.legacy.apply import Outcome, apply_record
from nahida.legacy.decide import decide
from nahida.legacy.inspect import inspect
from nahida.legacy.records import status
from scheduler_app.models import CronJob
from sessions_app import rekey
from sessions_app.lanes import claim, wake
from sessions_app.models import Access, Chat, Lane, MigrationLog, Session
from sessions_app.routing import chat_for
from tests.legacy.imported import (
    BASE,
    GROUP,
    PRIVATE,
    old_job,
    old_session,
    old_task,
    old_turn,
    override,
    record,
)
from tests.sessions_app.moving import before_statement, index_entries

NEW = "abcd1234"


class ApplyCase(TestCase):
    def decide(self, key: str = BASE, approval: str = "approved", **forced: Any) -> MigrationLog:
        return decide(record(key), approval, who="alice", **forced)

    def apply(self, key: str = BASE, *, allows: bool = True) -> Outcome:
        return apply_record(record(key).pk, who="alice", allows=allows)

    def through(self, *keys: str) -> list[Outcome]:
        """Inspect, approve and apply, in the order of the plan."""
        inspect(who="alice")
        for key in keys or (BASE,):
            self.decide(key)
        return [self.apply(key) for key in keys or (BASE,)]

    def texts(self, key: str) -> list[int]:
        return list(
            MemoryTurn.objects.filter(session__key=key).order_by("pk").values_list("pk", flat=True)
        )

    def typed(self, address: ChatAddress, suffix: str = "") -> Session:
        """A session of the new bot, as a message would have begun it."""
        chat = chat_for(address)
        key = f"{address}:{suffix}" if suffix else str(address)
        return Session.objects.create(key=key, suffix=suffix, chat=chat)


GROUP_CHAT = ChatAddress("milky", "group", "10001")
PRIVATE_CHAT = ChatAddress("milky", "private", "10001")


class RenameTest(ApplyCase):
    def test_it_gives_a_session_its_typed_key(self):
        """The old row is gone, its turns belong to the new key, and the log says so."""
        session = old_session(BASE, GROUP)
        Session.objects.filter(pk=session.pk).update(legacy_untyped=True)
        turns = self.texts(BASE)

        (outcome,) = self.through()

        assert (outcome.result, outcome.new_key) == ("renamed", GROUP)
        assert not Session.objects.filter(key=BASE).exists()
        renamed = Session.objects.get(key=GROUP)
        assert (renamed.pk, renamed.suffix, renamed.legacy_untyped) == (session.pk, "", False)
        assert str(renamed.chat) == GROUP
        assert self.texts(GROUP) == turns
        done = record()
        assert (done.result, done.new_key, done.history[-1]["who"]) == ("renamed", GROUP, "alice")

    def test_it_lets_the_chat_in(self):
        """Its members were users already; what the owner has blocked stays blocked, and he may say otherwise."""
        for number, (access, allows, left) in enumerate(
            [
                (None, True, Access.ALLOWED),
                (Access.PENDING, True, Access.ALLOWED),
                (Access.PENDING, False, Access.PENDING),
                (Access.BLOCKED, True, Access.BLOCKED),
            ]
        ):
            address = ChatAddress("milky", "group", f"5{number}")
            if access:
                Chat.objects.filter(pk=chat_for(address).pk).update(access=access)
            old_session(f"milky:5{number}", str(address))
            inspect(who="alice")
            self.decide(f"milky:5{number}")

            self.apply(f"milky:5{number}", allows=allows)

            assert Chat.objects.get(chat_key=str(address)).access == left

    def test_it_takes_the_override_along(self):
        session = old_session(f"{BASE}:{NEW}", GROUP)
        override(BASE, session)

        self.through(session.key)

        lane = Lane.objects.get()
        assert (str(lane.address), lane.active_session.key) == (GROUP, f"{GROUP}:{NEW}")

    def test_it_leaves_the_override_of_another_session(self):
        """If the session stays, the override stays; no override ever points to nothing."""
        old_session(BASE, GROUP)
        override(BASE, old_session(f"{BASE}:{NEW}"))

        self.through()

        lane = Lane.objects.get()
        assert (str(lane.chat), lane.active_session.key) == ("milky:unknown:10001", f"{BASE}:{NEW}")

    def test_it_logs_the_override_that_stays_with_its_session(self):
        session = old_session(f"{BASE}:{NEW}", GROUP)
        override(BASE, session)
        inspect(who="alice")
        self.decide(session.key, "force_keep_legacy")

        self.apply(session.key)

        assert record(session.key).history[-1]["overrides_left"] == ["milky:unknown:10001"]
        assert str(Lane.objects.get().chat) == "milky:unknown:10001"

    def test_it_leaves_an_override_of_another_number(self):
        session = old_session(f"{BASE}:{NEW}", GROUP)
        override("milky:7", session)

        self.through(session.key)

        lane = Lane.objects.get()
        assert (str(lane.chat), lane.active_session.pk) == ("milky:unknown:7", session.pk)
        assert record(session.key).history[-1]["overrides_left"] == ["milky:unknown:7"]

    def test_it_takes_the_task_ledger_along(self):
        """The requester's and the child's key are typed, the tail kept."""
        base = old_session(BASE, GROUP)
        task = old_task(base, old_session(f"{BASE}:subagent:t1"))

        self.through()

        task.refresh_from_db()
        assert task.requester.key == GROUP
        assert task.child is not None
        assert task.child.key == f"{GROUP}:subagent:t1"
        assert record(f"{BASE}:subagent:t1").result == "renamed"
        assert record(f"{BASE}:subagent:t1").history[-1]["along_with"] == record().pk

    def test_it_leaves_a_child_that_was_decided_otherwise(self):
        for approval, result in [("rejected", "rejected"), ("force_keep_legacy", "kept_legacy")]:
            number = f"milky:6{len(approval)}"
            old_session(number, number.replace(":", ":group:"))
            child = old_session(f"{number}:subagent:t1")
            inspect(who="alice")
            self.decide(number)
            self.decide(child.key, approval)

            self.apply(number)
            self.apply(child.key)

            child.refresh_from_db()
            assert (child.key, record(child.key).result) == (f"{number}:subagent:t1", result)

    def test_it_does_not_move_a_child_before_its_requester(self):
        old_session(BASE, GROUP)
        child = old_session(f"{BASE}:subagent:t1")

        (outcome,) = self.through(child.key)

        assert outcome.result == "failed"
        assert f"its requester is not {GROUP} yet" in outcome.reason
        self.decide()
        self.apply()
        assert Session.objects.filter(key=f"{GROUP}:subagent:t1").exists()

    def test_it_leaves_a_child_that_has_come_to_name_another_chat(self):
        """What was decided about its requester is not about that."""
        old_session(BASE, GROUP)
        child = old_session(f"{BASE}:subagent:t1")
        inspect(who="alice")
        self.decide()
        old_turn(child, PRIVATE)
        inspect(who="alice")

        assert self.apply().result == "renamed"

        child.refresh_from_db()
        assert child.key == f"{BASE}:subagent:t1"

    def test_it_takes_items_candidates_and_index_along(self):
        session = old_session(BASE, GROUP)
        scope = {"scope_type": "session", "scope_id": BASE, "search_tokens": "tea", "imported": {}}
        item = MemoryItem.objects.create(kind="fact", source_session=session, **scope)
        candidate = MemoryCandidate.objects.create(
            kind="fact", scope_type="session", scope_id=BASE, source_session=session
        )
        other = MemoryItem.objects.create(
            kind="fact", scope_type="global", scope_id=BASE, imported={}
        )
        before = list(index_entries(ITEMS))

        self.through()

        for row in (item, candidate):
            row.refresh_from_db()
            assert (row.scope_type, row.scope_id) == ("chat", GROUP)
        other.refresh_from_db()
        assert other.scope_type == "global"
        assert len(list(index_entries(ITEMS))) == len(before)

    def test_it_does_not_give_one_chat_what_two_of_its_number_may_have_said(self):
        """An item in the scope of the whole old chat stays, if another session of the number names another chat."""
        old_session(BASE, PRIVATE)
        old_session(f"{BASE}:{NEW}", GROUP)
        item = MemoryItem.objects.create(kind="fact", scope_type="chat", scope_id=BASE, imported={})

        self.through()

        item.refresh_from_db()
        assert item.scope_id == BASE

    def test_it_moves_exact_families_only(self):
        """Ids that are a prefix, or hold what is a wildcard elsewhere, are others."""
        keys = ["dev_bot:9_1", "dev_bot:9x1", "devXbot:9_1", "dev_bot:9_11", "dev_bot:9%1"]
        for key in keys:
            old_session(key)
        old_turn(Session.objects.get(key=keys[0]), "dev_bot:group:9_1")

        self.through(keys[0])

        assert set(Session.objects.values_list("key", flat=True)) == {
            "dev_bot:group:9_1",
            *keys[1:],
        }

    def test_it_follows_a_chat_that_has_moved_since(self):
        """The group was upgraded while the old history waited."""
        old_session("telegram:-4200017", "telegram:group:-4200017")
        chat = chat_for(ChatAddress("telegram", "group", "-4200017"))
        moved = ChatAddress("telegram", "group", "-1004200017")
        rekey.move_chat(chat, moved, reason="upgrade", requeue=requeue)

        (outcome,) = self.through("telegram:-4200017")

        assert outcome.new_key == record("telegram:-4200017").new_key == str(moved)

    def test_it_takes_all_turns_where_a_person_says_so(self):
        session = old_session("onlyone", "")
        inspect(who="alice")
        self.decide("onlyone", "force_rename", new_key=f"{GROUP}:{NEW}")

        outcome = self.apply("onlyone")

        session.refresh_from_db()
        assert (outcome.result, session.key, session.suffix) == ("renamed", f"{GROUP}:{NEW}", NEW)
        assert session.chat is not None
        assert session.chat.address == GROUP_CHAT

    def test_it_checks_a_forced_key_again(self):
        old_session("onlyone")
        inspect(who="alice")
        self.decide("onlyone", "force_rename", new_key=GROUP)
        MigrationLog.objects.update(new_key=BASE)

        outcome = self.apply("onlyone")

        assert outcome.result == "failed"
        assert "has no chat type" in outcome.reason
        assert Session.objects.filter(key="onlyone").exists()


class MergeTest(ApplyCase):
    def test_it_merges_into_the_session_that_is_there(self):
        """Earlier creation, later activity as instants; what both have set is as the typed one had it."""
        late, early = (datetime(2030 + n, 1, 1, tzinfo=UTC) for n in (1, 0))
        old = old_session(BASE, *[GROUP] * 20)
        new = self.typed(GROUP_CHAT)
        for _ in range(5):
            old_turn(new, GROUP)
        Session.objects.filter(pk=old.pk).update(
            created_at=early, last_active_at=early, settings={"model": "a", "x": 1}, title="tea"
        )
        Session.objects.filter(pk=new.pk).update(
            created_at=late, last_active_at=late + timedelta(days=1), settings={"model": "b"}
        )

        (outcome,) = self.through()

        assert (outcome.result, outcome.new_key, record().new_key) == ("merged", GROUP, GROUP)
        new.refresh_from_db()
        assert (new.created_at, new.last_active_at) == (early, late + timedelta(days=1))
        assert (new.settings, new.title) == ({"model": "b", "x": 1}, "tea")
        assert len(self.texts(GROUP)) == 45
        assert not Session.objects.filter(pk=old.pk).exists()

    def test_it_takes_two_old_keys_to_one(self):
        """Both end there, with a record each."""
        for key in ("milky:5", "milky:unknown:5"):
            old_session(key, "milky:group:5")

        outcomes = self.through("milky:5", "milky:unknown:5")

        assert [outcome.result for outcome in outcomes] == ["renamed", "merged"]
        assert [one.new_key for one in MigrationLog.objects.all()] == ["milky:group:5"] * 2
        assert len(self.texts("milky:group:5")) == 4

    def test_it_moves_as_many_turns_as_were_planned(self):
        """One that comes in between the look and the move is not taken along unseen."""
        old = old_session(BASE, GROUP)
        self.typed(GROUP_CHAT)
        inspect(who="alice")
        self.decide()

        with before_statement("SELECT MIN(", "memory_app_memoryturn", act=lambda: old_turn(old)):
            outcome = self.apply()

        assert outcome.result == "failed"
        assert "3 memory_turns would have moved, 2 were planned" in outcome.reason
        assert Session.objects.filter(key=BASE).exists()

    def test_it_wakes_nobody_and_leaves_what_waits(self):
        """A message that came before the migration waits in the typed session, and goes on waiting."""
        old_session(BASE, GROUP)
        lane = Lane.objects.create(chat=chat_for(GROUP_CHAT), active_session=self.typed(GROUP_CHAT))
        before = Lane.objects.values().get()

        self.through()

        assert Lane.objects.values().get() == before
        assert lane.active_session.key == GROUP

    def test_it_keeps_the_old_override_where_the_typed_chat_has_none(self):
        session = old_session(f"{BASE}:{NEW}", GROUP)
        override(BASE, session)
        Lane.objects.create(chat=chat_for(GROUP_CHAT), active_session=self.typed(GROUP_CHAT))

        self.through(session.key)

        assert Lane.objects.get().active_session.key == f"{GROUP}:{NEW}"

    def test_it_keeps_the_typed_override_and_logs_the_old_one(self):
        session = old_session(f"{BASE}:{NEW}", GROUP)
        override(BASE, session)
        begun = self.typed(GROUP_CHAT, "0badcafe")
        Lane.objects.create(chat=chat_for(GROUP_CHAT), active_session=begun)

        self.through(session.key)

        assert Lane.objects.get().active_session == begun
        assert record(session.key).history[-1]["overrides_given_up"] == ["milky:unknown:10001"]

    def test_it_dreams_again_what_only_one_side_had_dreamt(self):
        old = old_session(BASE, GROUP)
        new = self.typed(GROUP_CHAT)
        for session, to in [(old, 90), (new, 40)]:
            DreamState.objects.create(session=session, dreamt_to=to)

        self.through()

        assert DreamState.objects.get().dreamt_to == 40

    def test_it_does_not_join_a_session_that_is_in_doubt(self):
        """What looks typed may be the `/new` of an old chat whose id is a type word."""
        doubted = old_session("milky:group:10001", "milky:private:10001")
        old_session(BASE, GROUP)

        (outcome,) = self.through()

        assert outcome.result == "failed"
        assert "in doubt itself" in outcome.reason
        assert doubted.turns.count() == 2


class StayTest(ApplyCase):
    def test_it_marks_what_is_kept(self):
        session = old_session(BASE)

        (outcome,) = self.through()

        session.refresh_from_db()
        assert (outcome.result, session.key, session.legacy_untyped) == ("kept_legacy", BASE, True)

    def test_it_changes_nothing_that_was_rejected(self):
        session = old_session(BASE, GROUP)
        job = old_job()
        inspect(who="alice")
        self.decide(BASE, "rejected")
        before = (Session.objects.values().get(), CronJob.objects.values().get())

        outcome = self.apply()

        assert (Session.objects.values().get(), CronJob.objects.values().get()) == before
        assert (outcome.result, record().result, job.active) == ("rejected", "rejected", True)
        assert session.key == BASE

    def test_it_does_nothing_undecided(self):
        old_session(BASE, GROUP)
        inspect(who="alice")

        assert self.apply().result == "pending"
        assert record().history == []

    def test_it_does_nothing_twice(self):
        old_session(BASE, GROUP)
        self.through()
        before = [list(model.objects.values()) for model in (MigrationLog, Session, Chat)]

        assert self.apply().result == "already applied"
        assert [list(model.objects.values()) for model in (MigrationLog, Session, Chat)] == before

    def test_it_refuses_what_has_changed_since(self):
        old = old_session(BASE, GROUP)
        inspect(who="alice")
        self.decide()
        old_turn(old, GROUP)

        outcome = self.apply()

        assert (outcome.result, status(record())) == ("stale", "stale")
        assert "inspect again" in record().reason
        assert Session.objects.filter(key=BASE).exists()

    def test_it_waits_for_a_lane_that_is_at_work(self):
        old_session(BASE, GROUP)
        lane = Lane.objects.create(chat=chat_for(GROUP_CHAT), active_session=self.typed(GROUP_CHAT))
        wake(lane)
        assert claim(lane.pk)

        (outcome,) = self.through()

        assert (outcome.result, status(record())) == ("busy", "busy")
        assert f"{GROUP} is at work" in record().reason
        Lane.objects.update(token=None)
        assert self.apply().result == "merged"

    def test_it_leaves_the_others_be_when_one_fails(self):
        """The failed one is rolled back alone, and is tried again by the next run."""
        for number in (1, 2, 3):
            old_session(f"milky:{number}", f"milky:group:{number}")
        old_job("milky:2")
        inspect(who="alice")
        for number in (1, 2, 3):
            self.decide(f"milky:{number}")
        CronJob.objects.all().delete()
        MigrationLog.objects.filter(old_key="milky:2").update(fingerprint="0")

        results = [self.apply(f"milky:{number}").result for number in (1, 2, 3)]

        assert results == ["renamed", "stale", "renamed"]
        assert Session.objects.filter(key="milky:2").exists()


class SplitTest(ApplyCase):
    def split(self, *, dreamt_to: int | None = None) -> Session:
        self.old = old_session(BASE, PRIVATE, GROUP, PRIVATE)
        if dreamt_to is not None:
            DreamState.objects.create(session=self.old, dreamt_to=dreamt_to)
        self.pks = self.texts(BASE)
        self.through()
        return self.old

    def test_it_gives_each_listed_turn_to_its_chat(self):
        """The shell stays, marked; the answers between two chats stay in it."""
        shell = self.split()

        assert self.texts(PRIVATE) == [self.pks[0], *self.pks[4:]]
        assert self.texts(GROUP) == [self.pks[2]]
        assert self.texts(BASE) == [self.pks[1], self.pks[3]]
        shell.refresh_from_db()
        assert (shell.legacy_untyped, record().result) == (True, "split")

    def test_it_divides_times_and_settings(self):
        shell = self.split()

        part = Session.objects.get(key=PRIVATE)
        first, last = (
            MemoryTurn.objects.get(pk=pk).created_at for pk in (self.pks[0], self.pks[5])
        )
        assert (part.created_at, part.last_active_at) == (first, last)
        assert part.imported == {"source": "old", "split_from": BASE}
        assert part.imported_at == shell.imported_at

    def test_it_was_dreamt_as_far_as_the_whole(self):
        self.split(dreamt_to=3)

        assert set(DreamState.objects.values_list("session__key", "dreamt_to")) == {
            (BASE, 3),
            (PRIVATE, 3),
            (GROUP, 3),
        }

    def test_it_joins_a_session_that_is_there(self):
        new = self.typed(GROUP_CHAT)
        DreamState.objects.create(session=new, dreamt_to=10**6)
        born = new.created_at
        Session.objects.filter(pk=new.pk).update(created_at=timezone.now() + timedelta(days=1))

        self.split(dreamt_to=3)

        new.refresh_from_db()
        assert self.texts(GROUP) == [self.pks[2]]
        assert new.created_at >= born
        assert new.created_at < timezone.now()
        assert DreamState.objects.get(session=new).dreamt_to == 3

    def test_it_leaves_what_nobody_may_divide(self):
        """Jobs are switched off, children, overrides and memory stay with the shell."""
        base = old_session(BASE, PRIVATE, GROUP)
        child = old_session(f"{BASE}:subagent:t1")
        task = old_task(base, child)
        job = old_job()
        item = MemoryItem.objects.create(
            kind="fact", scope_type="session", scope_id=BASE, imported={}
        )
        override(BASE, base)

        self.through()

        for row in (child, task, job, item):
            row.refresh_from_db()
        assert (child.key, task.requester_id) == (f"{BASE}:subagent:t1", base.pk)
        assert (item.scope_type, item.scope_id) == ("session", BASE)
        assert (job.active, job.chat) == (False, None)
        assert "the chat type is unknown" in job.last_error
        assert Lane.objects.get().active_session == base
        assert record().history[-1]["overrides_left"] == ["milky:unknown:10001"]

    def test_it_moves_the_listed_turns_alone(self):
        old = old_session(BASE, PRIVATE, GROUP)
        pks = self.texts(BASE)
        inspect(who="alice")
        target = {"chat_address": GROUP, "new_session_id": GROUP, "turn_ids": [pks[2]]}
        self.decide(BASE, "force_split", targets=[target])

        self.apply()

        assert (self.texts(GROUP), self.texts(BASE)) == ([pks[2]], [pks[0], pks[1], pks[3]])
        assert not Session.objects.filter(key=PRIVATE).exists()
        assert old.turns.count() == 3

    def test_it_checks_forced_turns_again(self):
        """None may go where its own envelope contradicts, and all must still be there."""
        old_session(BASE, PRIVATE, GROUP)
        pks = self.texts(BASE)
        inspect(who="alice")
        target = {"chat_address": GROUP, "new_session_id": GROUP, "turn_ids": [pks[2]]}
        self.decide(BASE, "force_split", targets=[target])
        for turns, said in [([pks[0]], "came from"), ([pks[2], 10**6], "is not of")]:
            MigrationLog.objects.update(targets=[{**target, "turn_ids": turns}])

            outcome = self.apply()

            assert outcome.result == "failed"
            assert said in outcome.reason
            assert self.texts(BASE) == pks
