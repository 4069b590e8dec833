"""R7: the pieces of one message wait for each other, but not for long."""

from datetime import timedelta

from django.db.models import F

from channels_app.addresses import ChatAddress
from channels_app.clock import DbNow
from channels_app.messages import Part
from memory_app.models import MemoryTurn
from sessions_app.models import Lane
from tests.base import ALICE, BOB
from tests.outbox.stage import OutboxTestCase

SECOND = timedelta(seconds=1)


class PieceTests(OutboxTestCase):
    def piece(self, text: str, **details: object) -> None:
        self.say(ALICE, text, part=Part.PIECE, **details)

    def pass_s(self, seconds: float) -> None:
        """Let time pass for alice's lane, without waiting for it."""
        passed = timedelta(seconds=seconds)
        Lane.objects.filter(chat__chat_key=str(ALICE)).update(wake_at=F("wake_at") - passed)
        for turn in MemoryTurn.objects.filter(lane=self.lane(ALICE)):
            MemoryTurn.objects.filter(pk=turn.pk).update(created_at=turn.created_at - passed)

    def pause_s(self, where: ChatAddress = ALICE, *, after: str) -> float:
        """Return how many seconds after the arrival of a turn its lane is due."""
        lane = self.lane(where)
        assert lane.wake_at is not None
        arrived = MemoryTurn.objects.get(lane=lane, content=after).created_at
        return (lane.wake_at - arrived).total_seconds()

    def test_it_joins_pieces_that_follow_each_other(self):
        """A text that its client cut in two is answered as one, once the pause is over."""
        self.piece("the first half")
        self.piece("and the second")
        self.pass_s(-60)
        self.run_lanes()
        self.assertEqual([state for *_, state in self.lines(ALICE)], ["pending"] * 2)

        self.model.enqueue("one answer")
        self.pass_s(120)
        self.work()

        self.assertEqual(self.sent(ALICE), ["one answer"])
        batches = MemoryTurn.objects.exclude(batch=None).values_list("batch", flat=True)
        self.assertEqual(len(set(batches)), 1)
        self.assertIn("the first half", str(self.model.requests[0].messages))

    def test_it_waits_a_second_after_each_piece(self):
        self.piece("one")
        self.assertAlmostEqual(self.pause_s(after="one"), 1, delta=0.4)

        self.pass_s(0.5)
        self.piece("two")

        self.assertAlmostEqual(self.pause_s(after="two"), 1, delta=0.4)

    def test_it_waits_at_most_five_seconds_after_the_first_piece(self):
        """An album that keeps coming is begun before it is complete."""
        self.piece("picture 0")
        self.pass_s(2.4)
        self.piece("picture 1")
        self.pass_s(2.4)
        self.piece("picture 2")

        self.assertLess(self.pause_s(after="picture 0"), 5.7)

    def test_it_counts_from_the_first_piece_not_from_what_waited_before(self):
        """A message that waits behind a long turn does not take the pause away from an album."""
        self.say(ALICE, "a question")
        self.pass_s(60)

        self.piece("picture 1")

        self.assertAlmostEqual(self.pause_s(after="picture 1"), 1, delta=0.4)

    def test_it_counts_from_the_first_piece_of_this_album(self):
        """Two albums that wait behind a long turn are two albums."""
        self.piece("picture 0")
        self.pass_s(60)

        self.piece("picture 1")

        self.assertAlmostEqual(self.pause_s(after="picture 1"), 1, delta=0.4)

    def test_it_delays_no_whole_message_and_no_command(self):
        """Not even a command that is as long as a piece, or the caption of an album."""
        self.say(ALICE, "whole")
        self.say(BOB, "/new", part=Part.PIECE)

        self.assertLess(self.pause_s(ALICE, after="whole"), 0.4)
        self.assertLess(self.pause_s(BOB, after="/new"), 0.4)

    def test_it_answers_at_once_what_is_asked_outside_the_lane(self):
        self.piece("picture 1")

        self.say(ALICE, "/status", part=Part.PIECE)
        self.send_deliveries()

        self.assertEqual(len(self.sent(ALICE)), 1)
        self.assertAlmostEqual(self.pause_s(after="picture 1"), 1, delta=0.4)

    def test_it_shortens_no_longer_wait(self):
        """A lane that backs off after an error keeps its time (R1)."""
        self.say(ALICE, "hi")
        Lane.objects.update(wake_at=DbNow() + 30 * SECOND)

        self.piece("picture 1")

        self.assertGreater(self.pause_s(after="picture 1"), 20)

    def test_it_holds_up_no_other_chat(self):
        self.model.enqueue("hi bob")
        self.piece("picture 1")
        self.pass_s(-60)
        self.say(BOB, "hello")

        self.work()

        self.assertEqual((self.sent(BOB), self.sent(ALICE)), (["hi bob"], []))
