"""Turns, in bulk and in the order of their old ids (DESIGN 5, R1: the only other way in beside `append_turn`)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from channels_app.messages import storable
from memory_app.models import Attachment, DreamState, MemoryTurn, Role, TurnKind, TurnState
from memory_app.tokens import index_text
from nahida.legacy.importing.envelopes import attachments, envelope
from nahida.legacy.importing.ledger import Sessions
from nahida.legacy.importing.reader import OldFile, Row, instant, json_object
from nahida.legacy.importing.tally import Tally
from nahida.legacy.models import Source
from sessions_app.models import Session

COLUMNS = ("id", "session_id", "role", "content", "source", "metadata_json", "created_at")
BATCH = (
    2_000  # turns a transaction: a kill costs seconds of work, and SQLite's lock is not held long
)

KINDS: Mapping[str, TurnKind] = {
    "user_input": TurnKind.MESSAGE,
    "agent_response": TurnKind.MESSAGE,
    "group_observation": TurnKind.MESSAGE,
    "cron_trigger": TurnKind.JOB,
    "subagent_task": TurnKind.JOB,
    "subagent_completed": TurnKind.TASK_RESULT,
    "subagent_context_summary": TurnKind.SUMMARY,
}
FORK = "subagent_fork:"
OBSERVED = "group_observation"
DREAM_POINTER = "memory_dream_last_turn_id"

Progress = Callable[[str, int], None]


def import_turns(
    file: OldFile, source: Source, here: Sessions, tally: Tally, progress: Progress
) -> None:
    """Bring every turn that is younger than the last one that came in. What was erased here since does not come back."""
    count = tally.of("turns")
    count.read = file.count("memory_turns")
    reserve_ids(file, source)
    fresh = file.rows("memory_turns", COLUMNS, after=source.turns_to)
    brought = 0
    for rows in batched_rows(fresh, BATCH):
        with transaction.atomic():
            made = [_turn(row, source, here) for row in rows]
            MemoryTurn.objects.bulk_create(made)
            Attachment.objects.bulk_create(_files(rows, source))
            source.turns_to = rows[-1]["id"]
            source.save(update_fields=["turns_to"])
        brought += len(rows)
        progress("turns", brought)
    count.imported = brought
    count.there = count.read - brought


def batched_rows(rows: Iterator[Row], size: int) -> Iterator[Sequence[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def reserve_ids(file: OldFile, source: Source) -> None:
    """Set ids aside for the turns that are to come: the old ones where they are free, else a range behind all others."""
    known = max((last for _, last, _ in source.ranges), default=0)
    [first, last] = file.span("memory_turns", after=known)
    if first is None:
        return
    with transaction.atomic():
        _lock_turns()
        taken = MemoryTurn.objects.aggregate(last=Max("pk"))["last"] or 0
        given_out = _last_given_out()
        if Session.objects.filter(imported_at=None).exists():
            # Rows may still name turns that were erased since: their ids are not given out again.
            taken = max(taken, given_out)
        offset = 0 if taken < first else taken - first + 1
        source.ranges = [*source.ranges, [first, last, offset]]
        source.save(update_fields=["ranges"])
        _go_on_behind(max(last + offset, given_out))


def _lock_turns() -> None:
    """Nobody inserts a turn until the transaction ends. SQLite's one write lock stands for it there."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {MemoryTurn._meta.db_table} IN SHARE ROW EXCLUSIVE MODE")


def _last_given_out() -> int:
    """Return the last id that was ever given out, as far as the database knows."""
    table = MemoryTurn._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [table])
            [sequence] = cursor.fetchone()
            cursor.execute(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}")
        else:
            cursor.execute(
                "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = %s", [table]
            )
        [found] = cursor.fetchone()
    return int(found)


def _go_on_behind(last: int) -> None:
    """Let new turns get ids behind `last`."""
    table = MemoryTurn._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [table, last])
            return
        cursor.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [last, table])
        if not cursor.rowcount:
            cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table, last])


def _turn(row: Row, source: Source, here: Sessions) -> MemoryTurn:
    metadata, kept = json_object(row["metadata_json"])
    found = envelope(metadata)
    content = storable(str(row["content"] or ""))
    written = str(row["source"] or "")
    role = str(row["role"] or "")
    created = instant(row["created_at"])
    strange = {} if role in Role.values else {"role": role}
    if created is None:
        strange["created_at"] = row["created_at"]
    return MemoryTurn(
        pk=source.turn_id(row["id"]),
        session_id=here.pk(row["session_id"]),
        kind=KINDS.get(written.removeprefix(FORK), TurnKind.IMPORTED),
        role=role if role in Role.values else Role.SYSTEM,
        content=content,
        search_tokens=index_text(content),
        source=storable(written)[:64],
        sender=found.sender if role == Role.USER else "",
        sender_name=found.sender_name if role == Role.USER else "",
        origin=found.origin,
        state=TurnState.DONE,
        metadata=_metadata(written, metadata, source),
        imported={**kept, **strange},
        sent_at=found.sent_at,
        created_at=created or found.sent_at or timezone.now(),
    )


def _metadata(written: str, old: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """Return what of the old metadata means something here, ids of turns as they are now."""
    found: dict[str, Any] = {"observed": True} if written.removeprefix(FORK) == OBSERVED else {}
    forked = old.get("forked_turn_id")
    if isinstance(forked, int) and (pk := source.new_id(forked)) is not None:
        found["forked_turn"] = pk
    return found


def _files(rows: Sequence[Row], source: Source) -> list[Attachment]:
    return [
        Attachment(
            turn_id=source.turn_id(row["id"]),
            kind=file.kind,
            text=file.text,
            platform_id=file.platform_id,
            mime=file.mime,
            size=file.size,
        )
        for row in rows
        for file in attachments(json_object(row["metadata_json"])[0])
    ]


def import_dream_pointers(source: Source, here: Sessions) -> None:
    """How far each session had been dreamt, as far as that is known and its turns are here."""
    sessions = Session.objects.filter(pk__in=[pk for pk in here.here.values() if pk])
    for session in sessions.exclude(imported=None).iterator():
        metadata = (session.imported or {}).get("metadata")
        pointer = metadata.get(DREAM_POINTER) if isinstance(metadata, dict) else None
        if isinstance(pointer, int) and (pk := source.new_id(pointer)) is not None:
            DreamState.objects.get_or_create(session=session, defaults={"dreamt_to": pk})


def orphaned(file: OldFile) -> list[str]:
    """Return the sessions that turns name and that have no row."""
    return file.orphans("memory_turns", "session_id", "sessions", "session_id")
