"""What an earlier attempt at moving keys had done already. It is honoured, not done again."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from nahida.legacy.importing.ledger import Ledger, Sessions
from nahida.legacy.importing.reader import OldFile, instant
from nahida.legacy.importing.tally import Tally
from nahida.legacy.models import Source
from sessions_app.models import Approval, MigrationLog

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


def import_key_log(file: OldFile, source: Source, here: Sessions, tally: Tally) -> None:
    count = tally.of("key log")
    known = Ledger(source, "key_log")
    columns = ("id", "old_session_id", "new_session_id", "status", "reason", "created_at")
    for row in file.rows("session_key_migration_log", columns):
        count.read += 1
        old_id, status = str(row["id"]), str(row["status"] or "")
        if old_id in known:
            count.there += 1
            continue
        key = str(row["old_session_id"] or "")
        with transaction.atomic():
            record = _record(
                # A log of moved job histories speaks of something else than the session itself.
                kind="session_keys" if status in RECOMMENDED else "imported_log",
                old_key=key,
                new_key=str(row["new_session_id"] or ""),
                subject=here.get(row["new_session_id"] or key) or here.get(key),
                recommendation=RECOMMENDED.get(status, ""),
                result=status,
                reason=str(row["reason"] or ""),
                at=row["created_at"],
            )
            known.note([(old_id, record.pk)])
        count.imported += 1


def import_scope_log(file: OldFile, source: Source, items: Ledger, tally: Tally) -> None:
    count = tally.of("scope log")
    known = Ledger(source, "scope_log")
    columns = ("item_id", "new_scope_type", "new_scope_id", "reason", "applied_at")
    for row in file.rows("memory_scope_migration_log", columns):
        count.read += 1
        old_id = str(row["item_id"] or "")
        if old_id in known:
            count.there += 1
            continue
        with transaction.atomic():
            record = _record(
                kind="memory_scopes",
                old_key=old_id,
                new_key=str(row["new_scope_id"] or ""),
                subject=items.get(old_id),
                recommendation="migrate",
                result="migrated",
                reason=str(row["reason"] or ""),
                at=row["applied_at"],
            )
            known.note([(old_id, record.pk)])
        count.imported += 1


def _record(
    *,
    kind: str,
    old_key: str,
    new_key: str,
    subject: int | None,
    recommendation: str,
    result: str,
    reason: str,
    at: Any,
) -> MigrationLog:
    when = instant(at) or timezone.now()
    is_rejected = result == "rejected"
    return MigrationLog.objects.create(
        kind=kind,
        old_key=old_key[:1000],
        new_key=new_key[:1000],
        subject_pk=subject,
        recommendation=recommendation,
        approval=Approval.REJECTED if is_rejected else Approval.APPROVED,
        result=result[:32] or "unknown",
        reason=reason,
        history=[{"what": result, "who": WHO, "at": when.isoformat()}],
        created_at=when,
        finished_at=when,
    )
