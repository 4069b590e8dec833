"""The turn: what a worker does with a lane (DESIGN 5, R2-R5, R8, R11).

Over a model or tool call only turn ids and the token are carried; no transaction is open meanwhile.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from channels_app.addresses import API, WEB
from channels_app.models import Delivery
from channels_app.splitting import is_blank
from memory_app import toolcalls, turns
from memory_app.models import MemoryTurn, ModelCall, TurnKind, TurnState
from memory_app.recall import keep_receipts, recall
from memory_app.search import Hit
from memory_app.turns import Answer, Take
from nahida import queue
from nahida.agent import attachments, context, embeddings, slash
from nahida.agent.context import Room
from nahida.agent.loop import converse
from nahida.agent.policy import least
from nahida.agent.signals import showable, spoken
from nahida.agent.tools import TOOLS
from nahida.agent.tools.base import Tool, Toolbox, TurnScope
from nahida.agent.vocabulary import CallRecord, Message, Model, ModelError, Reply
from nahida.agent.working import shown_working
from sessions_app import lanes
from sessions_app.lanes import LostLaneError
from sessions_app.models import Access, Chat, Draft, Lane
from sessions_app.routing import access_of

logger = logging.getLogger(__name__)

DEADLINE_S = 240.0  # shorter than the queue's time-out
RENEW_EVERY_S = 10.0
TRY_AGAIN_S = 1.0  # when the database does not answer
DRAFT_EVERY_S = 0.3
BACK_OFF = (timedelta(seconds=5), timedelta(seconds=30))  # after the first and second attempt
LONGEST_BACK_OFF = timedelta(minutes=5)  # whatever a provider asks for: somebody waits for a word

TOOK_TOO_LONG = "That took longer than I may think about one message. Please ask again."
MODEL_IS_DOWN = "My language model cannot be reached at the moment. Please try again later."
NO_MODEL = "My language model is not set up correctly. Please tell the owner."
REFUSED = "My language model refused to answer that."
TOO_LONG = "That is longer than my language model can read. /new begins a new conversation."
BUDGET_SPENT = "That would take more work than one message may cost. Please ask for less at once."
TOOL_INTERRUPTED = "I was interrupted while doing that, and cannot tell whether it was done."
NOTHING_SAID = "I have no answer to that. Please say it differently."
CUT = "[The answer broke off here.]"
TOO_MUCH = "[The answer reached its longest length.]"

NOTICES = {
    "unavailable": MODEL_IS_DOWN,
    "rate_limited": MODEL_IS_DOWN,
    "misconfigured": NO_MODEL,
    "refused": REFUSED,
    "too_long": TOO_LONG,
    "budget": BUDGET_SPENT,
}

ModelFor = Callable[[Chat], Model]


class StoppedError(Exception):
    """Somebody said /stop."""


def run_lane(lane_id: int, *, model_for: ModelFor, tools: Sequence[Tool] = TOOLS) -> None:
    """Answer the next batch of a lane, if it is due and nobody else is at it."""
    token = lanes.claim(lane_id)
    if token is None:
        return
    with _kept(lane_id, token):
        take = turns.take(lane_id, token)
        if take is None:
            return
        if take.turn_ids:
            _answer(lane_id, token, take, tools, model_for)
        if not turns.release(lane_id, token, inbox=take.inbox):
            queue.wake(queue.RUN_LANE, lane_id)


def _answer(
    lane_id: int, token: uuid.UUID, take: Take, tools: Sequence[Tool], model_for: ModelFor
) -> None:
    lane = Lane.objects.select_related("chat__parent").filter(pk=lane_id, token=token).first()
    if lane is None:
        return
    work = _Work.begin(lane, token, take, tools)
    try:
        if access_of(work.chat) == Access.BLOCKED:
            work.stop()
        elif work.turns[0].kind == TurnKind.COMMAND:
            work.obey()
        elif toolcalls.was_interrupted(work.batch):
            work.fail(TOOL_INTERRUPTED)
        else:
            with shown_working(lane.address, work.turns[-1].message_id):
                work.converse(model_for(work.chat))
    except LostLaneError:
        logger.warning("lane %s was lost in mid-turn, its answer is dropped", work.lane_id)
    except StoppedError:
        work.stop()
    except ModelError as error:
        logger.warning("turn %s: %s", work.batch, error)
        if error.retryable:
            work.put_back(NOTICES[error.kind], retry_after=error.retry_after)
        else:
            work.fail(NOTICES[error.kind])
    except Exception:
        logger.exception("turn %s", work.batch)
        work.put_back(turns.GAVE_UP)


@dataclass(slots=True)
class _Work:
    """One batch in the hands of its holder."""

    lane_id: int
    token: uuid.UUID
    chat: Chat
    thread: str
    turns: Sequence[MemoryTurn]
    tools: Sequence[Tool]
    deadline: float
    text: str = ""
    drafted_at: float = 0.0
    recalled: list[Hit] = field(default_factory=list)  # and shown to the model

    @classmethod
    def begin(cls, lane: Lane, token: uuid.UUID, take: Take, tools: Sequence[Tool]) -> "_Work":
        batch = MemoryTurn.objects.filter(pk__in=take.turn_ids).select_related("session")
        return cls(
            lane_id=lane.pk,
            token=token,
            chat=lane.chat,
            thread=lane.thread,
            turns=list(batch.order_by("pk")),
            tools=tools,
            deadline=time.monotonic() + DEADLINE_S,
        )

    @property
    def ids(self) -> list[int]:
        return [turn.pk for turn in self.turns]

    @property
    def batch(self) -> int:
        return self.turns[0].pk

    def obey(self) -> None:
        def compose(lane: Lane, batch: Sequence[MemoryTurn]) -> Answer:
            command = slash.parse(batch[0].content)
            assert command is not None, "a turn of kind command holds a known command"
            text = slash.run(command, lane=lane, turn=batch[0])
            return Answer(text, is_notice=True, reply_to=batch[0].message_id)

        self._commit(compose)

    def converse(self, model: Model) -> None:
        attachments.fetch(
            self.lane_id,
            self.token,
            self.turns,
            is_private=self.chat.is_private,
            deadline=self.deadline,
            check=self._check,
        )
        session = self.turns[0].session
        scope = TurnScope(
            chat=self.chat,
            session=session,
            thread=self.thread,
            lane_id=self.lane_id,
            token=self.token,
            batch=self.batch,
            rights=least(turn.rights for turn in self.turns),
        )
        reply = self._ask(model, scope)
        answer = self._answer_of(reply, said_something=bool(scope.staged))

        def compose(lane: Lane, batch: Sequence[MemoryTurn]) -> Answer:
            if self.batch < lane.stop_before:
                raise StoppedError
            return answer

        self._commit(compose, staged=scope)

    def _ask(self, model: Model, scope: TurnScope) -> Reply:
        hits = self._recall()
        room = Room(
            history=min(settings.NAHIDA.agent.history_tokens, model.context_tokens // 2),
            files=model.context_tokens // 4,
            memory=min(settings.NAHIDA.memory.recall_tokens, model.context_tokens // 8),
            sees_images=model.sees_images,
        )
        messages = self._messages(hits, room)
        try:
            return self._ask_once(model, scope, messages)
        except ModelError as error:
            less = _less(room, error, messages)
            if less is None:
                raise
            logger.warning("turn %s is asked again with less: %s", self.batch, error)
            scope.staged.clear()  # it begins anew, and nothing has left yet
            return self._ask_once(model, scope, self._messages(hits, less))

    def _recall(self) -> list[Hit]:
        """Look up what may bear on the batch. The endpoint of the vectors may be asked, so no transaction is open."""
        budget = settings.NAHIDA.memory.recall_items
        if not budget:
            return []
        query = "\n".join(turn.content for turn in self.turns)
        key = self.turns[0].session.session_key
        return recall(query, key=key, budget=budget, vector=embeddings.query_vector(query))

    def _messages(self, hits: Sequence[Hit], room: Room) -> list[Message]:
        self.recalled = context.fitting(hits, room=room)
        session = self.turns[0].session
        return context.build(self.chat, session, self.turns, recalled=self.recalled, room=room)

    def _ask_once(self, model: Model, scope: TurnScope, messages: Sequence[Message]) -> Reply:
        return converse(
            model,
            messages,
            toolbox=Toolbox(self.tools, scope),
            rounds=settings.NAHIDA.agent.max_tool_rounds,
            on_text=self._draft,
            record=self._record,
            check=self._check,
            deadline=self.deadline,
        )

    def _answer_of(self, reply: Reply, *, said_something: bool) -> Answer:
        whole, limit = spoken(reply.text), settings.NAHIDA.agent.answer_limit
        text, finish = whole[:limit], "length" if len(whole) > limit else reply.finish
        last = self.turns[-1]
        metadata = {"model": reply.model, "finish": finish}
        if text:
            text += {"cut": f"\n\n{CUT}", "length": f"\n\n{TOO_MUCH}"}.get(finish, "")
            reply_to = "" if self.chat.is_private else last.message_id
            return Answer(text, reply_to=reply_to, metadata=metadata)
        if reply.finish == "content_filter":
            return Answer(REFUSED, is_notice=True, reply_to=last.message_id)
        if said_something or not is_blank(reply.text):
            return Answer()  # it chose to say nothing more
        return Answer(NOTHING_SAID, is_notice=True, reply_to=last.message_id)

    def _commit(
        self,
        compose: Callable[[Lane, Sequence[MemoryTurn]], Answer],
        *,
        staged: TurnScope | None = None,
    ) -> None:
        def also(answer: MemoryTurn | None, delivery: Delivery | None) -> None:
            if delivery is not None:
                queue.wake_on_commit(queue.DELIVER, delivery.pk)
            if answer is not None:
                keep_receipts(self.recalled, turn=answer)

        turns.commit(
            self.lane_id,
            self.token,
            turn_ids=self.ids,
            compose=compose,
            outgoing=staged.staged if staged else (),
            also=also,
        )

    def fail(self, text: str) -> None:
        def compose(lane: Lane, batch: Sequence[MemoryTurn]) -> Answer:
            if self.batch < lane.stop_before:
                return Answer(state=TurnState.STOPPED)
            return Answer(text, is_notice=True, state=TurnState.FAILED)

        self._commit(compose)

    def stop(self) -> None:
        """End the batch. What a page has already shown of the answer stays there; nothing is sent."""
        shown = showable(self.text) if self.chat.channel in (WEB, API) else ""
        stopped = Answer(
            shown, deliver=False, state=TurnState.STOPPED, metadata={"finish": "stopped"}
        )
        self._commit(lambda lane, batch: stopped)

    def put_back(self, text: str, *, retry_after: float | None = None) -> None:
        step = min(self.turns[0].attempt, len(BACK_OFF)) - 1
        pause = BACK_OFF[step]
        if retry_after is not None:
            pause = min(timedelta(seconds=retry_after), LONGEST_BACK_OFF)
        turns.put_back(self.lane_id, self.token, turn_ids=self.ids, by=pause, text=text)

    def _check(self) -> None:
        if turns.is_stopped(self.lane_id, self.token, batch=self.batch):
            raise StoppedError

    def _draft(self, text: str) -> None:
        """Show the growing answer a few times a second, and look whether it is still wanted."""
        self.text = text
        if time.monotonic() - self.drafted_at < DRAFT_EVERY_S:
            return
        self.drafted_at = time.monotonic()
        self._check()
        Draft.objects.filter(lane=self.lane_id, token=self.token).update(text=showable(text))

    def _record(self, call: CallRecord) -> None:
        """Keep what a request cost, whatever becomes of its answer."""
        ModelCall.objects.create(
            turn_id=self.batch,
            model=call.model,
            tokens_in=call.tokens_in,
            tokens_out=call.tokens_out,
            estimated=call.estimated,
            cost=call.cost,
            ms=call.ms,
            outcome=call.outcome,
        )


def _less(room: Room, error: ModelError, messages: Sequence[Message]) -> Room | None:
    """Return what to leave room for when a request was not taken, None if less of it would not help."""
    if error.kind == "too_long":
        return replace(
            room, history=room.history // 4, files=room.files // 4, memory=room.memory // 4
        )
    if error.kind == "refused" and any(message.images for message in messages):
        return replace(room, sees_images=False)  # one picture it cannot read must not end the talk
    return None


@contextmanager
def _kept(lane_id: int, token: uuid.UUID) -> Iterator[None]:
    """Renew the lease from a thread of its own, and end the turn when its deadline passes (R2)."""
    done = threading.Event()
    keeper = threading.Thread(
        target=_keep,
        args=(lane_id, token, done),
        kwargs={"every_s": RENEW_EVERY_S, "deadline_s": DEADLINE_S},
        name=f"lane-{lane_id}",
        daemon=True,
    )
    keeper.start()
    try:
        yield
    finally:
        done.set()


def _keep(
    lane_id: int,
    token: uuid.UUID,
    done: threading.Event,
    *,
    every_s: float,
    deadline_s: float,
) -> None:
    deadline = time.monotonic() + deadline_s
    try:
        while not done.wait(min(every_s, max(deadline - time.monotonic(), 0))):
            try:
                if time.monotonic() >= deadline:
                    turns.expire(lane_id, token, text=TOOK_TOO_LONG)
                    return
                if not lanes.renew(lane_id, token):
                    return
            except (DatabaseError, InterfaceError):
                logger.exception("keeping lane %s", lane_id)
                connection.close()
                done.wait(TRY_AGAIN_S)
    finally:
        connection.close()
