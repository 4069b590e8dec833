"""Writes databases of the old bot, in any version of its schema. Facts: legacy/LEGACY_DB.md, 2 and 3; the words are ours."""

import json
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

START = datetime(2026, 5, 1, 8, 0, tzinfo=UTC)
NEWEST = 17

_TABLES: tuple[tuple[int, str], ...] = (
    (1, "CREATE TABLE sessions (session_id TEXT PRIMARY KEY, workspace_id TEXT, created_at TEXT NOT NULL, last_active_at TEXT NOT NULL)"),
    (1, "CREATE TABLE memory_turns (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions (session_id), role TEXT NOT NULL, content TEXT NOT NULL, source TEXT NOT NULL DEFAULT '', metadata_json TEXT, created_at TEXT NOT NULL)"),
    (1, "CREATE TABLE memory_keywords (turn_id INTEGER NOT NULL REFERENCES memory_turns (id), keyword TEXT NOT NULL)"),
    (2, "ALTER TABLE sessions ADD COLUMN metadata_json TEXT"),
    (3, "CREATE TABLE cron_jobs (job_id TEXT PRIMARY KEY, platform TEXT NOT NULL, chat_id TEXT NOT NULL, session_key TEXT NOT NULL, prompt TEXT NOT NULL, mode TEXT NOT NULL, fire_at TEXT, interval_seconds INTEGER, max_runs INTEGER, run_count INTEGER NOT NULL DEFAULT 0, is_active INTEGER NOT NULL DEFAULT 1, created_at TEXT NOT NULL, next_fire_at TEXT NOT NULL, last_fired_at TEXT, workspace_id TEXT)"),
    (4, "ALTER TABLE cron_jobs ADD COLUMN claimed_at TEXT"),
    (4, "ALTER TABLE cron_jobs ADD COLUMN failure_count INTEGER NOT NULL DEFAULT 0"),
    (4, "ALTER TABLE cron_jobs ADD COLUMN last_error TEXT"),
    (5, "CREATE TABLE active_sessions (chat_key TEXT PRIMARY KEY, session_id TEXT NOT NULL, updated_at TEXT NOT NULL)"),
    (6, "CREATE TABLE background_tasks (task_id TEXT PRIMARY KEY, runtime TEXT NOT NULL, status TEXT NOT NULL, requester_session_id TEXT NOT NULL, child_session_id TEXT, parent_task_id TEXT, title TEXT NOT NULL, summary TEXT NOT NULL DEFAULT '', delivery_target_json TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, ended_at TEXT, error TEXT NOT NULL DEFAULT '')"),
    (7, "ALTER TABLE cron_jobs ADD COLUMN cron_expression TEXT"),
    (8, "CREATE TABLE memory_items (item_id TEXT PRIMARY KEY, scope_type TEXT NOT NULL, scope_id TEXT NOT NULL, kind TEXT NOT NULL, title TEXT NOT NULL DEFAULT '', content TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'active', confidence REAL NOT NULL DEFAULT 1.0, importance REAL NOT NULL DEFAULT 0.5, sensitivity TEXT NOT NULL DEFAULT 'private', source TEXT NOT NULL DEFAULT 'plugin', evidence_json TEXT, metadata_json TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL)"),
    (8, "CREATE VIRTUAL TABLE memory_item_fts USING fts5(item_id UNINDEXED, scope_type UNINDEXED, scope_id UNINDEXED, title_index, content_index)"),
    (8, "CREATE TABLE memory_candidates (candidate_id TEXT PRIMARY KEY, scope_type TEXT NOT NULL, scope_id TEXT NOT NULL, kind TEXT NOT NULL, title TEXT NOT NULL DEFAULT '', content TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'pending', confidence REAL NOT NULL DEFAULT 0.5, evidence_json TEXT, metadata_json TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL)"),
    (9, "CREATE TABLE memory_embeddings (embedding_id TEXT PRIMARY KEY, item_id TEXT NOT NULL REFERENCES memory_items (item_id), provider_id TEXT NOT NULL, model TEXT NOT NULL, dimensions INTEGER NOT NULL, content_hash TEXT NOT NULL, embedding_json TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE (item_id, provider_id, model, content_hash))"),
    (10, "ALTER TABLE cron_jobs ADD COLUMN session_mode TEXT NOT NULL DEFAULT 'main'"),
    (11, "ALTER TABLE cron_jobs ADD COLUMN chat_type TEXT NOT NULL DEFAULT ''"),
    (11, "CREATE TABLE session_key_migration_log (id INTEGER PRIMARY KEY, old_session_id TEXT NOT NULL, new_session_id TEXT, status TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', created_at TEXT NOT NULL)"),
    (12, "ALTER TABLE cron_jobs ADD COLUMN session_name TEXT"),
    (13, "CREATE TABLE message_deliveries (id INTEGER PRIMARY KEY, target TEXT)"),
    (13, "ALTER TABLE cron_jobs ADD COLUMN created_by_user_id TEXT NOT NULL DEFAULT ''"),
    (13, "ALTER TABLE cron_jobs ADD COLUMN created_from_session_id TEXT NOT NULL DEFAULT ''"),
    (13, "ALTER TABLE cron_jobs ADD COLUMN created_from_chat_address TEXT NOT NULL DEFAULT ''"),
    (14, "CREATE TABLE usage_events (id INTEGER PRIMARY KEY, tokens INTEGER)"),
    (15, "CREATE TABLE plugin_data (plugin TEXT, name TEXT, value TEXT)"),
    (16, "CREATE TABLE persons (person_id TEXT PRIMARY KEY, name TEXT)"),
    (17, "ALTER TABLE memory_items ADD COLUMN parent_id TEXT"),
    (17, "ALTER TABLE memory_items ADD COLUMN path TEXT"),
)  # fmt: skip


