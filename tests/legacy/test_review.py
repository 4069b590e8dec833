"""A person is asked in the terminal, once for each proposal that can be decided."""

from collections import Counter

from django.test import TestCase

from nahida.legacy.inspect import inspect
from nahida.legacy.review import review
from sessions_app.models import MigrationLog
from tests.legacy.imported import BASE, GROUP, PRIVATE, old_job, old_session, record


class ReviewTest(TestCase):
    def review(self, *answers: str) -> Counter[str]:
        """Answer in order; a person with no more answers has hung up."""
        self.asked: list[str] = []
        self.said: list[str] = []
        left = list(answers)

        def ask(question: str) -> str:
            self.asked.append(question)
            if not left:
                raise EOFError
            return left.pop(0)

        inspect(who="alice")
        return review(who="alice", ask=ask, say=self.said.append)

    def test_it_approves_a_rename(self):
        old_session(BASE, GROUP)

        assert self.review("y")["approved"] == 1
        assert (record().approval, record().history[0]["who"]) == ("approved", "alice")

    def test_it_takes_yes_to_a_split_for_the_split_as_listed(self):
        old_session(BASE, GROUP, PRIVATE)

        self.review("y")

        assert record().approval == "force_split"
        assert sum(len(target["turn_ids"]) for target in record().targets) == 3

    def test_it_asks_nothing_that_needs_more_than_an_answer(self):
        old_session("onlyone")
        old_session("milky:group:20001")

        answers = self.review("y")

        assert (self.asked, answers["manual_review"]) == ([], 1)
        assert record("onlyone").approval == "pending"

    def test_it_asks_once_for_each_and_names_it(self):
        keys = ["milky:1", "milky:2", "milky:3", "milky:4"]
        old_session(keys[0])
        old_session(keys[1], "milky:group:2")
        old_session(keys[2], "milky:group:3", "milky:private:3")
        old_job(keys[3])

        self.review("s", "s", "s", "s")

        assert len(self.asked) == 4
        for key, question in zip(keys, self.asked, strict=True):
            assert key in question

    def test_it_tells_the_evidence_before_it_asks(self):
        old_session(BASE, GROUP)

        self.review("s")

        assert any(f"turns: {GROUP}, 1 turn" in line for line in self.said)

    def test_it_rejects_and_keeps(self):
        old_session("milky:1", "milky:group:1")
        old_session("milky:2")

        self.review("n", "K")

        assert record("milky:1").approval == "rejected"
        assert record("milky:2").approval == "force_keep_legacy"

    def test_it_renames_as_a_person_says(self):
        old_session(BASE)

        self.review("r", "milky:10001", "r", GROUP)

        assert any("write milky:private:10001 or milky:group:10001" in line for line in self.said)
        assert (record().approval, record().new_key) == ("force_rename", GROUP)

    def test_it_asks_again_after_an_answer_it_does_not_know(self):
        old_session(BASE, GROUP)

        self.review("perhaps", "", "y")

        assert (len(self.asked), record().approval) == (3, "approved")

    def test_it_keeps_what_was_decided_before_the_line_broke(self):
        old_session("milky:1", "milky:group:1")
        old_session("milky:2", "milky:group:2")

        self.review("y")

        assert record("milky:1").approval == "approved"
        assert record("milky:2").approval == "pending"

    def test_it_stops_when_told(self):
        old_session("milky:1", "milky:group:1")
        old_session("milky:2", "milky:group:2")

        self.review("q", "y")

        assert len(self.asked) == 1
        assert not MigrationLog.objects.exclude(approval="pending").exists()

    def test_it_does_not_ask_twice(self):
        old_session(BASE, GROUP)
        self.review("y")

        self.review("n")

        assert self.asked == []
        assert record().approval == "approved"

    def test_it_shows_nothing_that_a_terminal_obeys(self):
        old_session("milky:\x1b[2J7", "milky:group:7")

        self.review("s")

        assert "\x1b" not in "".join([*self.said, *self.asked])
