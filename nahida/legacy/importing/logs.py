"""What an earlier attempt at moving keys had done already. It is honoured, not done again."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from nahida.legacy.importing.ledger import Ledger, batched
from nahida.legacy.importing.reader import OldFile, Row, instant, text
from nahida.legacy.importing.tally import Tally
from nahida.legacy.models import Source
from sessions_app.models import Approval, MigrationLog

KEY_LOG = "session_key_migration_log"
KEY_COLUMNS = ("id", "old_session_id", "new_session_id", "status", "reason", "created_at")
SCOPE_LOG = "memory_scope_migration_log"
SCOPE_COLUMNS = ("item_id", "new_scope_type", "new_scope_id", "reason", "applied_at")
LONGEST_KEY = 1_000  # characters
BATCH = 500  # rows a transaction

# What the old log says, and the recommendation it came from.
RECOMMENDED: Mapping[str, str] = {
    "renamed": "rename",
    "merged": "rename",
    "split": "split",
    "kept_legacy": "keep_legacy",
    "cron_disabled": "disable_cron",
    "rejected": "manual_review",
}
WHO = "the old bot's own migration"


def import_key_log(file: OldFile, source: Source, here: Ledger, tally: Tally) -> None:
    count = tally.of("key log")
    known = Ledger(source, "key_log")
    rows = known.missing(file.rows(KEY_LOG, KEY_COLUMNS), id_in="id", count=count)
    for batch in batched(rows, BATCH):
        with transaction.atomic():
            known.note([(old_id, _of_key(row, here).pk) for old_id, row in batch])
        count.imported += len(batch)


def _of_key(row: Row, here: Ledger) -> MigrationLog:
    status, key = text(row["status"]), row["old_session_id"]
    return _record(
        # A log of moved job histories speaks of something else than the session itself.
        kind="session_keys" if status in RECOMMENDED else "imported_log",
        old_key=key,
        new_key=row["new_session_id"],
        subject=here.get(row["new_session_id"] or key) or here.get(key),
        recommendation=RECOMMENDED.get(status, ""),
        result=status,
        reason=row["reason"],
        at=row["created_at"],
    )


def import_scope_log(file: OldFile, source: Source, items: Ledger, tally: Tally) -> None:
    count = tally.of("scope log")
    known = Ledger(source, "scope_log")
    rows = known.missing(file.rows(SCOPE_LOG, SCOPE_COLUMNS), id_in="item_id", count=count)
    for batch in batched(rows, BATCH):
        with transaction.atomic():
            known.note([(old_id, _of_scope(row, items).pk) for old_id, row in batch])
        count.imported += len(batch)


def _of_scope(row: Row, items: Ledger) -> MigrationLog:
    return _record(
        kind="memory_scopes",
        old_key=row["item_id"],
        new_key=row["new_scope_id"],
        subject=items.get(row["item_id"]),
        recommendation="migrate",
        result="migrated",
        reason=row["reason"],
        at=row["applied_at"],
    )


def _record(
    *,
    kind: str,
    old_key: Any,
    new_key: Any,
    subject: int | None,
    recommendation: str,
    result: str,
    reason: Any,
    at: Any,
) -> MigrationLog:
    when = instant(at) or timezone.now()
    is_rejected = result == "rejected"
    return MigrationLog.objects.create(
        kind=kind,
        old_key=text(old_key, LONGEST_KEY),
        new_key=text(new_key, LONGEST_KEY),
        subject_pk=subject,
        recommendation=recommendation,
        approval=Approval.REJECTED if is_rejected else Approval.APPROVED,
        result=result[:32] or "unknown",
        reason=text(reason),
        history=[{"what": result, "who": WHO, "at": when.isoformat()}],
        created_at=when,
        finished_at=when,
    )
