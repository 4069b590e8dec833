"""R8: a tool runs as often as its effect allows, however often its batch is taken."""

from memory_app import toolcalls
from memory_app import turns as memory_turns
from memory_app.models import ToolCall
from nahida.agent import turns
from nahida.agent.vocabulary import ToolCall as Call
from sessions_app.lanes import LostLaneError
from tests.base import ALICE, BOB
from tests.fakes.model import ScriptedModel, call, calls
from tests.lanes.stage import Killed, LaneTestCase


class ToolEffectTests(LaneTestCase):
    def results(self, index: int = -1) -> list[str]:
        return [
            message.text
            for message in self.model.requests[index].messages
            if message.role == "tool"
        ]

    def test_it_reads_as_often_as_it_is_asked(self):
        self.model.enqueue(call("look", text="a"), call("look", text="a"), "done")

        self.say(ALICE, "look")
        self.work()

        self.assertEqual(self.tools.looked, ["a", "a"])
        self.assertEqual(ToolCall.objects.count(), 0)

    def test_it_stages_an_identical_message_once(self):
        twice = calls(Call("1", "say", '{"text": "hi"}'), Call("2", "say", '{ "text":"hi" }'))
        self.model.enqueue(twice, "done")

        self.say(ALICE, "tell bob")
        self.work()

        self.assertEqual(self.results(), ["staged", "staged"])
        self.assertEqual(self.sent(BOB), ["hi"])

    def test_it_gives_an_identical_call_the_stored_result(self):
        """Rows are written once and the outside is touched once, whatever the order of the arguments."""
        self.model.enqueue(
            call("title", text="A"),
            call("title", text="A"),
            call("post", text="x"),
            call("post", text="x"),
            "done",
        )

        self.say(ALICE, "do it twice")
        self.work()

        self.assertEqual(self.results(), ["title is A"] * 2 + ["posted x"] * 2)
        self.assertEqual(self.chat(ALICE).title, "A")
        self.assertEqual(self.tools.left, ["x"])

    def test_it_runs_another_call_of_the_same_tool(self):
        self.model.enqueue(call("title", text="A"), call("title", text="B"), "done")

        self.say(ALICE, "do both")
        self.work()

        self.assertEqual(self.chat(ALICE).title, "AB")

    def test_it_replays_stored_results_to_a_retaken_batch(self):
        """The first holder's tools ran and it died: the second is given their results and runs nothing again."""
        self.model.enqueue(call("title", text="A"), call("post", text="x"), Killed())
        self.say(ALICE, "do it")
        with self.assertRaises(Killed):
            self.run_lane()
        self.expire_lease()

        self.model.enqueue(call("title", text="A"), call("post", text="x"), "done")
        self.work()

        self.assertEqual(self.results(), ["title is A", "posted x"])
        self.assertEqual(self.chat(ALICE).title, "A")
        self.assertEqual(self.tools.left, ["x"])
        self.assertEqual(self.answers(ALICE), ["done"])

    def test_it_forgets_results_with_the_batch(self):
        """The next message may ask for the very same thing again."""
        self.model.enqueue(call("post", text="x"), "done", call("post", text="x"), "done again")

        for text in ("once", "once more"):
            self.say(ALICE, text)
            self.work()

        self.assertEqual(self.tools.left, ["x", "x"])

    def test_it_writes_no_rows_for_a_holder_who_lost_the_lane(self):
        """The holder is overtaken just before its tool: neither the tool's rows nor its result are stored."""
        quick = ScriptedModel("quick")

        def overtake(messages):
            self.expire_lease()
            self.run_lane(model=quick)
            return call("title", text="A")

        self.model.enqueue(overtake)
        self.say(ALICE, "do it")
        self.run_lane()

        self.assertEqual(self.chat(ALICE).title, "")
        self.assertEqual(ToolCall.objects.count(), 0)
        self.assertEqual(self.answers(ALICE), ["quick"])

    def test_it_tests_the_token_in_the_tool_s_own_transaction(self):
        """However late the lane is lost, the rows stay out."""
        self.say(ALICE, "do it")
        lane, token = self.lane(ALICE), self.claim()
        memory_turns.take(lane.pk, token)
        self.expire_lease()
        self.claim()
        ran: list[str] = []

        def act() -> str:
            ran.append("once")
            return "done"

        for run in (toolcalls.run_inside, toolcalls.run_outside):
            with self.subTest(run=run.__name__), self.assertRaises(LostLaneError):
                run(
                    lane.pk,
                    token,
                    batch=self.turn("do it").pk,
                    name="x",
                    call="x",
                    act=act,
                )

        self.assertEqual(ran, [])
        self.assertEqual(ToolCall.objects.count(), 0)

    def test_it_keeps_rows_and_result_together(self):
        """A tool that refuses half-way leaves no rows, and may be called again."""
        self.model.enqueue(call("title", text="refused"), call("title", text="A"), "done")

        self.say(ALICE, "do it")
        self.work()

        self.assertEqual(self.results(), ["error: that title is refused", "title is A"])
        self.assertEqual(self.chat(ALICE).title, "A")
        self.assertEqual(ToolCall.objects.count(), 1)

    def test_it_says_that_it_begins_before_it_leaves(self):
        seen: list[tuple[str, str | None]] = []
        self.tools.before_outside = lambda: seen.extend(
            ToolCall.objects.values_list("name", "result")
        )
        self.model.enqueue(call("post", text="x"), "done")

        self.say(ALICE, "post")
        self.work()

        self.assertEqual(seen, [("post", None)])
        self.assertEqual(ToolCall.objects.get().result, "posted x")

    def test_it_never_repeats_what_may_have_left(self):
        """The worker dies inside a tool with an effect outside: the retake fails with a word, and asks no model."""

        def die() -> None:
            raise Killed

        self.tools.before_outside = die
        self.model.enqueue(call("post", text="x"))
        self.say(ALICE, "post")
        with self.assertRaises(Killed):
            self.run_lane()
        self.expire_lease()
        self.work()

        self.assertEqual(self.states("post"), ["failed"])
        self.assertEqual(self.answers(ALICE), [turns.TOOL_INTERRUPTED])
        self.assertEqual(self.sent(ALICE), [turns.TOOL_INTERRUPTED])

    def test_it_never_repeats_what_broke_on_its_way_out(self):
        """The tool itself breaks, and nobody can tell whether its request had left."""

        def crash() -> None:
            raise ConnectionResetError("by peer")

        self.tools.before_outside = crash
        self.model.enqueue(call("post", text="x"))
        self.say(ALICE, "post")
        self.run_lane()
        self.make_due()
        self.work()

        self.assertEqual(self.states("post"), ["failed"])
        self.assertEqual(self.sent(ALICE), [turns.TOOL_INTERRUPTED])

    def test_it_knows_the_end_of_a_tool_that_says_why_it_cannot(self):
        """A refusal is a result: it is stored, told to the model, and no reason to fail."""
        self.model.enqueue(
            call("post", text="refused"), call("post", text="refused"), "It will not have it."
        )

        self.say(ALICE, "post")
        self.work()

        self.assertEqual(self.results(), ["error: nobody listens there"] * 2)
        self.assertEqual(self.answers(ALICE), ["It will not have it."])
