"""R3: what is answered together, what alone, and what again."""

from channels_app.messages import Part
from channels_app.models import Delivery
from memory_app import turns as memory_turns
from memory_app.models import MemoryTurn, TurnKind
from memory_app.turns import ATTEMPTS, GAVE_UP, NewTurn, append_turn
from sessions_app.routing import start_session
from tests.base import ALICE, BOB, GROUP
from tests.fakes.model import call
from tests.lanes.stage import LaneTestCase


class TakeTests(LaneTestCase):
    def batches(self, address=ALICE) -> list[list[str]]:
        """Take and finish one batch after the other; return their texts."""
        found = []
        while True:
            token = self.claim(address)
            take = memory_turns.take(self.lane(address).pk, token)
            assert take is not None
            if take.turn_ids:
                taken = MemoryTurn.objects.filter(pk__in=take.turn_ids).order_by("pk")
                found.append([turn.content for turn in taken])
                taken.update(state="done")
            if memory_turns.release(self.lane(address).pk, token, inbox=take.inbox):
                return found

    def test_it_answers_a_run_of_lines_together(self):
        for text in ("one", "two", "three"):
            self.say(ALICE, text)

        self.assertEqual(self.batches(), [["one", "two", "three"]])

    def test_it_skips_what_is_only_observed(self):
        self.say(GROUP, "one")
        self.say(GROUP, "an aside", addressed=False)
        self.say(GROUP, "two")

        self.assertEqual(self.batches(GROUP), [["one", "two"]])

    def test_it_parts_lines_of_different_rights(self):
        """A member's line never rides on an admin's rights, nor the other way round."""
        self.say(GROUP, "admin", is_admin=True)
        self.say(GROUP, "member")
        self.say(GROUP, "admin again", is_admin=True)

        self.assertEqual(self.batches(GROUP), [["admin"], ["member"], ["admin again"]])

    def test_it_parts_lines_of_different_sessions(self):
        self.say(ALICE, "old")
        start_session(self.lane(ALICE))
        self.say(ALICE, "new")

        self.assertEqual(self.batches(), [["old"], ["new"]])

    def test_it_takes_commands_and_jobs_alone(self):
        self.say(ALICE, "one")
        self.say(ALICE, "/reset")
        self.say(ALICE, "/reset  ")
        for text in ("job one", "job two"):
            append_turn(ALICE, NewTurn(kind=TurnKind.JOB, content=text, rights="admin"))
        self.say(ALICE, "two")

        self.assertEqual(
            self.batches(), [["one"], ["/reset"], ["/reset  "], ["job one"], ["job two"], ["two"]]
        )

    def test_it_takes_nothing_without_the_token(self):
        self.say(ALICE, "one")
        token = self.claim()
        self.expire_lease()
        self.claim()

        self.assertIsNone(memory_turns.take(self.lane(ALICE).pk, token))
        self.assertEqual(self.states("one"), ["pending"])

    def test_it_waits_for_a_part_that_came_after_the_claim(self):
        """The lane was due when it was claimed; a piece of the message has put it off since."""
        self.say(ALICE, "first half")
        token = self.claim()
        self.say(ALICE, "second half", part=Part.PIECE)

        take = memory_turns.take(self.lane(ALICE).pk, token)

        assert take is not None
        self.assertEqual(take.turn_ids, ())
        self.assertEqual(self.states("first half", "second half"), ["pending", "pending"])

    def test_it_takes_a_dead_holder_s_batch_first_alone_and_unchanged(self):
        """A line that came meanwhile waits its turn; the batch keeps its name and counts its attempts."""
        self.say(ALICE, "one")
        self.say(ALICE, "two")
        self.die()
        self.say(ALICE, "three")

        token = self.claim()
        take = memory_turns.take(self.lane(ALICE).pk, token)

        one, two, three = map(self.turn, ("one", "two", "three"))
        assert take is not None
        self.assertEqual(take.turn_ids, (one.pk, two.pk))
        self.assertEqual([turn.batch for turn in (one, two, three)], [one.pk, one.pk, None])
        self.assertEqual([turn.attempt for turn in (one, two, three)], [2, 2, 0])

    def test_it_takes_a_dead_holder_s_batch_even_while_it_waits_for_parts(self):
        self.say(ALICE, "one")
        self.die()
        token = self.claim()
        self.say(ALICE, "half", part=Part.PIECE)

        take = memory_turns.take(self.lane(ALICE).pk, token)

        assert take is not None
        self.assertEqual(take.turn_ids, (self.turn("one").pk,))

    def test_it_takes_a_batch_that_was_put_back_unchanged(self):
        self.say(ALICE, "one")
        self.say(ALICE, "two")
        self.die()
        MemoryTurn.objects.running().update(state="pending")
        self.say(ALICE, "three")
        self.expire_lease()

        self.assertEqual(self.batches(), [["one", "two"], ["three"]])

    def test_it_gives_up_after_three_attempts(self):
        """The batch fails with a word to the chat, and what waits behind it goes on."""
        self.say(ALICE, "poison")
        for _ in range(ATTEMPTS):
            self.die()
        self.say(ALICE, "hello?")
        self.model.enqueue("Hello.")

        self.run_lane()
        after_third = self.states("poison", "hello?")
        told = Delivery.objects.get().parts[0]["text"]
        self.work()

        self.assertEqual(after_third, ["failed", "pending"])
        self.assertEqual(told, GAVE_UP)
        self.assertEqual(self.turn("poison").answered_by, self.turn(GAVE_UP))
        self.assertEqual(self.sent(ALICE), [GAVE_UP, "Hello."])

    def test_it_counts_attempts_of_a_batch_that_changed_lanes(self):
        """Put back by whatever way, three attempts are three."""
        self.say(ALICE, "poison")
        for _ in range(ATTEMPTS):
            self.die()
        MemoryTurn.objects.running().update(state="pending")

        self.run_lane()

        self.assertEqual(self.states("poison"), ["failed"])
        self.assertEqual(self.answers(ALICE), [GAVE_UP])

    def test_it_forgets_an_old_stop_when_something_new_begins(self):
        self.say(ALICE, "/stop")
        marked = self.lane(ALICE).stop_before
        self.say(ALICE, "one")
        self.model.enqueue("fine")

        self.run_lane()

        self.assertGreater(marked, 0)
        self.assertEqual(self.lane(ALICE).stop_before, 0)

    def test_it_answers_with_the_least_rights(self):
        """Should rows of two rights ever stand in one batch, the lesser count."""
        self.say(GROUP, "owner", is_admin=True)
        self.say(GROUP, "member", is_admin=True)
        first = self.turn("owner").pk
        MemoryTurn.objects.filter(content="owner").update(rights="owner", batch=first)
        MemoryTurn.objects.filter(content="member").update(rights="member", batch=first)
        self.model.enqueue(call("message", target=str(BOB), text="psst"), "I may not.")

        self.run_lane(GROUP)

        self.assertEqual(
            self.model.requests[1].last, "error: message to another chat needs the owner."
        )
