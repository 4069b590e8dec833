"""What the rows of an import say about a session."""

from django.test import TestCase

from memory_app.models import MemoryItem
from nahida.legacy.facts import SessionFacts
from nahida.legacy.gather import gather
from nahida.legacy.inspect import inspect
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


def facts(key: str = BASE) -> SessionFacts:
    (found,) = (one for one in gather().sessions if one.key == key)
    return found


class GatherTest(TestCase):
    def test_it_counts_the_turns_that_name_a_chat(self):
        session = old_session(BASE, GROUP, GROUP, PRIVATE)
        old_turn(session, GROUP, source="group_observation")

        assert facts().named == {GROUP: 3, PRIVATE: 1}
        assert (facts().turns, facts().addressless) == (7, 0)

    def test_it_counts_no_assistants_turn_for_or_against(self):
        session = old_session(BASE)
        old_turn(session, GROUP, role="assistant", source="agent_response")

        assert (facts().named, facts().turns) == ({}, 1)

    def test_it_counts_the_turns_of_people_that_name_none(self):
        session = old_session(BASE)
        for source in ("user_input", "subagent_fork:user_input", "from a plugin"):
            old_turn(session, source=source)
        for source in ("cron_trigger", "subagent_task", "subagent_context_summary"):
            old_turn(session, source=source)
        old_turn(session, role="system", source="subagent_completed")

        assert facts().addressless == 3

    def test_it_counts_copies(self):
        session = old_session(BASE, GROUP)
        old_turn(session, GROUP, source="subagent_fork:user_input")

        assert (facts().named, facts().copied) == ({GROUP: 2}, 1)

    def test_it_takes_a_topics_turn_for_its_chats(self):
        old_session(BASE, f"{GROUP}:topic:7")

        assert facts().named == {GROUP: 1}

    def test_it_reads_an_address_in_metadata_as_text_and_as_an_object(self):
        parts = {"channel": "milky", "target_type": "group", "target_id": 10001, "thread_id": "7"}
        envelope = {"channel": "milky", "chat_type": "group", "chat_id": "10001"}
        for number, metadata in enumerate(
            [{"chat_address": GROUP}, {"chat_address": parts}, {"message_context": envelope}]
        ):
            old_session(f"milky:{number}", metadata=metadata)

        assert [one.metadata for one in gather().sessions] == [(GROUP,)] * 3

    def test_it_reads_no_address_in_anything_else(self):
        odd: list[object] = [
            None,
            [],
            "milky:group:10001",
            {"chat_address": ["milky:group:10001"]},
            {"chat_address": "milky:unknown:10001"},
            {"chat_address": "see milky:group:10001"},
            {"chat_address": {"channel": "milky", "target_type": "GROUP", "target_id": "1"}},
            {"message_context": {"channel": "milky", "chat_type": "friend", "chat_id": "1"}},
            {"message_context": {"channel": "milky", "chat_type": "group", "chat_id": True}},
            {"message_context": {"channel": "", "chat_type": "group", "chat_id": "1"}},
            {"title": "milky:group:10001"},
        ]
        for number, metadata in enumerate(odd):
            old_session(f"milky:{number}", metadata=metadata)

        assert {one.metadata for one in gather().sessions} == {()}

    def test_it_finds_what_hangs_on_a_session(self):
        session, child = old_session(BASE), old_session(f"{BASE}:subagent:t1")
        override(BASE, session)
        old_task(session, child)
        MemoryItem.objects.create(
            scope_type="session", scope_id=BASE, kind="fact", content="tea", imported={}
        )

        assert (facts().overrides, facts().tasks, facts().items) == (("milky:unknown:10001",), 1, 1)
        assert facts(child.key).requesters == (BASE,)

    def test_it_counts_no_item_of_a_longer_key(self):
        old_session("milky:1")
        for scope in ("milky:10", "milky:1:abcd1234", "milky_1"):
            MemoryItem.objects.create(
                scope_type="session", scope_id=scope, kind="fact", content="tea", imported={}
            )

        assert facts("milky:1").items == 0

    def test_it_reads_what_a_job_says_of_its_chat(self):
        old_job(GROUP)
        old_job(BASE, platform="milky", chat_id="10001", chat_type="group")
        old_job(GROUP, platform="milky", chat_id="10001", chat_type="private")
        old_job(BASE, platform="milky", chat_id="10001", chat_type="")

        assert [job.stated for job in gather().jobs] == [GROUP, GROUP, "", ""]

    def test_it_leaves_the_new_bots_own_sessions_out(self):
        old_session(BASE)
        session = old_session(GROUP)
        type(session).objects.filter(pk=session.pk).update(imported_at=None)

        assert [one.key for one in gather().sessions] == [BASE]
        assert GROUP in gather().keys

    def test_it_leaves_out_what_is_settled(self):
        old_session(BASE)
        inspect(who="alice")
        settled = record()
        settled.result = "kept_legacy"
        settled.save()

        assert gather().sessions == ()
        assert gather().settled[BASE].result == "kept_legacy"

    def test_it_takes_up_what_was_reverted(self):
        old_session(BASE)
        inspect(who="alice")
        type(record()).objects.update(result="reverted")

        assert [one.key for one in gather().sessions] == [BASE]
