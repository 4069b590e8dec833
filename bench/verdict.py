"""What must be true of a site at rest, however often its processes were killed (DESIGN 11)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.model import NUMBER
from bench.site import Site
from channels_app.models import UNFINISHED, Delivery, DeliveryState
from memory_app.models import MemoryTurn, Role, TurnState


@dataclass(slots=True)
class Verdict:
    said: int
    answers: int = 0
    gave_up: int = 0
    seen: int = 0
    unknown: int = 0
    unknown_unseen: int = 0
    faults: list[str] = field(default_factory=list)


def is_quiet(site: Site) -> bool:
    """Is everything stored, answered, and sent or given up?"""
    return (
        site.platform.get("/waiting") == 0
        and not MemoryTurn.objects.unfinished().exists()
        and not Delivery.objects.filter(UNFINISHED).exists()
    )


def judge(site: Site, said: list[str], *, lost_at_work: int) -> Verdict:
    """Compare what people said with the rows and with what the platform saw.

    `lost_at_work` is how many workers may have died over a request to the platform.
    """
    verdict = Verdict(len(said))
    verdict.faults = [
        *_unanswered(said, verdict),
        *_unlike_the_platform(site, verdict),
    ]
    if verdict.unknown > lost_at_work:
        verdict.faults.append(f"{verdict.unknown} unknown, but {lost_at_work} workers lost at work")
    return verdict


def _unanswered(said: list[str], verdict: Verdict) -> Iterator[str]:
    """Every message is one turn with one answer that names it, and no answer is nobody's."""
    turns = MemoryTurn.objects.filter(role=Role.USER).select_related("answered_by").order_by("pk")
    counted: Counter[str] = Counter()
    answers: dict[int, str] = {}
    for turn in turns:
        [name] = NUMBER.findall(turn.content)
        counted[name] += 1
        answer = turn.answered_by
        if answer is None:
            yield f"{name} is {turn.state} and has no answer"
            continue
        answers[answer.pk] = answer.content
        if turn.state == TurnState.FAILED:
            verdict.gave_up += 1
        elif name not in NUMBER.findall(answer.content):
            yield f"{name} is answered by {answer.content!r}"
    verdict.answers = len(answers)
    yield from (f"{name} was lost" for name in said if counted[name] == 0)
    yield from (f"{name} was stored {n} times" for name, n in counted.items() if n > 1)
    stray = MemoryTurn.objects.filter(role=Role.ASSISTANT).exclude(pk__in=answers)
    yield from (f"nobody asked for {turn.content!r}" for turn in stray)
    if (deliveries := Delivery.objects.count()) != len(answers):
        yield f"{len(answers)} answers, but {deliveries} deliveries"


def _unlike_the_platform(site: Site, verdict: Verdict) -> Iterator[str]:
    """A sent delivery was seen once, an unknown one at most once, and nothing else was."""
    seen = Counter((message["address"], message["text"]) for message in site.platform.get("/sent"))
    verdict.seen = seen.total()
    rows = [
        (row.address, row.parts[0]["text"], row.state)
        for row in Delivery.objects.order_by("pk").iterator()
    ]
    states: dict[tuple[str, str], Counter[str]] = {}
    for address, text, state in rows:
        states.setdefault((address, text), Counter())[state] += 1
        if state not in (DeliveryState.SENT, DeliveryState.UNKNOWN):
            yield f"{text!r} to {address} is {state}"
    for key, by_state in states.items():
        sent, unknown = by_state[DeliveryState.SENT], by_state[DeliveryState.UNKNOWN]
        verdict.unknown += unknown
        verdict.unknown_unseen += max(0, sent + unknown - seen[key])
        if not sent <= seen[key] <= sent + unknown:
            yield f"{key}: {sent} sent, {unknown} unknown, but seen {seen[key]} times"
    yield from (f"the platform saw {key}, which nobody sent" for key in seen.keys() - states.keys())
