"""What a line that begins with a slash does (DESIGN 5, R9). Commands act on their own chat only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from memory_app.models import MemoryTurn
from memory_app.scopes import readable
from memory_app.turns import move_later, stop_messages
from nahida.agent import model
from nahida.agent.policy import NEEDED, RefusedError, Rights, require
from sessions_app.models import Chat, Lane, Session
from sessions_app.routing import start_session

LISTED_SESSIONS = 20


@dataclass(frozen=True, slots=True)
class Command:
    """`name` is a key of `COMMANDS`."""

    name: str
    argument: str

    @property
    def is_immediate(self) -> bool:
        return COMMANDS[self.name].is_immediate


@dataclass(frozen=True, slots=True)
class _Entry:
    """`act` gets the argument, the locked lane and the command's own turn, and returns what is answered."""

    help: str
    is_immediate: bool
    act: Callable[[str, Lane, MemoryTurn], str]


def parse(text: str) -> Command | None:
    """Return the command a line is, None for any other text, a path such as /etc/hosts included."""
    if not text.startswith("/"):
        return None
    word, _, argument = text.partition(" ")
    first, _, below = word.partition("\n")
    name = ALIASES.get(first.lower(), first.lower())
    return Command(name, f"{below} {argument}".strip()) if name in COMMANDS else None


def run(command: Command, *, lane: Lane, turn: MemoryTurn) -> str:
    """Do what a command says, inside the transaction that holds its lane."""
    try:
        require(command.name, Rights.parse(turn.rights))
    except RefusedError as error:
        return str(error)
    return COMMANDS[command.name].act(command.argument, lane, turn)


def _help(argument: str, lane: Lane, turn: MemoryTurn) -> str:
    rights = Rights.parse(turn.rights)
    lines = [f"{name}  {entry.help}" for name, entry in COMMANDS.items() if rights >= NEEDED[name]]
    return "\n".join(lines)


def _whoami(argument: str, lane: Lane, turn: MemoryTurn) -> str:
    return "\n".join(
        (
            f"account: {turn.sender or 'not told by this channel'}",
            f"name: {turn.sender_name or 'not told by this channel'}",
            f"rights here: {turn.rights}",
            f"chat: {lane.address}",
        )
    )


def _status(argument: str, lane: Lane, turn: MemoryTurn) -> str:
    session = lane.active_session
    key = session.session_key
    waiting = MemoryTurn.objects.unfinished().filter(lane=lane).count()
    return "\n".join(
        (
            f"chat: {lane.address}",
            f"session: {session.key} ({key.kind})",
            f"model: {lane.chat.model or model.model_names()[0]}",
            f"memory read: {', '.join(str(scope) for scope in readable(key))}",
            f"lines in this session: {session.turns.count()}",
            f"waiting: {waiting}",
        )
    )


def _sessions(argument: str, lane: Lane, turn: MemoryTurn) -> str:
    here = [
        session
        for session in lane.chat.sessions.order_by("-last_active_at", "-pk")
        if session.session_key.address == lane.address
    ]
    lines = [_session_line(session, lane) for session in here[:LISTED_SESSIONS]]
    if len(here) > LISTED_SESSIONS:
        lines.append(f"… and {len(here) - LISTED_SESSIONS} older")
    return "\n".join(lines)


def _session_line(session: Session, lane: Lane) -> str:
    mark = "*" if session.pk == lane.active_session_id else "-"
    title = f" {session.title}" if session.title else ""
    return f"{mark} {session.key}{title} ({session.last_active_at:%Y-%m-%d %H:%M} UTC)"


def _stop(argument: str, lane: Lane, turn: MemoryTurn) -> str:
    had_work = MemoryTurn.objects.unfinished().filter(lane=lane).exists()
    stop_messages(lane, turn)
    return "Stopped." if had_work else "There was nothing to stop."


def _new(argument: str, lane: Lane, turn: MemoryTurn) -> str:
    session = start_session(lane)
    if argument:
        Session.objects.filter(pk=session.pk).update(title=argument[:300])
    move_later(lane, after=turn, to=session)
    return "A new conversation begins. What I remember of this chat stays; /sessions lists the old ones."


def _reset(argument: str, lane: Lane, turn: MemoryTurn) -> str:
    Session.objects.filter(pk=turn.session_id).update(history_from=turn.pk)
    return "I no longer look at what was said before. Nothing was deleted."


def _model(argument: str, lane: Lane, turn: MemoryTurn) -> str:
    names = model.model_names()
    if not argument:
        return f"model: {lane.chat.model or model.model_names()[0]}\navailable: {', '.join(names)}"
    if argument not in names:
        return f'There is no model "{argument}". Available: {", ".join(names)}'
    Chat.objects.filter(pk=lane.chat_id).update(model=argument)
    return f"This chat now uses {argument}."


COMMANDS: Mapping[str, _Entry] = {
    "/help": _Entry("shows this list", True, _help),
    "/new": _Entry("begins a new conversation; a title may follow", False, _new),
    "/reset": _Entry("forgets the course of this conversation, deletes nothing", False, _reset),
    "/sessions": _Entry("lists the conversations of this chat", True, _sessions),
    "/stop": _Entry("stops the answer that is being written", True, _stop),
    "/status": _Entry("shows where we are and what I read", True, _status),
    "/whoami": _Entry("shows how I see you", True, _whoami),
    "/model": _Entry("shows or changes the model of this chat", False, _model),
}
HELP: Mapping[str, str] = {name.removeprefix("/"): entry.help for name, entry in COMMANDS.items()}
ALIASES: Mapping[str, str] = {"/start": "/help"}
