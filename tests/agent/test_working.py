"""While an answer is made its chat sees that somebody is at it."""

from threading import Event
from unittest.mock import patch

from nahida.agent.working import shown_working
from tests.base import ALICE, NahidaTestCase


class WorkingTests(NahidaTestCase):
    def test_it_shows_the_question_that_is_being_answered(self):
        def look(request: object) -> str:
            address, message_id = self.platform().worked_on.get(timeout=10)
            return f"{address} {message_id}"

        self.model.enqueue(look)

        self.say(ALICE, "hello", message_id="42")
        self.work()

        self.assertEqual(self.sent(ALICE), [f"{ALICE} 42"])

    def test_it_shows_nothing_for_a_command(self):
        self.say(ALICE, "/new")
        self.work()

        self.assertTrue(self.platform().worked_on.empty())

    def test_it_shows_it_again_until_it_is_done(self):
        shown = [Event(), Event()]

        def show(*args: object) -> float:
            next(event for event in shown if not event.is_set()).set()
            return 0.001 if not shown[1].is_set() else 3600

        with patch.object(self.platform(), "show_working", show), shown_working(ALICE, "42"):
            self.assertTrue(all(event.wait(10) for event in shown))
