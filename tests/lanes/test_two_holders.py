"""R4: everything leaves in one transaction under the token, or nothing does."""

import threading

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from channels_app.models import Delivery
from memory_app import turns as memory_turns
from memory_app.models import MemoryTurn, ModelCall
from memory_app.turns import Answer, Outgoing
from nahida.agent.vocabulary import ModelError
from sessions_app import lanes
from sessions_app.models import Access, Chat, Lane
from tests.base import ALICE, BOB, GROUP
from tests.fakes.model import ScriptedModel, call
from tests.lanes.stage import CommittedLaneTestCase, LaneTestCase

TOPIC = GROUP.with_thread("42")


class TwoHoldersTests(LaneTestCase):
    def overtaken(self, *, slow: str, quick: ScriptedModel):
        """Return a script whose holder is so slow that another worker answers before it."""

        def think(messages):
            self.expire_lease()
            self.run_lane(model=quick)
            return slow

        return think

    def test_it_commits_one_answer_of_two(self):
        """A slow model outlives its lease: two holders ask, one commits, both requests are paid."""
        quick = ScriptedModel("quick")
        self.model.enqueue(self.overtaken(slow="slow", quick=quick))

        self.say(ALICE, "hi")
        self.work()

        self.assertEqual(self.answers(ALICE), ["quick"])
        self.assertEqual(self.sent(ALICE), ["quick"])
        self.assertEqual(ModelCall.objects.count(), 2)
        self.assertEqual(self.turn("hi").attempt, 2)
        self.assertEqual(self.turn("hi").answered_by, self.turn("quick"))

    def test_it_drops_the_answer_while_the_other_still_works(self):
        """The first holder comes back while the second is at it: the second's answer is the one."""
        quick = ScriptedModel()

        def overtake(messages):
            self.expire_lease()
            token = self.claim()
            memory_turns.take(self.lane(ALICE).pk, token)
            return "slow"

        self.model.enqueue(overtake)
        self.say(ALICE, "hi")
        self.run_lane()
        after_slow = self.lines(ALICE)
        self.expire_lease()
        quick.enqueue("quick")
        self.run_lane(model=quick)

        self.assertEqual(after_slow, [("user", "hi", "running")])
        self.assertEqual(self.answers(ALICE), ["quick"])

    def test_it_drops_what_the_overtaken_holder_staged(self):
        """Messages of a tool leave with the answer they belong to, or not at all."""
        quick = ScriptedModel(call("say", text="from the quick one"), "quick")
        self.model.enqueue(
            call("say", text="from the slow one"), self.overtaken(slow="slow", quick=quick)
        )

        self.say(ALICE, "tell bob")
        self.work()

        self.assertEqual(self.sent(BOB), ["from the quick one"])
        self.assertEqual(self.sent(ALICE), ["quick"])

    def test_it_sends_staged_messages_only_with_the_answer(self):
        seen = []

        def look(messages):
            seen.append(Delivery.objects.count())
            return "done"

        self.model.enqueue(call("say", text="hello bob"), look)
        self.say(ALICE, "tell bob")
        self.work()

        self.assertEqual(seen, [0])
        self.assertEqual(self.sent(BOB), ["hello bob"])

    def test_it_does_not_repeat_staged_messages_when_it_begins_anew(self):
        """The history was too long after a tool had run: what that round staged is dropped with it."""
        self.model.enqueue(
            call("say", text="hello bob"),
            ModelError("too long", kind="too_long"),
            call("say", text="hello, bob"),
            "told him",
        )
        self.say(ALICE, "tell bob")
        self.work()

        self.assertEqual(self.sent(BOB), ["hello, bob"])

    def test_it_says_nothing_to_a_chat_blocked_meanwhile(self):
        def think(messages):
            Chat.objects.filter(pk=self.chat(ALICE).pk).update(access=Access.BLOCKED)
            return "too late"

        self.model.enqueue(think)
        self.say(ALICE, "hi")
        self.work()

        self.assertEqual(self.lines(ALICE), [("user", "hi", "stopped")])
        self.assertEqual(Delivery.objects.count(), 0)
        self.assertIsNone(self.lane(ALICE).wake_at)

    def test_it_asks_no_model_for_a_blocked_chat(self):
        self.say(ALICE, "hi")
        Chat.objects.update(access=Access.BLOCKED)

        self.work()

        self.assertEqual(self.lines(ALICE), [("user", "hi", "stopped")])

    def test_it_fails_silently_in_a_blocked_chat(self):
        self.say(ALICE, "hi")
        for _ in range(3):
            self.die()
        Chat.objects.update(access=Access.BLOCKED)

        self.work()

        self.assertEqual(self.lines(ALICE), [("user", "hi", "stopped")])

    def test_it_writes_nothing_to_another_chat_blocked_meanwhile(self):
        self.say(BOB, "I am here")
        self.model.enqueue("hello bob")
        self.work()

        def think(messages):
            Chat.objects.filter(pk=self.chat(BOB).pk).update(access=Access.BLOCKED)
            return "told him"

        self.model.enqueue(call("say", text="psst"), think)
        self.say(ALICE, "tell bob")
        self.work()

        self.assertEqual(self.sent(BOB), ["hello bob"])
        self.assertEqual(self.sent(ALICE), ["told him"])

    def test_it_reads_the_address_again(self):
        """The chat got another address over the model call: the answer goes there."""

        def think(messages):
            Chat.objects.filter(pk=self.chat(GROUP).pk).update(
                chat_key="fake:group:777", target_id="777"
            )
            return "found you"

        self.model.enqueue(think)
        self.say(GROUP, "hi")
        self.run_lane(GROUP)

        self.assertEqual(Delivery.objects.get().address, "fake:group:777")

    def test_it_keeps_no_transaction_open_over_models_and_tools(self):
        depths = []

        def note(*_):
            depths.append(len(connection.atomic_blocks))
            return "fine"

        self.tools.before_outside = note
        self.model.enqueue(note, call("post", text="x"), note)
        outside = len(connection.atomic_blocks)
        for text in ("one", "two"):
            self.say(ALICE, text)
            self.work()

        self.assertEqual(depths, [outside] * 3)

    def test_it_stores_what_the_caller_adds_or_nothing(self):
        """`also` is in the same transaction: where it fails there is no answer either."""
        self.say(ALICE, "hi")
        lane, token = self.lane(ALICE), self.claim()
        take = memory_turns.take(lane.pk, token)
        assert take is not None

        class BrokenError(Exception):
            pass

        def also(answer, delivery):
            Chat.objects.filter(pk=lane.chat_id).update(title=f"told by {answer.content}")
            raise BrokenError

        with self.assertRaises(BrokenError), transaction.atomic():
            self.commit(lane, token, take, also)

        self.assertEqual(self.lines(ALICE), [("user", "hi", "running")])
        self.assertEqual(self.chat(ALICE).title, "")

    def test_it_adds_nothing_of_a_caller_who_lost_the_lane(self):
        self.say(ALICE, "hi")
        lane, token = self.lane(ALICE), self.claim()
        take = memory_turns.take(lane.pk, token)
        assert take is not None
        self.expire_lease()
        self.claim()
        added = []

        committed = self.commit(lane, token, take, lambda *rows: added.append(rows))

        self.assertFalse(committed)
        self.assertEqual(added, [])
        self.assertEqual(Delivery.objects.count(), 0)

    def commit(self, lane, token, take, also) -> bool:
        return memory_turns.commit(
            lane.pk,
            token,
            turn_ids=take.turn_ids,
            compose=lambda lane, turns: Answer("the answer"),
            outgoing=[Outgoing(address=BOB, text="and bob")],
            also=also,
        )

    def test_it_locks_its_lanes_in_order_before_it_writes(self):
        """The lane of every address it writes to is locked, the lower row first, before any delivery."""
        self.say(BOB, "I am here")
        self.say(ALICE, "hi")
        lane, token = self.lane(ALICE), self.claim()
        take = memory_turns.take(lane.pk, token)
        assert take is not None

        with CaptureQueriesContext(connection) as queries:
            self.commit(lane, token, take, memory_turns.nothing_else)

        said = [query["sql"] for query in queries]
        writes = [index for index, sql in enumerate(said) if "channels_app_delivery" in sql]
        locks = [index for index, sql in enumerate(said) if _locks_both(sql)]
        self.assertLess(locks[0], writes[0])
        self.assertIn('ORDER BY "sessions_app_lane"."id" ASC', said[locks[0]])
        if connection.vendor == "postgresql":
            self.assertIn("FOR UPDATE", said[locks[0]])

    def test_it_finishes_exactly_what_it_took(self):
        """A line that came over the model call is not answered by that answer."""

        def think(messages):
            self.say(ALICE, "two")
            return "to one"

        self.model.enqueue(think)
        self.say(ALICE, "one")
        self.run_lane()

        self.assertEqual(self.states("one", "two"), ["done", "pending"])
        self.assertIsNone(self.turn("two").answered_by)

    def test_it_answers_a_topic_in_its_topic(self):
        self.model.enqueue("here")
        self.say(TOPIC, "where?")
        self.run_lane(TOPIC)

        self.assertEqual(Delivery.objects.get().address, str(TOPIC))


