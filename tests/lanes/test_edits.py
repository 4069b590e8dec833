"""R10: an edit changes what still waits, and is otherwise noted."""

from memory_app.models import MemoryTurn
from nahida.agent.intake import Outcome
from sessions_app.models import Session
from tests.base import ALICE, BOB, GROUP
from tests.lanes.stage import LaneTestCase


class EditTests(LaneTestCase):
    def edit(self, text: str, *, of: str, address=ALICE, **details):
        return self.say(address, text, edits=of, message_id=of, **details)

    def test_it_replaces_the_text_of_a_line_that_waits(self):
        """Nobody has read it yet: the new text is the only one, in the search index too."""
        self.say(ALICE, "helo", message_id="7")
        self.edit("hello", of="7")
        self.model.enqueue("hi")
        self.work()

        self.assertEqual(self.lines(ALICE)[0], ("user", "hello", "done"))
        self.assertIn("hello", self.model.requests[0].last)
        self.assertIn("hello", self.turn("hello").search_tokens)
        self.assertEqual(len(self.model.requests), 1)

    def test_it_notes_the_edit_of_a_line_being_answered(self):
        """The answer is to the line as it was; the change is there for the next turn."""
        self.model.enqueue(lambda _: self.edit("what is 2+3?", of="7") and "4", "5")
        self.say(ALICE, "what is 2+2?", message_id="7")
        self.work()
        self.say(ALICE, "well?")
        self.work()

        note = self.turn("what is 2+3?")
        self.assertEqual((note.kind, note.state, note.message_id), ("edit", "observed", "7"))
        self.assertEqual(self.states("what is 2+2?"), ["done"])
        self.assertIn("what is 2+3?", str(self.model.requests[1].messages))
        self.assertEqual(self.answers(ALICE), ["4", "5"])

    def test_it_notes_the_edit_of_a_line_answered_long_ago(self):
        self.model.enqueue("4")
        self.say(ALICE, "what is 2+2?", message_id="7")
        self.work()

        accepted = self.edit("what is 2+3?", of="7")
        self.work()

        self.assertEqual(accepted.outcome, Outcome.OBSERVED)
        self.assertEqual(self.states("what is 2+2?", "what is 2+3?"), ["done", "observed"])
        self.assertEqual(len(self.sent(ALICE)), 1)

    def test_it_leaves_a_line_alone_that_waits_for_no_answer(self):
        """What was only observed stays as it was said; the change is noted behind it."""
        self.say(GROUP, "see you at nine", message_id="7", addressed=False)
        self.edit("see you at ten", of="7", address=GROUP, addressed=False)

        self.assertEqual(self.states("see you at nine", "see you at ten"), ["observed"] * 2)

    def test_it_leaves_a_line_alone_that_was_taken_once(self):
        """Put back for later, its first holder has read it: the batch stays what it was."""
        self.say(ALICE, "helo", message_id="7")
        self.die()
        MemoryTurn.objects.running().update(state="pending")

        self.edit("hello", of="7")

        self.assertEqual(self.states("helo", "hello"), ["pending", "observed"])

    def test_it_never_runs_a_command_again(self):
        """An edit of an old /new, an edit that only touches its metadata, an edit into a command: all are noted."""
        self.say(ALICE, "/new", message_id="7")
        self.work()
        sessions = Session.objects.count()
        for text in ("/new", "/new again", "/stop"):
            self.edit(text, of="7")
        self.work()

        self.assertEqual(Session.objects.count(), sessions)
        self.assertEqual(self.lane(ALICE).stop_before, 0)
        self.assertEqual(MemoryTurn.objects.filter(kind="edit").count(), 3)
        self.assertEqual(len(self.sent(ALICE)), 1)

    def test_it_leaves_a_command_that_waits_as_it_is(self):
        self.say(ALICE, "/new", message_id="7")
        self.edit("/reset", of="7")

        self.assertEqual(self.states("/new", "/reset"), ["pending", "observed"])

    def test_it_reads_no_command_from_the_edit_of_a_question(self):
        """The text is replaced, and stays a message for the model."""
        self.say(ALICE, "hm", message_id="7")
        self.edit("/new", of="7")
        self.model.enqueue("what do you mean?")
        self.work()

        self.assertEqual(self.turn("/new").kind, "message")
        self.assertEqual(Session.objects.count(), 1)

    def test_it_takes_an_edit_that_changes_no_text(self):
        """A platform reports a preview or a reaction as an edit: nothing is asked or answered anew."""
        self.model.enqueue("hi")
        self.say(ALICE, "hello", message_id="7")
        waiting = self.edit("hello", of="7")
        self.work()
        answered = self.edit("hello", of="7")
        self.work()

        self.assertEqual((waiting.outcome, answered.outcome), (Outcome.QUEUED, Outcome.OBSERVED))
        self.assertEqual(self.sent(ALICE), ["hi"])

    def test_it_takes_each_edit_once(self):
        self.model.enqueue("hi")
        self.say(ALICE, "hello", message_id="7")
        self.work()

        outcomes = [self.edit("hallo", of="7", event_key="edit:7:1").outcome for _ in range(2)]

        self.assertEqual(outcomes, [Outcome.OBSERVED, Outcome.DUPLICATE])

    def test_it_changes_nothing_in_another_chat(self):
        """Message ids are numbers of a chat: the same number next door is another message."""
        for address in (ALICE, GROUP, BOB):
            self.say(address, f"in {address}", message_id="7")

        self.edit("changed", of="7", address=GROUP)

        self.assertEqual(self.states(f"in {ALICE}", f"in {BOB}", "changed"), ["pending"] * 3)
        self.assertEqual(self.turn("changed").lane, self.lane(GROUP))
