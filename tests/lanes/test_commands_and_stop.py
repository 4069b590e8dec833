"""R9: some commands do not wait, the others keep their place; /stop reaches whatever runs."""

from channels_app.addresses import ChatAddress
from memory_app.models import MemoryTurn, ModelCall, ToolCall, TurnKind
from memory_app.turns import NewTurn, append_turn
from nahida.agent.vocabulary import ModelError, Reply, Usage
from nahida.agent.vocabulary import ToolCall as Call
from sessions_app.models import Session
from tests.base import ALICE, BOB, GROUP
from tests.fakes.model import call, calls
from tests.lanes.stage import Killed, LaneTestCase, dying_at

TOPIC = GROUP.with_thread("42")
PAGE = ChatAddress("web", "private", "1")


class ImmediateTests(LaneTestCase):
    def test_it_answers_at_once_while_a_turn_runs(self):
        """Neither the running batch nor the lane's token is touched, and nothing is queued."""
        said = []

        def think(messages):
            before = self.lane(ALICE)
            for command in ("/status", "/help", "/whoami", "/sessions"):
                said.append(self.say(ALICE, command).notice)
            after = self.lane(ALICE)
            self.assertEqual(
                (before.token, before.inbox, before.wake_at),
                (after.token, after.inbox, after.wake_at),
            )
            self.assertEqual(MemoryTurn.objects.pending().count(), 0)
            return "hello"

        self.model.enqueue(think)
        self.say(ALICE, "hi")
        self.work()

        self.assertTrue(all(said), said)
        self.assertEqual(self.answers(ALICE), [*said, "hello"])
        self.assertEqual(self.turn("hi").answered_by, self.turn("hello"))
        self.assertEqual(self.turn("/whoami").answered_by, self.turn(said[2]))

    def test_it_never_wakes_the_lane(self):
        for command in ("/stop", "/status", "/help", "/whoami", "/sessions"):
            self.say(ALICE, command)

        lane = self.lane(ALICE)
        self.assertEqual((lane.inbox, lane.wake_at), (0, None))

    def test_it_queues_the_others(self):
        for command in ("/new", "/reset", "/model other"):
            self.say(ALICE, command)

        self.assertEqual(self.states("/new", "/reset", "/model other"), ["pending"] * 3)
        self.assertEqual(self.chat(ALICE).model, "")


class OrderedTests(LaneTestCase):
    def test_it_begins_a_new_conversation_between_two_lines(self):
        """m1, /new, m2 wait at once: m1 belongs to the old conversation, m2 to the new one."""
        self.model.enqueue("to one", "to two")
        for text in ("one", "/new", "two"):
            self.say(ALICE, text)

        self.work()

        one, new, two = map(self.turn, ("one", "/new", "two"))
        fresh = self.lane(ALICE).active_session
        self.assertEqual((one.session, new.session), (Session.objects.get(key=str(ALICE)),) * 2)
        self.assertEqual(two.session, fresh)
        self.assertEqual(self.turn("to two").session, fresh)
        self.assertNotIn("one", str(self.model.requests[1].messages[1:]))
        self.assertEqual(len(self.sent(ALICE)), 3)

    def test_it_moves_what_was_observed_later_and_nothing_earlier(self):
        self.model.enqueue("to one")
        self.say(GROUP, "before", addressed=False)
        self.say(GROUP, "one")
        self.say(GROUP, "/new")
        self.say(GROUP, "after", addressed=False)

        self.work()

        old, fresh = Session.objects.order_by("pk")
        self.assertEqual(
            [self.turn(text).session for text in ("before", "one", "after")], [old, old, fresh]
        )

    def test_it_begins_two_conversations_in_a_row(self):
        self.model.enqueue("to one", "to two", "to three")
        for text in ("one", "/new", "two", "/new second", "three"):
            self.say(ALICE, text)

        self.work()

        sessions = [self.turn(text).session_id for text in ("one", "two", "three")]
        self.assertEqual(len(set(sessions)), 3)
        self.assertEqual(self.lane(ALICE).active_session_id, sessions[2])

    def test_it_leaves_the_topics_of_a_chat_alone(self):
        self.say(TOPIC, "in the topic")
        self.say(GROUP, "/new")
        self.run_lane(GROUP)

        self.assertEqual(self.lane(TOPIC).active_session.key, str(TOPIC))
        self.assertNotEqual(self.lane(GROUP).active_session.key, str(GROUP))

    def test_it_sets_history_aside_and_deletes_nothing(self):
        self.model.enqueue("to one", "to two")
        for text in ("one", "/reset", "two"):
            self.say(ALICE, text)

        self.work()

        self.assertEqual(self.turn("two").session.history_from, self.turn("/reset").pk)
        self.assertNotIn("one", str(self.model.requests[1].messages[1:]))
        self.assertEqual(self.states("one", "to one", "two"), ["done"] * 3)

    def test_it_changes_the_model_for_all_topics_in_order(self):
        """What was said before /model is answered by the old one, what came after by the new one."""
        asked = []
        for text in ("one", "/model other", "two"):
            self.say(ALICE, text)

        def think(messages):
            asked.append(self.chat(ALICE).model)
            return "fine"

        self.model.enqueue(think, think)

        self.work()

        self.assertEqual(asked, ["", "other"])

    def test_it_does_a_command_of_a_dead_worker_once(self):
        """/new, its answer and the sessions it makes are one transaction."""
        self.say(ALICE, "/new")
        for step in range(5, 30, 3):
            try:
                with dying_at(step):
                    self.run_lane()
            except Killed:
                self.expire_lease()
                MemoryTurn.objects.running().update(attempt=1)
        self.work()

        self.assertEqual(Session.objects.count(), 2)
        self.assertEqual(len(self.answers(ALICE)), 1)


