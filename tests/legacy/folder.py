"""A folder with old databases, and what an import of them leaves."""

import hashlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import transaction
from django.test import TestCase

from channels_app.addresses import ChatAddress
from memory_app.models import Role, TurnKind
from memory_app.turns import NewTurn, append_turn
from tests.base import ALICE
from tests.legacy.builder import OldDatabase
from tests.sessions_app.moving import rows


def bring(path: Path, *options: str) -> dict[str, Any]:
    """Import a database and return the closing table."""
    out = io.StringIO()
    call_command("import_legacy", str(path), "--json", *options, stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def digests(folder: Path) -> dict[str, str]:
    """Return every file of a folder with its checksum."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def stored() -> dict[str, list[dict[str, Any]]]:
    """Return every row of ours, but not when the last import ended."""
    found = rows()
    found.pop("legacy.Source")
    return found


class Folder:
    """What a test of old databases needs, whatever kind of transaction it runs in."""

    def setUp(self) -> None:
        super().setUp()  # type: ignore[misc]
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))  # type: ignore[attr-defined]

    def path(self, name: str) -> Path:
        return self.folder / name

    def old(self, name: str = "old.db", **options: Any) -> OldDatabase:
        """Begin an old database; the next `bring` reads it."""
        self.newest = self.path(name)
        return OldDatabase(self.newest, **options)

    def bring(self, *options: str, name: str = "nahida") -> dict[str, Any]:
        """Import the newest database and return the closing table."""
        return bring(self.newest, "--name", name, *options)

    def furnish(self, old: OldDatabase) -> None:
        """Write something of every kind."""
        key = old.session("milky:10001")
        old.talk(key, "milky:group:10001")
        old.turn(key, "hello again")
        old.override(key, old.session(f"{key}:9c5e96eb"))
        old.job(key)
        old.task(key, old.session(f"{key}:subagent:task_1"), task_id="task_1")
        old.item("mem_1", evidence={"session_id": key})
        old.candidate("cand_1")
        old.embedding("mem_1", [1.0, 0.0], embedding_id="emb_1")

    def digests(self) -> dict[str, str]:
        return digests(self.folder)

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        return stored()

    def new_turn(self, *, at: str = str(ALICE)) -> int:
        """Let somebody write here, as it happens while an old database comes in."""
        new = NewTurn(kind=TurnKind.NOTICE, role=Role.ASSISTANT, content="said here")
        with transaction.atomic():
            return append_turn(ChatAddress.parse(at), new).pk


class FolderCase(Folder, TestCase):
    """A test inside one transaction."""