def wrap(value: Any) -> str | None:
    """Return an object as JSON; a text is written as it is, however malformed."""
    return (
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )


def envelope(chat: str, **fields: Any) -> dict[str, Any]:
    """Return what the old bot wrote beside a message from `<channel>:<type>:<id>`."""
    channel, chat_type, chat_id = chat.split(":", 2)
    return {
        "timestamp": START.timestamp(),
        "channel": channel,
        "chat_type": chat_type,
        "chat_id": chat_id,
        "chat_display_name": "a chat",
        "sender_id": chat_id if chat_type == "private" else "20002",
        "sender_display_name": "Ali",
        "sender_role_tags": [],
        "extra_tags": [],
    } | fields


BOT = envelope("bot:assistant:-", chat_id="", sender_id="", sender_display_name="")


class OldDatabase:
    """An old database that is being written. Time passes by a second a row."""

    def __init__(self, path: Path, *, version: int = 9, wal: bool = False) -> None:
        self.path = path
        self.version = version
        self.now = START
        self.connection = sqlite3.connect(path, isolation_level=None)
        if wal:
            self.connection.execute("PRAGMA journal_mode=WAL")
        for since, statement in _TABLES:
            if since <= version:
                self.connection.execute(statement)
        self.connection.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
        self.insert("schema_version", version=version)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def insert(self, table: str, **columns: Any) -> int:
        names = ", ".join(columns)
        marks = ", ".join("?" * len(columns))
        cursor = self.connection.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})", list(columns.values())
        )
        return cursor.lastrowid or 0

    def at(self) -> str:
        self.now += timedelta(seconds=1)
        return self.now.isoformat()

    def session(self, key: str, *, metadata: Any = None, **columns: Any) -> str:
        extra = {"metadata_json": wrap(metadata)} if self.version >= 2 else {}
        at = self.at()
        row = {"session_id": key, "workspace_id": "default", "created_at": at, "last_active_at": at}
        self.insert("sessions", **(row | extra | columns))
        return key

    def turn(
        self,
        key: str,
        text: str = "hello",
        *,
        chat: str = "",
        role: str = "user",
        source: str = "user_input",
        metadata: Any = None,
        **columns: Any,
    ) -> int:
        """Write a turn; `chat` is the typed address its envelope names."""
        if chat:
            metadata = {**(metadata or {}), "message_context": envelope(chat)}
        row = {
            "session_id": key,
            "role": role,
            "content": text,
            "source": source,
            "metadata_json": wrap(metadata),
            "created_at": self.at(),
        }
        return self.insert("memory_turns", **(row | columns))

    def answer(self, key: str, text: str = "an answer", **columns: Any) -> int:
        metadata = {"message_context": BOT} if self.version > 6 else None
        return self.turn(
            key, text, role="assistant", source="agent_response", metadata=metadata, **columns
        )

    def talk(self, key: str, chat: str, *, times: int = 1) -> list[int]:
        """Write questions with their answers, all from one chat; return the ids of both."""
        return [
            turn for _ in range(times) for turn in (self.turn(key, chat=chat), self.answer(key))
        ]

    def override(self, chat_key: str, key: str) -> None:
        self.insert("active_sessions", chat_key=chat_key, session_id=key, updated_at=self.at())

    def job(self, key: str, *, job_id: str = "j1", **columns: Any) -> str:
        platform, _, chat_id = key.partition(":")
        row = {
            "job_id": job_id,
            "platform": platform,
            "chat_id": chat_id,
            "session_key": key,
            "prompt": "say good morning",
            "mode": "interval",
            "interval_seconds": 3600,
            "created_at": self.at(),
            "next_fire_at": self.at(),
        }
        self.insert("cron_jobs", **(row | columns))
        return job_id

    def task(self, requester: str, child: str | None, *, task_id: str, **columns: Any) -> str:
        row = {
            "task_id": task_id,
            "runtime": "subagent",
            "status": "succeeded",
            "requester_session_id": requester,
            "child_session_id": child,
            "title": "look it up",
            "created_at": self.at(),
            "updated_at": self.at(),
        }
        self.insert("background_tasks", **(row | columns))
        return task_id

    def item(
        self,
        item_id: str,
        *,
        kind: str = "fact",
        content: str = "likes tea",
        evidence: Any = None,
        metadata: Any = None,
        **columns: Any,
    ) -> str:
        row = {
            "item_id": item_id,
            "scope_type": "global",
            "scope_id": "__global__",
            "kind": kind,
            "content": content,
            "evidence_json": wrap(evidence),
            "metadata_json": wrap(metadata),
            "created_at": self.at(),
            "updated_at": self.at(),
        }
        self.insert("memory_items", **(row | columns))
        return item_id

    def candidate(self, candidate_id: str, *, kind: str = "fact", **columns: Any) -> str:
        row = {
            "candidate_id": candidate_id,
            "scope_type": "global",
            "scope_id": "__global__",
            "kind": kind,
            "content": "likes tea",
            "status": "auto_applied",
            "created_at": self.at(),
            "updated_at": self.at(),
        }
        self.insert("memory_candidates", **(row | columns))
        return candidate_id

    def embedding(self, item_id: str, vector: Any, *, embedding_id: str, **columns: Any) -> str:
        row = {
            "embedding_id": embedding_id,
            "item_id": item_id,
            "provider_id": "local",
            "model": "hash",
            "dimensions": len(vector) if isinstance(vector, list) else 0,
            "content_hash": embedding_id,
            "embedding_json": wrap(vector),
            "created_at": self.at(),
        }
        self.insert("memory_embeddings", **(row | columns))
        return embedding_id

    def log(self, old: str, new: str | None, status: str = "renamed") -> None:
        self.insert(
            "session_key_migration_log",
            old_session_id=old,
            new_session_id=new,
            status=status,
            created_at=self.at(),
        )

    def many_turns(self, rows: Iterable[tuple[str, str, str, str | None]]) -> None:
        """Write (session, role, text, metadata JSON) rows at once, for databases of a real size."""
        at = self.at()
        self.connection.execute("BEGIN")
        self.connection.executemany(
            "INSERT INTO memory_turns (session_id, role, content, metadata_json, source, created_at)"
            " VALUES (?1, ?2, ?3, ?4, CASE ?2 WHEN 'user' THEN 'user_input' ELSE 'agent_response' END, ?5)",
            ((*row, at) for row in rows),
        )
        self.connection.execute("COMMIT")
