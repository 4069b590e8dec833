"""Rows as the import leaves them, written straight into the tables."""

from typing import Any

from django.utils import timezone

from channels_app.addresses import AddressError, ChatAddress, SessionKey
from memory_app.models import MemoryTurn, TurnKind
from scheduler_app.models import BackgroundTask, CronJob
from sessions_app.models import Chat, Lane, MigrationLog, Session

BASE = "milky:10001"
PRIVATE = "milky:private:10001"
GROUP = "milky:group:10001"


def old_chat(address: ChatAddress) -> Chat:
    return Chat.objects.get_or_create(
        chat_key=address.chat_key,
        defaults={
            "channel": address.channel,
            "target_type": address.target_type,
            "target_id": address.target_id,
            "imported_at": timezone.now(),
        },
    )[0]


def old_session(key: str = BASE, *origins: str, metadata: Any = None) -> Session:
    """A session with one user's turn of each origin, each with its answer."""
    try:
        chat, suffix = old_chat(SessionKey.parse(key).address), SessionKey.parse(key).suffix
    except AddressError:
        chat, suffix = None, ""
    session = Session.objects.create(
        key=key,
        chat=chat,
        suffix=suffix,
        imported_at=timezone.now(),
        imported={"source": "old", "metadata": metadata},
    )
    for origin in origins:
        old_turn(session, origin)
        old_turn(session, role="assistant", source="agent_response")
    return session


def old_turn(
    session: Session, origin: str = "", *, role: str = "user", source: str = "user_input"
) -> int:
    kind = TurnKind.JOB if source == "cron_trigger" else TurnKind.MESSAGE
    turn = MemoryTurn.objects.create(
        session=session, role=role, kind=kind, source=source, origin=origin, content="said"
    )
    return turn.pk


def old_job(key: str = BASE, *, active: bool = True, **imported: Any) -> CronJob:
    return CronJob.objects.create(
        imported_key=key,
        imported={"job_id": "j1", **imported},
        imported_at=timezone.now(),
        prompt="say good morning",
        mode="interval",
        interval_seconds=3600,
        active=active,
    )


def override(key: str, session: Session) -> Lane:
    return Lane.objects.create(chat=old_chat(SessionKey.parse(key).address), active_session=session)


def old_task(requester: Session, child: Session) -> BackgroundTask:
    return BackgroundTask.objects.create(requester=requester, child=child, title="look it up")


def record(key: str = BASE) -> MigrationLog:
    return MigrationLog.objects.filter(kind="session_keys", old_key=key).latest("pk")