def _locks_both(sql: str) -> bool:
    return 'FROM "sessions_app_lane"' in sql and " OR " in sql


class LockOrderTests(CommittedLaneTestCase):
    def test_it_never_holds_its_own_lane_while_it_waits_for_a_lower_one(self):
        """Bob's answer writes to Alice's lane, whose row is older, while somebody holds it and then wants Bob's: no deadlock."""
        self.say(ALICE, "hi")
        self.say(BOB, "tell alice")
        alice, bob = self.lane(ALICE), self.lane(BOB)
        token = self.claim(BOB)
        take = memory_turns.take(bob.pk, token)
        assert take is not None
        committed = []

        def answer() -> None:
            try:
                committed.append(
                    memory_turns.commit(
                        bob.pk,
                        token,
                        turn_ids=take.turn_ids,
                        compose=lambda lane, turns: Answer("told her"),
                        outgoing=[Outgoing(address=ALICE, text="bob says hi")],
                    )
                )
            finally:
                connection.close()

        worker = threading.Thread(target=answer)
        with transaction.atomic():
            lanes.lock(ALICE)
            worker.start()
            self.wait_until_blocked()
            lanes.lock(BOB)
            Lane.objects.filter(pk__in=[alice.pk, bob.pk]).update(woken_at=None)
        worker.join(20)

        self.assertEqual(committed, [True])
        self.assertEqual(MemoryTurn.objects.get(content="tell alice").state, "done")
