"""Chats and sessions: every old key byte for byte, its chat of unknown type unless the key itself is typed."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from channels_app.addresses import AddressError, ChatAddress, SessionKey
from nahida.legacy.importing.ledger import SESSION, Ledger, batched
from nahida.legacy.importing.reader import OldFile, Row, instant, json_object, kept
from nahida.legacy.importing.tally import Tally
from nahida.legacy.models import Source
from sessions_app.models import Chat, Lane, Session

COLUMNS = ("session_id", "workspace_id", "created_at", "last_active_at", "metadata_json")
NO_ROW = "sessions without a row"
LONGEST_CHANNEL = 64  # characters
BATCH = 200  # sessions a transaction


def import_sessions(file: OldFile, source: Source, tally: Tally) -> Ledger:
    count = tally.of("sessions")
    here = Ledger(source, SESSION)
    rows = here.missing(file.rows("sessions", COLUMNS), id_in="session_id", count=count)
    for batch in batched(rows, BATCH):
        with transaction.atomic():
            here.note([(old_id, _bring(old_id, row, source).pk) for old_id, row in batch])
        count.imported += len(batch)
    return here


def _bring(old_id: str, row: Row, source: Source) -> Session:
    created = instant(row["created_at"])
    metadata, as_it_was = json_object(row["metadata_json"])
    imported = {"source": source.name, "workspace_id": row["workspace_id"], **as_it_was}
    for name in ("created_at", "last_active_at"):
        if instant(row[name]) is None:
            imported[name] = row[name]
    return _session(
        old_id,
        imported=kept(imported),
        created=created or instant(row["last_active_at"]),
        active=instant(row["last_active_at"]) or created,
        is_kept=metadata.get("legacy_untyped") is True,
    )


def import_referred(old_ids: Iterable[str], source: Source, here: Ledger, tally: Tally) -> None:
    """Make an empty session for each id that other rows name though no session has it: nothing may point nowhere."""
    count = tally.of(NO_ROW)
    named = ({"session_id": old_id} for old_id in old_ids)
    for batch in batched(here.missing(named, id_in="session_id", count=count), BATCH):
        with transaction.atomic():
            here.note([(old_id, _stub(old_id, source).pk) for old_id, _ in batch])
        count.imported += len(batch)


def _stub(old_id: str, source: Source) -> Session:
    imported = {"source": source.name, "missing": True}
    return _session(old_id, imported=imported, created=None, active=None, is_kept=False)


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
            "chat": _chat(key.address) if key else None,
            "suffix": key.suffix if key else "",
            "legacy_untyped": is_kept,
            "created_at": created or now,
            "last_active_at": active or created or now,
            "imported_at": now,
            "imported": imported,
        },
    )
    if not is_new:
        _join(session, imported=imported, created=created, active=active)
    return session


def _join(
    session: Session,
    *,
    imported: dict[str, Any],
    created: datetime | None,
    active: datetime | None,
) -> None:
    """Note on a session that was here before what the old file says of it."""
    before = session.imported
    if before is not None:
        imported = {**before, "merged": [*before.get("merged", []), imported]}
    session.imported = imported
    session.imported_at = session.imported_at or timezone.now()
    session.created_at = min(session.created_at, created or session.created_at)
    session.last_active_at = max(session.last_active_at, active or session.last_active_at)
    session.save(update_fields=["imported", "imported_at", "created_at", "last_active_at"])


def _parsed(old_id: str) -> SessionKey | None:
    try:
        key = SessionKey.parse(old_id)
    except AddressError:
        return None
    return key if len(key.address.channel) <= LONGEST_CHANNEL else None


def chat_of(old_id: str) -> Chat | None:
    """Return the chat of an old key. Of unknown type it can be read, and receives nothing."""
    key = _parsed(old_id)
    return _chat(key.address) if key else None


def _chat(address: ChatAddress) -> Chat:
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


def import_overrides(file: OldFile, source: Source, here: Ledger, tally: Tally) -> None:
    """Keep the session that `/new` left active in each chat."""
    count = tally.of("active sessions")
    known = Ledger(source, "override")  # once moved, it is no longer found by its old key
    rows = file.rows("active_sessions", ("chat_key", "session_id"))
    for chat_key, row in known.missing(rows, id_in="chat_key", count=count):
        address, session = _address(chat_key), here.get(row["session_id"])
        if address is None:
            count.skip("it is no key of a chat", chat_key)
        elif session is None:
            count.skip("it names no session", chat_key)
        else:
            with transaction.atomic():
                lane, is_new = Lane.objects.get_or_create(
                    chat=_chat(address),
                    thread=address.thread_id,
                    defaults={"active_session_id": session},
                )
                known.note([(chat_key, lane.pk)])
            count.imported += is_new
            count.there += not is_new


def _address(chat_key: str) -> ChatAddress | None:
    key = _parsed(chat_key)
    if key is None or (key.suffix and not key.typed):
        return None
    try:
        return ChatAddress.parse(
            chat_key
        )  # the old form of a topic reads as a session's suffix otherwise
    except AddressError:
        return None
