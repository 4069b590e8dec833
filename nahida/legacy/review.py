"""Asking a person in the terminal, one question for each record that can be decided."""

from collections import Counter
from collections.abc import Callable

from nahida.legacy.decide import DECIDABLE, DecisionError, decide
from nahida.legacy.gather import KIND
from nahida.legacy.proposals import MANUAL_REVIEW, RENAME, SPLIT
from nahida.legacy.telling import shown, tell
from sessions_app.models import Approval, MigrationLog

QUESTIONS = {
    RENAME: "rename {old} to {new}?",
    SPLIT: "split {old} as listed?",
}
OTHERS = "{old}: do as recommended ({recommendation})?"
SKIPPED = "skipped"
QUIT = "quit"
ANSWERS = "y yes, n no, k keep as an old session, r rename to another key, s skip, q quit"

Ask = Callable[[str], str]
Say = Callable[[str], None]


def review(*, who: str, ask: Ask, say: Say) -> Counter[str]:
    """Ask about each open, undecided record; each answer is kept at once. Returns how many were answered how.

    `ask` raises EOFError where nobody answers any more; what was decided until then stands.
    """
    pending = MigrationLog.objects.filter(kind=KIND, result="", approval=Approval.PENDING)
    asked = pending.filter(recommendation__in=DECIDABLE).order_by("pk")
    answers: Counter[str] = Counter()
    for pk in list(asked.values_list("pk", flat=True)):
        record = pending.filter(pk=pk).first()
        if record is None:  # decided elsewhere meanwhile
            continue
        answer = _answer(record, who, ask, say)
        if answer == QUIT:
            break
        answers[answer] += 1
    answers[MANUAL_REVIEW] = pending.filter(recommendation=MANUAL_REVIEW).count()
    return answers


def _answer(record: MigrationLog, who: str, ask: Ask, say: Say) -> str:
    for line in tell(record):
        say(line)
    while True:
        try:
            answer = _decide(record, ask(_question(record)).strip().lower(), who, ask)
        except DecisionError as error:
            say(f"  {error}")
        except (EOFError, KeyboardInterrupt):
            say("")
            return QUIT
        else:
            if answer:
                return answer
            say(f"  {ANSWERS}")


def _question(record: MigrationLog) -> str:
    question = QUESTIONS.get(record.recommendation, OTHERS)
    text = question.format(
        old=shown(record.old_key), new=shown(record.new_key), recommendation=record.recommendation
    )
    return f"{text} [y/n/k/r/s/q] "


def _decide(record: MigrationLog, answer: str, who: str, ask: Ask) -> str:
    """Return what became of the record, or "" for an answer nobody knows."""
    match answer:
        case "y" | "yes":
            approval = Approval.SPLIT if record.recommendation == SPLIT else Approval.APPROVED
            return decide(record, approval, who=who).approval
        case "n" | "no":
            return decide(record, Approval.REJECTED, who=who).approval
        case "k":
            return decide(record, Approval.KEEP_LEGACY, who=who).approval
        case "r":
            new_key = ask("  typed key, such as milky:group:20001: ").strip()
            return decide(record, Approval.RENAME, who=who, new_key=new_key).approval
        case "s":
            return SKIPPED
        case "q":
            return QUIT
    return ""