class StopTests(LaneTestCase):
    def test_it_stops_an_answer_that_is_being_written(self):
        """The stream is cut at its next piece, nothing is sent, and the lane goes on."""

        def think(messages):
            self.say(ALICE, "/stop")
            return "a long answer"

        self.model.enqueue(think, "fresh")

        self.say(ALICE, "tell me everything")
        self.run_lane()
        self.say(ALICE, "and now?")
        self.work()

        self.assertEqual(self.states("tell me everything", "and now?"), ["stopped", "done"])
        cut = ModelCall.objects.get(turn=self.turn("tell me everything"))
        self.assertEqual(cut.outcome, "stopped")
        self.assertEqual(self.sent(ALICE), ["Stopped.", "fresh"])

    def test_it_keeps_what_a_page_has_already_shown(self):
        """On the web page the text so far stays, marked as stopped."""

        def ask(messages, on_text):
            on_text("What I had wri")
            self.say(PAGE, "/stop")
            on_text("What I had written so far")
            return Reply("What I had written so far", (), Usage(1, 1), "stop", "streaming")

        self.say(PAGE, "tell me")
        self.run_lane(PAGE, model=Streaming(ask))

        self.assertEqual(self.states("tell me"), ["stopped"])
        self.assertEqual(self.answers(PAGE), ["Stopped.", "What I had written so far"])

    def test_it_stops_between_two_tools(self):
        """A tool that has not begun does not begin."""

        def stop() -> None:
            self.say(ALICE, "/stop")

        self.tools.before_outside = stop
        both = calls(
            Call("1", "post", '{"text": "first"}'), Call("2", "post", '{"text": "second"}')
        )
        self.model.enqueue(both)

        self.say(ALICE, "post both")
        self.run_lane()

        self.assertEqual(self.tools.left, ["first"])
        self.assertEqual(self.states("post both"), ["stopped"])
        self.assertEqual(ToolCall.objects.count(), 1)

    def test_it_stops_at_the_very_end(self):
        """/stop comes after the last piece and before the commit: nothing is sent, staged messages neither."""

        def ask(messages, on_text):
            if messages[-1].role != "tool":
                return call("say", text="psst")
            self.say(ALICE, "/stop")
            return Reply("too late", (), Usage(1, 1), "stop", "streaming")

        self.say(ALICE, "tell bob")
        self.run_lane(model=Streaming(ask))
        self.work()

        self.assertEqual(self.states("tell bob"), ["stopped"])
        self.assertEqual(self.sent(BOB), [])
        self.assertEqual(self.sent(ALICE), ["Stopped."])

    def test_it_stops_a_batch_whose_holder_is_dead(self):
        """Nobody begins with it again only to find that it is not wanted."""
        self.say(ALICE, "hi")
        self.die()
        self.say(ALICE, "/stop")

        self.work()

        self.assertEqual(self.states("hi"), ["stopped"])
        self.assertEqual(self.turn("hi").attempt, 1)
        self.assertEqual(self.sent(ALICE), ["Stopped."])

    def test_it_stops_what_waits_for_the_model_to_come_back(self):
        """The batch was put back: it is pending, and ends at once."""
        self.model.enqueue(ModelError("down", kind="unavailable"))
        self.say(ALICE, "hi")
        self.run_lane()
        self.say(ALICE, "/stop")

        self.assertEqual(self.states("hi"), ["stopped"])

    def test_it_stops_what_fails_over_the_model_call(self):
        """/stop comes, then the model is down: the batch is neither put back nor excused."""
        for kind in ("unavailable", "refused"):
            with self.subTest(kind=kind):

                def think(messages, kind=kind):
                    self.say(ALICE, "/stop")
                    return ModelError("no", kind=kind)

                self.model.enqueue(think)
                self.say(ALICE, kind)
                self.run_lane()

                self.assertEqual(self.states(kind), ["stopped"])
        self.work()
        self.assertEqual(self.sent(ALICE), ["Stopped."] * 2)

    def test_it_ends_messages_that_wait_but_no_commands_or_jobs(self):
        self.say(ALICE, "one")
        self.say(ALICE, "/new")
        append_turn(ALICE, NewTurn(kind=TurnKind.JOB, content="job", rights="admin"))
        self.say(ALICE, "/stop")
        self.say(ALICE, "two")

        states = self.states("one", "/new", "job", "two")

        self.assertEqual(states, ["stopped", "pending", "pending", "pending"])

    def test_it_says_when_there_was_nothing_to_stop(self):
        self.assertEqual(self.say(ALICE, "/stop").notice, "There was nothing to stop.")

    def test_it_stops_one_topic_only(self):
        self.say(TOPIC, "in the topic")
        self.say(GROUP, "/stop")

        self.assertEqual(self.states("in the topic"), ["pending"])


class Streaming:
    """A model written as one function, for what comes between two pieces."""

    name = "streaming"
    context_tokens = 32_000
    sees_images = False

    def __init__(self, say):
        self.say = say

    def ask(self, messages, *, tools=(), on_text, record, deadline):
        return self.say(messages, on_text)
