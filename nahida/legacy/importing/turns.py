"""Turns, in bulk and in the order of their old ids (DESIGN 5, R1: the only other way in beside `append_turn`)."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from memory_app.models import Attachment, DreamState, MemoryTurn, Role, TurnKind, TurnState
from memory_app.tokens import index_text
from nahida.legacy.importing.envelopes import attachments, envelope
from nahida.legacy.importing.ledger import SESSION, Ledger, batched
from nahida.legacy.importing.reader import OldFile, Row, instant, json_object, kept, text
from nahida.legacy.importing.tally import Progress, Tally
from nahida.legacy.models import BEFORE_ALL, Imported, Source
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
ATTACHMENTS = '"attachments"'
SOURCE_LENGTH = 64
DREAM_POINTER = "memory_dream_last_turn_id"


class AnotherImportError(Exception):
    """Somebody else brings the same turns at the same time."""


def import_turns(
    file: OldFile, source: Source, here: Ledger, tally: Tally, progress: Progress
) -> None:
    """Bring every turn that is younger than the last one that came in. What was erased here since does not come back."""
    count = tally.of("turns")
    count.read = file.count("memory_turns")
    homeless = _homeless(file, here)
    for old_id in homeless:
        count.skip("its session did not come in", old_id)
    came = file.count("memory_turns", up_to=source.turns_to)
    count.there = came - sum(old_id <= source.turns_to for old_id in homeless)
    reserve_ids(file, source)
    fresh = file.rows("memory_turns", COLUMNS, after=source.turns_to)
    done = came
    for rows in batched(fresh, BATCH):
        placed = [row for row in rows if here.get(row["session_id"])]
        turns = [_turn(row, source, here) for row in placed]
        files = list(_files(placed, source))
        with transaction.atomic():
            _go_on(source, to=rows[-1]["id"])
            MemoryTurn.objects.bulk_create(turns)
            Attachment.objects.bulk_create(files)
        done += len(rows)
        count.imported += len(turns)
        progress("turns", done, count.read)


def _homeless(file: OldFile, here: Ledger) -> list[int]:
    """Return the turns whose session did not come in."""
    rows = file.rows("memory_turns", ("id", "session_id"))
    return [row["id"] for row in rows if not here.get(row["session_id"])]


def _go_on(source: Source, *, to: int) -> None:
    """Note how far it came, and that nobody else came further meanwhile."""
    ours = Source.objects.filter(pk=source.pk, turns_to=source.turns_to)
    if not ours.update(turns_to=to):
        raise AnotherImportError(f'another import of "{source.name}" is under way: let it finish')
    source.turns_to = to


def reserve_ids(file: OldFile, source: Source) -> None:
    """Set ids aside for the turns that are to come: the old ones where they are free, else a range behind all others."""
    with transaction.atomic():
        _lock_turns()
        source.refresh_from_db(fields=["ranges"])
        known = max((last for _, last, _ in source.ranges), default=BEFORE_ALL)
        [first, last] = file.span("memory_turns", after=known)
        if first is None:
            return
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


def _turn(row: Row, source: Source, here: Ledger) -> MemoryTurn:
    metadata, as_it_was = json_object(row["metadata_json"])
    found = envelope(metadata)
    content, written, role = text(row["content"]), text(row["source"]), row["role"]
    created = instant(row["created_at"])
    is_of_person = role == Role.USER
    return MemoryTurn(
        pk=source.turn_id(row["id"]),
        session_id=here.pk(row["session_id"]),
        kind=KINDS.get(written.removeprefix(FORK), TurnKind.IMPORTED),
        role=role if role in Role.values else Role.SYSTEM,
        content=content,
        search_tokens=index_text(content),
        source=written[:SOURCE_LENGTH],
        sender=found.sender if is_of_person else "",
        sender_name=found.sender_name if is_of_person else "",
        origin=found.origin,
        state=TurnState.DONE,
        metadata=_metadata(written, metadata, source),
        imported={**as_it_was, **_strange(row, created)},
        sent_at=found.sent_at,
        created_at=created or found.sent_at or timezone.now(),
    )


def _strange(row: Row, created: datetime | None) -> dict[str, Any]:
    """Return what its column here cannot hold as it was."""
    found = {}
    if row["role"] not in Role.values:
        found["role"] = kept(row["role"])
    if len(text(row["source"])) > SOURCE_LENGTH:
        found["source"] = text(row["source"])
    if created is None:
        found["created_at"] = kept(row["created_at"])
    return found


def _metadata(written: str, old: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """Return what of the old metadata means something here, ids of turns as they are now."""
    found: dict[str, Any] = {"observed": True} if written.removeprefix(FORK) == OBSERVED else {}
    forked = old.get("forked_turn_id")
    if type(forked) is int and (pk := source.new_id(forked)) is not None:
        found["forked_turn"] = pk
    return found


def _files(rows: Iterable[Row], source: Source) -> Iterator[Attachment]:
    for row in rows:
        # Most turns have none, and reading their JSON twice would take long.
        if ATTACHMENTS in (row["metadata_json"] or ""):
            for file in attachments(json_object(row["metadata_json"])[0]):
                yield Attachment(
                    turn_id=source.turn_id(row["id"]),
                    kind=file.kind,
                    text=file.text,
                    platform_id=file.platform_id,
                    mime=file.mime,
                    size=file.size,
                )


def import_dream_pointers(source: Source) -> None:
    """How far each session had been dreamt, as far as that is known and its turns are here."""
    theirs = Imported.objects.filter(source=source, kind=SESSION).values("session")
    sessions = Session.objects.filter(pk__in=theirs, imported__metadata__has_key=DREAM_POINTER)
    for session in sessions.filter(dream_state=None).iterator():
        pointer = (session.imported or {})["metadata"][DREAM_POINTER]
        if type(pointer) is int and (pk := source.new_id(pointer)) is not None:
            DreamState.objects.get_or_create(session=session, defaults={"dreamt_to": pk})
