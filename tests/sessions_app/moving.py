"""What the tests of re-keying add to the stage: two addresses of one chat, and a chat with everything a chat can have."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any

from django.apps import apps
from django.db import connection, transaction
from django.utils import timezone

from channels_app import outbox
from channels_app.addresses import ChatAddress
from channels_app.clock import DbNow
from channels_app.models import Delivery, DeliveryState
from memory_app.index import ITEMS, TURNS, Indexed
from memory_app.models import (
    DreamRun,
    DreamState,
    MemoryCandidate,
    MemoryItem,
    MemoryTurn,
    RecallReceipt,
    TurnKind,
)
from memory_app.turns import NewTurn, append_turn, requeue
from nahida.gateway.models import ApiKey
from nahida.legacy.models import Imported, Source
from scheduler_app.models import BackgroundTask, CronJob, JobMode
from sessions_app import lanes, rekey
from sessions_app.ledger import Ledger
from sessions_app.models import Chat, Draft, Lane, MigrationLog, MigrationUndo, Session
from sessions_app.routing import start_session
from sessions_app.undo import take_back
from tests.base import CommittedTestCase, NahidaTestCase, Stage

OLD = ChatAddress("fake", "group", "-7001")
NEW = ChatAddress("fake", "group", "-1007001")
TOPIC = "55"
MINUTE = timedelta(minutes=1)


class MovingStage(Stage):
    def move(self, to: ChatAddress = NEW, *, chat: Chat | None = None) -> Chat:
        return rekey.move_chat(
            chat or self.chat(OLD), to, reason="moved by a test", requeue=requeue
        )

    def append(self, where: ChatAddress, text: str, **details: object) -> MemoryTurn:
        new = NewTurn(kind=TurnKind.MESSAGE, content=text, origin=str(where), **details)  # type: ignore[arg-type]
        with transaction.atomic():
            return append_turn(where, new)

    def post(self, where: ChatAddress, *, state: str = DeliveryState.PENDING) -> Delivery:
        with transaction.atomic():
            delivery = outbox.post(lanes.lock(where).address, f"{state} to {where}")
        assert delivery is not None
        Delivery.objects.filter(pk=delivery.pk).update(state=state)
        return delivery

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """Keep what is done in a record of its own."""
        with transaction.atomic():
            self.record = MigrationLog.objects.create(
                kind="test", old_key=uuid.uuid4().hex, recommendation="rename"
            )
            with Ledger(self.record) as ledger:
                yield ledger

    def take_back(self, record: MigrationLog | None = None) -> None:
        with transaction.atomic():
            take_back(record or self.record)

    def start_session(self, where: ChatAddress) -> Session:
        with transaction.atomic():
            return start_session(lanes.lock(where))

    def hold(self, where: ChatAddress) -> uuid.UUID:
        """Let a worker hold a lane with a live lease."""
        token = lanes.claim(self.lane(where).pk)
        assert token is not None
        return token

    def lose(self, where: ChatAddress) -> None:
        """Let the holder of a lane be late."""
        Lane.objects.filter(pk=self.lane(where).pk).update(lease_until=DbNow() - MINUTE)

    def make_due(self, *addresses: ChatAddress) -> None:
        for where in addresses:
            Lane.objects.filter(pk=self.lane(where).pk).update(wake_at=DbNow() - MINUTE)

    def furnish(self, where: ChatAddress) -> Chat:
        """Give a chat two lanes and at least one row of every kind that can belong to it."""
        topic = where.with_thread(TOPIC)
        turn = self.append(where, f"said at {where}")
        self.append(topic, f"said at {topic}")
        session = self.start_session(topic)
        self.append(topic, f"said anew at {topic}")
        chat = self.chat(where)
        for state in DeliveryState.values:
            self.post(where, state=state)
            self.post(topic, state=state)
        scope = {"scope_type": "chat", "scope_id": str(where)}
        item = MemoryItem.objects.create(
            kind="fact", content="likes tea", source_session=session, source_turn=turn, **scope
        )
        MemoryCandidate.objects.create(kind="fact", source_session=session, **scope)
        MemoryItem.objects.create(
            scope_type="global", scope_id="__global__", kind="decision", source_session=session
        )
        RecallReceipt.objects.create(turn=turn, item=item, scope_type="chat", mode="keyword")
        DreamState.objects.create(session=turn.session, dreamt_to=turn.pk)
        DreamRun.objects.create(session=turn.session, night=date(2031, 5, 10))
        CronJob.objects.create(
            chat=chat, prompt="good morning", mode=JobMode.CRON, creator_session=session
        )
        BackgroundTask.objects.create(requester=turn.session, child=session, title="look it up")
        source, _ = Source.objects.get_or_create(name="old", defaults={"path": "-", "mark": "-"})
        Imported.objects.create(source=source, kind="session", old_id=str(where), session=session)
        key = ApiKey.objects.create(name=str(where), prefix=str(chat.pk), digest="d")
        key.chats.add(chat)
        source = Source.objects.create(name=str(where), path="", mark="")
        Imported.objects.create(source=source, kind="session", old_id="milky:1", session=session)
        Draft.objects.create(lane=self.lane(where), turn=turn.pk, token=uuid.uuid4())
        Chat.objects.create(
            chat_key=f"{chat.pk}-thread",
            channel="fake",
            target_type="thread",
            target_id=f"{chat.pk}-thread",
            parent=chat,
        )
        Chat.objects.filter(pk=chat.pk).update(created_at=timezone.now())
        return chat


def rows() -> dict[str, list[dict[str, Any]]]:
    """Return every row of every table but those of the records, and what the full-text index holds."""
    found = {
        model._meta.label: list(model._base_manager.order_by("pk").values())
        for model in apps.get_models(include_auto_created=True)
        if model not in (MigrationLog, MigrationUndo)
    }
    return found | {indexed.table: list(index_entries(indexed)) for indexed in (ITEMS, TURNS)}


def index_entries(indexed: Indexed) -> Iterator[dict[str, Any]]:
    """Yield which words lead to which rows; on PostgreSQL the index is a column of the row itself."""
    sql = {
        "sqlite": f"SELECT term, doc FROM temp.words_of_{indexed.name} ORDER BY term, doc",
        "postgresql": f"SELECT search_vector, id FROM {indexed.table} ORDER BY id",
    }
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.words_of_{indexed.name} "
                f"USING fts5vocab('main', '{indexed.name}', 'instance')"
            )
        cursor.execute(sql[connection.vendor])
        yield from ({"words": words, "row": row} for words, row in cursor.fetchall())


class MovingTestCase(MovingStage, NahidaTestCase):
    """A test inside one transaction."""


class CommittedMovingTestCase(MovingStage, CommittedTestCase):
    """A test of real transactions, for other threads."""


@contextmanager
def before_statement(*fragments: str, act: Callable[[], object]) -> Iterator[None]:
    """Let something happen just before the first statement that holds all these texts, as another process would do it."""
    waiting = [act]

    def interrupt(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if waiting and all(fragment in sql for fragment in fragments):
            waiting.pop()()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(interrupt):
        yield
    assert not waiting, f"no statement held {fragments}"
