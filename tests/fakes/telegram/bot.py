"""A bot as the server knows it: its chats, its updates that wait, its files, and every call it made."""

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.telegram.answers import HUNG_UP, Answer, ApiError
from tests.fakes.telegram.bodies import Params, Upload
from tests.fakes.telegram.chats import Chat, Update, User, user
from tests.fakes.telegram.faults import PATIENCE_S, Fault, Faults, Hold

# What a bot gets only if it asks for it by name.
ON_REQUEST = frozenset({"chat_member", "message_reaction", "message_reaction_count"})


@dataclass(slots=True)
class Call:
    """One call as it came, and once it is answered the HTTP status of its answer; 0: the connection was closed."""

    method: str
    params: Params
    uploads: dict[str, Upload] = field(default_factory=dict)
    status: int | None = None


@dataclass(frozen=True, slots=True)
class File:
    """A file on the server. `size`, where given, is what it is said to have."""

    id: str
    path: str
    content: bytes
    size: int | None = None

    def wire(self) -> dict[str, Any]:
        """What a message says of it."""
        size = len(self.content) if self.size is None else self.size
        return {"file_id": self.id, "file_unique_id": f"u-{self.id}", "file_size": size}


@dataclass(slots=True)
class Webhook:
    """Where updates are delivered, and how the last failed delivery ended."""

    url: str
    secret: str = ""
    max_connections: int = 40
    last_error: str = ""
    last_error_at: int = 0


class Bot:
    """`changed` guards everything here and is told of every change."""

    def __init__(self, token: str, username: str, **me: Any) -> None:
        self.token = token
        self.id = int(token.partition(":")[0])
        self.user: User = user(self.id, "Nahida", username=username) | {"is_bot": True}
        self.me = {"can_join_groups": True, "can_read_all_group_messages": True} | {
            "supports_inline_queries": False,
            **me,
        }
        self.changed = threading.Condition()
        self.calls: list[Call] = []
        self.updates: list[Update] = []  # not yet confirmed, oldest first
        self.allowed: frozenset[str] | None = None  # None: all but those on request
        self.webhook: Webhook | None = None
        self.chats: dict[int, Chat] = {}
        self.files: dict[str, File] = {}
        self.commands: dict[str, list[dict[str, str]]] = {}  # by scope and language
        self.queries: dict[str, Params | None] = {}  # pressed buttons, and how they were answered
        self.faults = Faults()
        self.polls = 0  # how many getUpdates came; the latest is the one that may wait
        self.waiting = 0  # how many of them wait now
        self.is_down = False
        self._update_ids = itertools.count(700_100_001)
        self._numbers = itertools.count(440_000_000_000_000_001)

    def now(self) -> int:
        return int(time.time())

    def next_number(self) -> int:
        return next(self._numbers)

    # Chats.

    def private(self, who: User) -> Chat:
        """A chat with somebody who has started the bot."""
        wire: dict[str, Any] = {"id": who["id"], "type": "private"}
        names = {name: who[name] for name in ("first_name", "username") if name in who}
        return self._chat(wire | names, who)

    def group(self, id_: int, *, title: str = "Group", owner: User | None = None) -> Chat:
        return self._chat({"id": id_, "type": "group", "title": title}, owner or BOSS)

    def supergroup(
        self, id_: int, *, title: str = "Supergroup", owner: User | None = None, **fields: Any
    ) -> Chat:
        """A supergroup; `is_forum=True` gives it topics."""
        wire = {"id": id_, "type": "supergroup", "title": title, **fields}
        return self._chat(wire, owner or BOSS)

    def channel(self, id_: int, *, title: str = "Channel", owner: User | None = None) -> Chat:
        return self._chat({"id": id_, "type": "channel", "title": title}, owner or BOSS)

    # Updates and files.

    def push(self, kind: str, content: dict[str, Any]) -> Update:
        """Make an update. It waits for the bot only if the bot wants its kind."""
        with self.changed:
            update = {"update_id": next(self._update_ids), kind: dict(content)}
            if self._wants(kind):
                self.updates.append(update)
                self.changed.notify_all()
            return update

    def add_file(self, content: bytes, *, path: str = "", size: int | None = None) -> File:
        """Put a file on the server. `path` is made up where none is given."""
        number = len(self.files) + 1
        file = File(f"file-{number}", path or f"documents/file_{number}.bin", content, size)
        self.files[file.id] = file
        return file

    def add_photo(self, content: bytes) -> list[dict[str, Any]]:
        """Put a photo on the server and return its sizes as a message has them, largest last."""
        small = self.add_file(content[:10], path=f"photos/file_{len(self.files) + 1}.jpg")
        large = self.add_file(content, path=f"photos/file_{len(self.files) + 1}.jpg")
        return [
            small.wire() | {"width": 90, "height": 67},
            large.wire() | {"width": 1280, "height": 960},
        ]

    # What a test asks for and looks at.

    def calls_of(self, method: str) -> list[Params]:
        """The parameters of every call of a method so far, as they came."""
        with self.changed:
            return [call.params for call in self.calls if call.method == method]

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait for something to become true here, and fail if it does not."""
        with self.changed:
            assert self.changed.wait_for(holds, PATIENCE_S), "it did not come about"

    def fail(
        self,
        method: str,
        error: ApiError | Answer,
        *,
        times: int = 1,
        chat_id: int | None = None,
        after: bool = False,
    ) -> None:
        """Answer the next calls of a method so. `after`: only once they had their effect."""
        answer = error.answer() if isinstance(error, ApiError) else error
        self.faults.plan(Fault(method, times, chat_id, after, answer))

    def hang_up(self, method: str, *, times: int = 1, after: bool = False) -> None:
        """Close the connection of the next calls without an answer. `after`: they had their effect."""
        self.faults.plan(Fault(method, times, after=after, answer=HUNG_UP))

    def hold(self, method: str, *, after: bool = False, chat_id: int | None = None) -> Hold:
        """Let the next call of a method wait. `after`: it has had its effect and waits for its answer."""
        hold = Hold()
        self.faults.plan(Fault(method, chat_id=chat_id, after=after, hold=hold))
        return hold

    # For the server.

    def go_down(self) -> None:
        """End every call that waits."""
        self.faults.release_all()
        with self.changed:
            self.is_down = True
            self.changed.notify_all()

    def _wants(self, kind: str) -> bool:
        return kind not in ON_REQUEST if self.allowed is None else kind in self.allowed

    def _chat(self, wire: dict[str, Any], owner: User) -> Chat:
        with self.changed:
            chat = self.chats[wire["id"]] = Chat(self, wire, owner)
            return chat


BOSS = user(5550003, "Boss")
