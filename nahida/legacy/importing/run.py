"""The import as a list of steps."""

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from nahida.legacy.importing import jobs, logs, memory, sessions, turns
from nahida.legacy.importing.reader import OldFile, OldFileError, opened
from nahida.legacy.importing.tally import Progress, Tally
from nahida.legacy.models import Source

# Tables of the old bot that have no home here, and why.
LEFT = {
    "schema_version": "it only counts the old bot's own changes",
    "memory_keywords": "made anew from the turns",
    "memory_item_fts": "made anew from the items",
    "message_deliveries": "messages the old bot had sent already",
    "usage_events": "figures of the old bot's own costs",
    "plugin_data": "of plugins that are not here",
    "persons": "Nahida keeps no persons beyond accounts",
    "person_accounts": "Nahida keeps no persons beyond accounts",
    "account_observations": "Nahida keeps no persons beyond accounts",
    "memory_embedding_vec": "an index, made anew from the vectors",
    "memory_vec_map": "an index, made anew from the vectors",
}
SHADOWS = ("memory_item_fts_", "memory_embedding_vec_", "sqlite_")
STAND_FOR_ROWS = ("_content", "_rowids")  # of a full-text and of a vector index
READ = {
    "sessions",
    "memory_turns",
    "active_sessions",
    "cron_jobs",
    "background_tasks",
    "memory_items",
    "memory_candidates",
    "memory_embeddings",
    "session_key_migration_log",
    "memory_scope_migration_log",
}


class _RolledBackError(Exception):
    """A dry run is over."""


def run(path: Path, *, name: str, is_dry: bool, progress: Progress) -> Tally:
    """Bring everything that is missing here. Raises `OldFileError`, or `TallyError` if the sums do not add up."""
    with opened(path, scratch=settings.DATA_DIR) as file:
        if not is_dry:
            return _import(file, path, name=name, progress=progress)
        tallies: list[Tally] = []
        try:
            with transaction.atomic():
                tallies.append(_import(file, path, name=name, progress=progress))
                raise _RolledBackError
        except _RolledBackError:
            return tallies[0]


def _import(file: OldFile, path: Path, *, name: str, progress: Progress) -> Tally:
    source = _source(file, path, name)
    tally = Tally()
    here = sessions.import_sessions(file, source, tally)
    sessions.import_referred(_referred(file), source, here, tally)
    sessions.import_overrides(file, source, here, tally)
    turns.import_turns(file, source, here, tally, progress)
    turns.import_dream_pointers(source)
    jobs.import_jobs(file, source, here, tally)
    jobs.import_tasks(file, source, here, tally)
    items = memory.import_items(file, source, here, tally, progress)
    memory.import_candidates(file, source, here, tally, progress)
    memory.import_embeddings(file, source, items, tally, progress)
    logs.import_key_log(file, source, here, tally)
    logs.import_scope_log(file, source, items, tally)
    _note_what_is_left(file, tally)
    tally.check()
    source.counts = tally.as_json()
    source.finished_at = timezone.now()
    source.save(update_fields=["counts", "finished_at"])
    return tally


def _source(file: OldFile, path: Path, name: str) -> Source:
    source, _ = Source.objects.get_or_create(
        name=name,
        defaults={"path": str(path), "mark": file.mark, "schema_version": file.version},
    )
    if not source.mark:  # it had no session yet
        source.mark = file.mark
        source.save(update_fields=["mark"])
    if source.mark != file.mark:
        raise OldFileError(
            f'{path} is another database than the one that was imported as "{name}": '
            "give it a name of its own with --name"
        )
    return source


def _referred(file: OldFile) -> Iterator[str]:
    """Yield the sessions that rows name though none has that id, each once."""
    places = (
        ("memory_turns", "session_id"),
        ("active_sessions", "session_id"),
        ("background_tasks", "requester_session_id"),
        ("background_tasks", "child_session_id"),
    )
    yield from dict.fromkeys(
        old_id
        for table, column in places
        for old_id in file.orphans(table, column, "sessions", "session_id")
    )


def _note_what_is_left(file: OldFile, tally: Tally) -> None:
    for table in sorted(file.tables):
        if table in READ or table.startswith(SHADOWS):
            continue
        rows = _rows(file, table)
        if rows or table in LEFT:
            tally.leave(table, rows, LEFT.get(table, "not a table of the old bot that is known"))


def _rows(file: OldFile, table: str) -> int:
    """Count the rows of a table; of a virtual one those that stand for them, as its module may be missing."""
    if not file.tables[table]:
        return file.count(table)
    return max(file.count(table + ending) for ending in STAND_FOR_ROWS)
