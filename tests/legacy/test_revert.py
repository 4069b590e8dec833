"""An applied record is taken back exactly, or refused with the rows that stand in the way."""

from typing import Any

from channels_app.addresses import ChatAddress
from memory_app.models import DreamState, MemoryCandidate, MemoryItem, TurnKind
from memory_app.turns import NewTurn, append_turn
from nahida.legacy.ground import BusyError
from nahida.legacy.inspect import inspect
from nahida.legacy.revert import RevertError, revert
from scheduler_app.models import CronJob
from sessions_app import lanes
from sessions_app.models import Chat, Lane, MigrationLog, Session
from sessions_app.routing import chat_for
from tests.legacy.imported import (
    BASE,
    GROUP,
    PRIVATE,
    old_job,
    old_session,
    old_task,
    override,
    record,
)
from tests.legacy.test_apply import GROUP_CHAT, NEW, ApplyCase
from tests.sessions_app.moving import rows


class RevertTest(ApplyCase):
    def furnish(self, *origins: str) -> Session:
        """An old session with everything that can hang on one."""
        base = old_session(BASE, *origins)
        old_task(base, old_session(f"{BASE}:subagent:t1"))
        override(BASE, base)
        old_job()
        DreamState.objects.create(session=base, dreamt_to=1)
        scope = {"scope_type": "session", "scope_id": BASE, "source_session": base}
        MemoryItem.objects.create(
            kind="fact", search_tokens="tea", source_turn=base.turns.first(), imported={}, **scope
        )
        MemoryCandidate.objects.create(kind="fact", **scope)
        return base

    def there_and_back(self, approval: str = "approved", **forced: Any) -> str:
        """Apply and revert; every row is as it was. Return the result that was."""
        inspect(who="alice")
        self.decide(BASE, approval, **forced)
        before = rows()
        result = self.apply().result
        assert rows() != before

        revert(record().pk, who="bob")

        assert rows() == before
        assert record().result == "reverted"
        assert record().history[-1] | {"at": ""} == {
            "what": "reverted",
            "who": "bob",
            "at": "",
            "was": result,
        }
        return result

    def test_it_takes_back_a_rename(self):
        self.furnish(GROUP)

        assert self.there_and_back() == "renamed"
        assert record(f"{BASE}:subagent:t1").result == "reverted"

    def test_it_takes_back_a_merge(self):
        """Into a chat that has been at work since."""
        self.furnish(GROUP, GROUP)
        self.live("hello")

        assert self.there_and_back() == "merged"

    def test_it_takes_back_a_split(self):
        self.furnish(PRIVATE, GROUP, PRIVATE)

        assert self.there_and_back() == "split"

    def test_it_takes_back_a_split_into_sessions_that_are_there(self):
        self.furnish(PRIVATE, GROUP, PRIVATE)
        self.live("hello")

        assert self.there_and_back() == "split"

    def test_it_takes_back_what_was_kept_or_switched_off(self):
        self.furnish()
        assert self.there_and_back() == "cron_disabled"

        assert self.there_and_back("force_keep_legacy") == "kept_legacy"

    def test_it_takes_back_what_a_person_forced(self):
        self.furnish()

        assert self.there_and_back("force_rename", new_key=f"{PRIVATE}:{NEW}") == "renamed"

    def test_it_can_be_applied_anew(self):
        self.furnish(GROUP)
        self.there_and_back()

        inspect(who="alice")
        self.decide()

        assert self.apply().result == "renamed"
        assert MigrationLog.objects.filter(old_key=BASE).count() == 2

    def live(self, text: str) -> None:
        chat = chat_for(GROUP_CHAT)
        append_turn(lanes.lock(chat.address), NewTurn(kind=TurnKind.MESSAGE, content=text))

    def refuse(self, key: str = BASE) -> RevertError:
        before = rows()

        with self.assertRaises(RevertError) as caught:
            revert(record(key).pk, who="bob")

        assert rows() == before
        assert record(key).result != "reverted"
        return caught.exception

    def test_it_refuses_where_messages_came_later(self):
        old_session(BASE, GROUP)
        self.through()
        self.live("hello")

        refusal = self.refuse()

        assert any("memory_app.MemoryTurn" in row for row in refusal.rows), refusal.rows
        assert BASE in str(refusal)

    def test_it_takes_back_the_newest_first(self):
        """Two sessions of one chat: the chat was made by the first."""
        old_session(BASE, GROUP)
        old_session(f"{BASE}:{NEW}", GROUP)
        before = rows()
        self.through(BASE, f"{BASE}:{NEW}")

        assert "revert it first" in str(self.refuse())
        revert(record(f"{BASE}:{NEW}").pk, who="bob")
        revert(record(BASE).pk, who="bob")

        assert rows() == before

    def test_it_takes_back_one_of_two_that_share_nothing(self):
        old_session("milky:1", "milky:group:1")
        old_session("milky:2", "milky:group:2")
        self.through("milky:1", "milky:2")

        revert(record("milky:1").pk, who="bob")

        assert set(Session.objects.values_list("key", flat=True)) == {"milky:1", "milky:group:2"}

    def test_it_refuses_where_the_owner_has_changed_what_it_made(self):
        old_session(BASE, GROUP)
        self.through()
        Chat.objects.filter(chat_key=GROUP).update(access="blocked")

        assert "access is now 'blocked', not 'allowed'" in str(self.refuse())

    def test_it_refuses_where_a_job_has_run_since(self):
        old_session(BASE, GROUP)
        old_job()
        self.through()
        CronJob.objects.update(next_fire_at=None)

        assert "scheduler_app.CronJob" in str(self.refuse())

    def test_it_waits_for_a_lane_that_is_at_work(self):
        old_session(BASE, GROUP)
        self.through()
        self.live("hello")
        assert lanes.claim(Lane.objects.get().pk)

        with self.assertRaises(BusyError):
            revert(record().pk, who="bob")

    def test_it_says_that_there_is_nothing_to_take_back(self):
        old_session(BASE, GROUP)
        inspect(who="alice")
        assert "it is open" in str(self.refuse())
        self.decide(BASE, "rejected")
        self.apply()
        assert "rejected" in str(self.refuse())

    def test_it_says_that_it_knows_no_such_record(self):
        with self.assertRaisesRegex(RevertError, "no record 0"):
            revert(0, who="bob")

    def test_it_reverts_once(self):
        old_session(BASE, GROUP)
        self.through()
        revert(record().pk, who="bob")

        with self.assertRaisesRegex(RevertError, "reverted already"):
            revert(record().pk, who="bob")

    def test_it_takes_back_what_followed_a_chat_that_had_moved(self):
        """The lanes and rows of the successor are as they were."""
        old_session("telegram:-4", "telegram:group:-4")
        chat_for(ChatAddress("telegram", "group", "-4"))
        before = rows()
        self.through("telegram:-4")

        revert(record("telegram:-4").pk, who="bob")

        assert rows() == before
