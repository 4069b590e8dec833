"""Chats and sessions: every old key byte for byte, its chat of unknown type unless the key itself is typed."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from channels_app.addresses import AddressError, ChatAddress, SessionKey
from nahida.legacy.importing.ledger import Ledger, Sessions
from nahida.legacy.importing.reader import OldFile, Row, instant, json_object
from nahida.legacy.importing.tally import Count, Tally
from nahida.legacy.models import Source
from sessions_app.models import Chat, Lane, Session

COLUMNS = ("session_id", "workspace_id", "created_at", "last_active_at", "metadata_json")
NO_ROW = "sessions without a row"


def import_sessions(file: OldFile, source: Source, tally: Tally) -> Sessions:
    count = tally.of("sessions")
    here = Sessions(source)
    for row in file.rows("sessions", COLUMNS):
        count.read += 1
        old_id = str(row["session_id"] or "")
        if not old_id:
            count.skip("no session id", row["created_at"])
        elif old_id in here:
            count.there += 1
        else:
            _bring(old_id, row, source, here, count)
    return here


def _bring(old_id: str, row: Row, source: Source, here: Sessions, count: Count) -> None:
    created = instant(row["created_at"])
    metadata, kept = json_object(row["metadata_json"])
    imported = {"source": source.name, "workspace_id": row["workspace_id"], **kept}
    for name in ("created_at", "last_active_at"):
        if instant(row[name]) is None:
            imported[name] = row[name]
    with transaction.atomic():
        session = _session(
            old_id,
            imported=imported,
            created=created or instant(row["last_active_at"]),
            active=instant(row["last_active_at"]) or created,
            is_kept=metadata.get("legacy_untyped") is True,
        )
        here.note([(old_id, session.pk)])
    count.imported += 1


def import_referred(
    old_ids: Iterable[str], file: OldFile, source: Source, here: Sessions, tally: Tally
) -> None:
    """Make an empty session for each id that other rows name though no session has it: nothing may point nowhere."""
    count = tally.of(NO_ROW)
    for old_id in old_ids:
        count.read += 1
        if old_id in here:
            count.there += 1
            continue
        with transaction.atomic():
            imported = {"source": source.name, "missing": True}
            session = _session(old_id, imported=imported, created=None, active=None, is_kept=False)
            here.note([(old_id, session.pk)])
        count.imported += 1


def _session(
    old_id: str,
    *,
    imported: dict[str, Any],
    created: datetime | None,
    active: datetime | None,
    is_kept: bool,
) -> Session:
    """Return the session of an old key; one that began here meanwhile under the same typed key is the same."""
    key = _parsed(old_id)
    now = timezone.now()
    session, is_new = Session.objects.get_or_create(
        key=old_id,
        defaults={
            "chat": chat_of(key.address) if key else None,
            "suffix": key.suffix if key else "",
            "legacy_untyped": is_kept,
            "created_at": created or now,
            "last_active_at": active or created or now,
            "imported_at": now,
            "imported": imported,
        },
    )
    if not is_new:
        session.imported = session.imported or imported
        session.imported_at = session.imported_at or now
        session.created_at = min(session.created_at, created or now)
        session.save(update_fields=["imported", "imported_at", "created_at"])
    return session


def _parsed(old_id: str) -> SessionKey | None:
    try:
        return SessionKey.parse(old_id)
    except AddressError:
        return None


def chat_of(address: ChatAddress) -> Chat:
    """Return the chat of an old address. Of unknown type it can be read, and receives nothing."""
    chat, _ = Chat.objects.get_or_create(
        chat_key=address.chat_key,
        defaults={
            "channel": address.channel,
            "target_type": address.target_type,
            "target_id": address.target_id,
            "imported_at": timezone.now(),
        },
    )
    return chat


def overrides_of(file: OldFile) -> Iterator[tuple[str, str]]:
    """Yield the chat key and the session that `/new` left active there."""
    for row in file.rows("active_sessions", ("chat_key", "session_id")):
        yield str(row["chat_key"] or ""), str(row["session_id"] or "")


def import_overrides(file: OldFile, source: Source, here: Sessions, tally: Tally) -> None:
    count = tally.of("active sessions")
    known = Ledger(source, "override")  # once moved, it is no longer found by its old key
    for chat_key, old_id in overrides_of(file):
        count.read += 1
        key, session = _parsed(chat_key), here.session(old_id)
        if chat_key in known:
            count.there += 1
        elif key is None:
            count.skip("the chat's key cannot be read", chat_key)
        elif session is None:
            count.skip("it names no session", chat_key)
        else:
            with transaction.atomic():
                lane, is_new = Lane.objects.get_or_create(
                    chat=chat_of(key.address),
                    thread=key.address.thread_id,
                    defaults={"active_session": session},
                )
                known.note([(chat_key, lane.pk)])
            count.imported += is_new
            count.there += not is_new
