"""The stream breaks, dies or was never open: what was said meanwhile is read from the history, once and in order."""

from channels_app.milky import history, listener
from memory_app.models import MemoryTurn
from tests.fakes.milky import faults
from tests.fakes.milky.events import SELF
from tests.milky.site import ALICE, GROUP, MilkySite

DAY_S = 86_400


class GapTests(MilkySite):
    def say(self, *texts: str) -> None:  # type: ignore[override]  # here people speak on QQ
        for text in texts:
            self.world.friend_says(10001, text)

    def numbered(self, first: int, last: int) -> list[str]:
        return [f"message {number}" for number in range(first, last + 1)]

    def test_it_loses_and_doubles_nothing_while_the_end_is_away(self):
        self.hear(
            lambda: self.say("before"),
            self.has_heard(1),
            self.end.go_down,
            lambda: self.say(*self.numbered(1, 20)),
            self.end.come_up,
            self.has_heard(21),
            lambda: self.say("after"),
            self.has_heard(22),
        )

        self.assertEqual(self.said(ALICE), ["before", *self.numbered(1, 20), "after"])

    def test_it_loses_and_doubles_nothing_when_the_stream_is_cut_in_between(self):
        """Some of the twenty come by the old stream, some by the new one, some by the history, some twice."""

        def speak() -> None:
            for number in range(1, 21):
                self.say(f"message {number}")
                if number % 5 == 0:
                    self.end.cut(cleanly=number % 2 == 0)

        self.hear(lambda: self.say("before"), self.has_heard(1), speak, self.has_heard(21))

        self.assertEqual(sorted(self.said(ALICE)), sorted(["before", *self.numbered(1, 20)]))

    def test_it_notices_a_stream_that_is_half_open(self):
        self.hasten(listener, SILENCE_S=0.02, MOST_SILENCES=2)

        self.hear(
            lambda: self.say("before"),
            self.has_heard(1),
            self.end.go_silent,
            lambda: self.say(*self.numbered(1, 5)),
            self.has_heard(6),
        )

        self.assertEqual(self.said(ALICE), ["before", *self.numbered(1, 5)])

    def test_it_reads_what_was_said_while_the_site_was_down(self):
        self.hear(lambda: self.say("before"), self.has_heard(1))
        self.begin_anew()
        self.say(*self.numbered(1, 70))

        self.hear(self.has_heard(71))

        self.assertEqual(self.said(ALICE), ["before", *self.numbered(1, 70)])
        self.assertEqual(len(self.end.asked("get_history_messages")), 3)

    def test_it_answers_what_it_missed_where_it_was_said(self):
        def speak(number: int) -> None:
            self.world.group_says(10001, 20002, f"in the group {number}")
            self.world.friend_says(10001, f"in private {number}")

        self.hear(lambda: speak(1), self.has_heard(2))
        speak(2)
        self.hear(self.has_heard(4))

        self.assertEqual(self.said(ALICE), ["in private 1", "in private 2"])
        self.assertEqual(self.said(GROUP), ["in the group 1", "in the group 2"])

    def test_it_fills_a_hole_that_was_left_before(self):
        """The history could not be had when the stream was opened again, and later messages came."""
        self.hear(lambda: self.say("before"), self.has_heard(1))
        self.say("missed")
        self.end.fail("get_history_messages", faults.refused(-500))
        with self.assertLogs("channels_app.milky", "WARNING") as logs:
            self.hear(lambda: self.say("after"), self.has_heard(2))
        self.assertIn("what was missed in friend 10001 stays unheard", "".join(logs.output))

        self.hear(self.has_heard(3))

        self.assertEqual(self.said(ALICE), ["before", "after", "missed"])

    def test_it_goes_on_with_an_end_that_has_no_history(self):
        self.hear(lambda: self.say("before"), self.has_heard(1))
        self.end.fail("get_history_messages", faults.http(404))

        self.hear(lambda: self.say("after"), self.has_heard(2))

        self.assertEqual(self.said(ALICE), ["before", "after"])

    def test_it_reads_nothing_from_before_it_knew_the_chat(self):
        self.say("long ago", "a while ago")
        self.hear(lambda: self.say("first"), self.has_heard(1))

        self.hear(lambda: self.say("second"), self.has_heard(2))

        self.assertEqual(self.said(ALICE), ["first", "second"])

    def test_it_answers_nothing_that_is_older_than_a_day(self):
        self.hear(lambda: self.say("before"), self.has_heard(1))
        now = self.world.now()
        self.world.now = lambda: now - DAY_S - 60
        self.say("yesterday")
        self.world.now = lambda: now

        self.hear(lambda: self.say("today"), self.has_heard(2))

        self.assertEqual(self.said(ALICE), ["before", "today"])

    def test_it_reads_only_so_much(self):
        self.hear(lambda: self.say("before"), self.has_heard(1))
        self.hasten(history, MOST_PAGES=1)
        self.say(*self.numbered(1, 40))

        with self.assertLogs("channels_app.milky", "WARNING") as logs:
            self.hear(self.has_heard(31))

        self.assertIn("only the last 30 messages are read", "".join(logs.output))
        self.assertEqual(self.said(ALICE), ["before", *self.numbered(11, 40)])

    def test_it_reads_no_answer_of_its_own_as_missed(self):
        self.world.reports_self = False
        self.model.enqueue("hello")
        self.hear(lambda: self.say("hi"), self.has_heard(1), self.work)

        self.hear(lambda: self.say("bye"), self.has_heard(2))

        self.assertEqual(self.said(ALICE), ["hi", "bye"])

    def test_it_asks_no_further_than_what_it_knows(self):
        """Nothing is missing, though our own words were never reported."""
        self.world.reports_self = False
        self.hear(lambda: self.say(*self.numbered(1, 35)), self.has_heard(35))
        for _ in range(5):
            self.world.says("friend", 10001, SELF, "an answer")

        self.hear(
            lambda: bool(self.end.asked("get_history_messages")),
            lambda: self.say("after"),
            self.has_heard(36),
        )

        self.assertEqual(len(self.end.asked("get_history_messages")), 1)

    def test_it_believes_no_history_of_another_conversation(self):
        self.hear(lambda: self.say("before"), self.has_heard(1))
        stray = self.world.group_says(20001, 20002, "stray")["data"]
        talk = self.world.conversations["friend", 10001]
        talk.messages[2], talk.last_seq = {**stray, "message_seq": 2}, 2

        self.hear(lambda: self.say("after"), self.has_heard(2))

        self.assertEqual(MemoryTurn.objects.filter(content="stray").count(), 0)
        self.assertFalse(self.world.everywhere())
