"""What becomes of a memory item: stored, corrected, superseded, archived, moved, forgotten (DESIGN 6).

    active <-> archived          and from everywhere to forgotten, which nothing leaves
    active  -> superseded

Each write names the scope the item must be in and the version its author saw, in the UPDATE itself. Text is masked
(`redaction`) and tokenised on the way in; the index follows by triggers. A scope's writes wait for one another.

    ItemError
        ForgottenError   somebody had this forgotten: the proposal is to be dropped
        MissingError     no such item in that scope, or not in a state from which this leads on
        StaleError       it was changed since it was looked at
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from channels_app.addresses import AddressError, ChatAddress
from channels_app.clock import is_postgresql
from channels_app.messages import storable
from memory_app import embedding
from memory_app.index import ITEMS, drop_traces, scope_word
from memory_app.models import (
    DreamUndo,
    ItemStatus,
    MemoryCandidate,
    MemoryEmbedding,
    MemoryItem,
    MemoryTurn,
    RecallReceipt,
)
from memory_app.redaction import redact, redact_json
from memory_app.scopes import CHAT_SCOPE, Scope, ScopeError
from memory_app.tokens import index_text
from sessions_app.models import Session

LONGEST: Final = 4_000  # characters of an item: it is to be recalled whole, among others
LONGEST_TITLE: Final = 300
MOST_EVIDENCE: Final = 20  # entries an item keeps, the newest

_BLANKS = re.compile(r"\s+")
# A blank beside a CJK character is a matter of taste.
_CJK = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]"
_LOOSE_BLANK = re.compile(rf"(?<={_CJK}) | (?={_CJK})")
_CLOSING = " .。!！"


class ItemError(ValueError):
    """The item cannot be written as asked; the message says why."""


class ForgottenError(ItemError):
    """Somebody had this forgotten: it is not learnt again by itself."""


class MissingError(ItemError):
    """The scope holds no such item, or it is not in a state from which this leads on."""


class StaleError(ItemError):
    """The item was changed since its version was read."""


class Outcome(StrEnum):
    ADDED = "added"
    SEEN = "seen"  # the scope holds it already
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """What is to be remembered. A turn that proves it stands in `evidence` as {"turn": pk}, or is `source_turn`.

    `asked_again`: a person asks for it himself, whatever was forgotten before.
    """

    kind: str
    content: str
    title: str = ""
    source: str = ""
    source_session: Session | None = None
    source_turn: MemoryTurn | None = None
    evidence: Sequence[dict[str, Any]] = ()
    confidence: float = 1.0
    importance: float = 0.5
    sensitivity: str = ""
    held: bool = False
    asked_again: bool = False

    @property
    def turns(self) -> set[int]:
        """Return the turns that prove it."""
        own = {self.source_turn.pk} if self.source_turn else set()
        return own | _turns_of(self.evidence)


@dataclass(frozen=True, slots=True)
class Stored:
    """`masked` names the kinds of secrets that were taken out, for the person to be told."""

    item: MemoryItem
    outcome: Outcome
    masked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Text:
    """The columns that say what an item is about, as they may be stored."""

    title: str
    content: str
    masked: tuple[str, ...]

    @classmethod
    def of(cls, *, title: str, content: str) -> "_Text":
        if not content.strip():
            raise ItemError("an item without content cannot be remembered: say what is to be kept")
        if len(content) > LONGEST:
            raise ItemError(
                f"{len(content)} characters are too long for one memory: at most {LONGEST}, so tell it in parts"
            )
        safe_title, safe = redact(storable(title)), redact(storable(content))
        masked = dict.fromkeys(safe_title.kinds + safe.kinds)
        return cls(safe_title.text[:LONGEST_TITLE], safe.text, tuple(masked))

    @property
    def columns(self) -> dict[str, str]:
        return {
            "title": self.title,
            "content": self.content,
            "search_tokens": index_text(f"{self.title}\n{self.content}"),
            "content_hash": self.hash,
        }

    @property
    def hash(self) -> str:
        return content_hash(self.content)


def content_hash(text: str) -> str:
    """Return what two texts share that say the same in the same words, whatever their case, width, blanks and full stop."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _LOOSE_BLANK.sub("", _BLANKS.sub(" ", folded)).strip(_CLOSING)
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


def store(new: NewItem, *, scope: Scope) -> Stored:
    """Remember something in a scope.

    What the scope holds already, in the same words, gains the new evidence. Raises ForgottenError or ItemError.
    """
    text = _Text.of(title=new.title, content=new.content)
    with _writing(scope):
        return _store(new, text, scope)


def supersede(item_id: int, new: NewItem, *, scope: Scope, version: int) -> Stored:
    """Put a new item in the place of an active one, which stays as history and is linked to it."""
    text = _Text.of(title=new.title, content=new.content)
    with _writing(scope):
        stored = _store(new, text, scope)
        if stored.item.pk == item_id:
            return stored  # it says the same
        link = {"status": ItemStatus.SUPERSEDED, "superseded_by": stored.item}
        _change(item_id, scope=scope, version=version, of=(ItemStatus.ACTIVE,), to=link)
        return stored


def edit(
    item_id: int, *, scope: Scope, version: int, content: str, title: str, importance: float
) -> Stored:
    """Correct what an item says. Its vectors go: they were of the old words."""
    text = _Text.of(title=title, content=content)
    with _writing(scope):
        item = _change(
            item_id,
            scope=scope,
            version=version,
            of=(ItemStatus.ACTIVE, ItemStatus.ARCHIVED),
            to={**text.columns, "importance": importance},
        )
        MemoryEmbedding.objects.filter(item=item).delete()
        embedding.wake()
        return Stored(item, Outcome.CHANGED, text.masked)


def archive(item_id: int, *, scope: Scope, version: int) -> MemoryItem:
    with _writing(scope):
        archived = {"status": ItemStatus.ARCHIVED}
        return _change(item_id, scope=scope, version=version, of=(ItemStatus.ACTIVE,), to=archived)


def restore(item_id: int, *, scope: Scope, version: int) -> MemoryItem:
    """Make an archived or superseded item active again. A forgotten one has nothing left to restore."""
    with _writing(scope):
        stored = (ItemStatus.ARCHIVED, ItemStatus.SUPERSEDED)
        active = {"status": ItemStatus.ACTIVE, "superseded_by": None}
        item = _change(item_id, scope=scope, version=version, of=stored, to=active)
        embedding.wake()
        return item


def release(item_id: int, *, scope: Scope, version: int) -> MemoryItem:
    """Let a held item be recalled where it is."""
    with _writing(scope):
        item = _change(item_id, scope=scope, version=version, of=_KEPT, to={"held": False})
        embedding.wake()
        return item


def release_all(*, scope: Scope, kind: str) -> int:
    """Let every held item of a kind be recalled; return how many."""
    with _writing(scope):
        held = MemoryItem.objects.in_scope(scope).filter(held=True, kind=kind)
        changed = held.update(held=False, version=F("version") + 1, updated_at=timezone.now())
        embedding.wake()
        return changed


def move(item_id: int, *, scope: Scope, to: Scope, version: int) -> MemoryItem:
    """Give an item to another scope, where it is found from now on and no longer in its own. A held one is released.

    Its vectors stay right. Receipts of the old scope's answers stay too: `recall.receipts_of` shows them no more.
    """
    if to == scope:
        raise ItemError(f"the item is in {scope} already")
    with _writing(scope, to):
        place = {"scope_type": to.scope_type, "scope_id": to.scope_id, "held": False}
        item = _change(item_id, scope=scope, version=version, of=_KEPT, to=place)
        embedding.wake()
        return item


def forget(item_id: int, *, scope: Scope) -> MemoryItem:
    """Blank an item for good, whatever its version: words, index entry, vectors, receipts, proposals, undo.

    What stays is that there was one: scope, content hash and source turn, so that it is not learnt again.
    """
    with _writing(scope):
        item = _kept(scope).filter(pk=item_id).select_for_update().first()
        if item is None:
            raise MissingError(f"there is no item {item_id} in {scope}")
        _blank(item)
        drop_traces(ITEMS)
        return item


def forget_all(*, scope: Scope) -> int:
    """Forget every item of one scope; return how many."""
    with _writing(scope):
        items = list(_kept(scope).order_by("pk").select_for_update())
        for item in items:
            _blank(item)
        drop_traces(ITEMS)
        return len(items)


def find(item_id: int, *, scopes: Iterable[Scope]) -> MemoryItem | None:
    """Return an item that is named by its number, if one of `scopes` holds it and it is not forgotten."""
    for scope in scopes:
        if item := _kept(scope).filter(pk=item_id).first():
            return item
    return None


def rewrite_words() -> int:
    """Write what is derived from the text of an item anew, in every scope; return how many items changed.

    For after a change of the tokenizer, and for items that came from elsewhere.
    """
    changed = 0
    for item in MemoryItem.objects.filter(status__in=_KEPT).order_by("pk").iterator(chunk_size=500):
        words = {
            "search_tokens": index_text(f"{item.title}\n{item.content}"),
            "content_hash": content_hash(item.content),
        }
        if any(getattr(item, column) != value for column, value in words.items()):
            same = MemoryItem.objects.filter(pk=item.pk, version=item.version)
            changed += same.update(**words)
    return changed


_KEPT: Final = (ItemStatus.ACTIVE, ItemStatus.ARCHIVED, ItemStatus.SUPERSEDED)


@contextmanager
def _writing(*scopes: Scope) -> Iterator[None]:
    """Open a transaction that waits for whoever writes to the same scopes: two must not store one thing twice."""
    with transaction.atomic():
        if is_postgresql():  # SQLite's one write lock is taken at BEGIN
            with connection.cursor() as cursor:
                for word in sorted(
                    scope_word(scope.scope_type, scope.scope_id) for scope in scopes
                ):
                    cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [word])
        yield


def _kept(scope: Scope) -> QuerySet[MemoryItem]:
    return MemoryItem.objects.in_scope(scope).filter(status__in=_KEPT)


def _store(new: NewItem, text: _Text, scope: Scope) -> Stored:
    _refuse_unknown(scope)
    if not new.asked_again:
        _refuse_forgotten(new, text, scope)
    # A held twin is not recalled, so it is no answer to somebody who wants this remembered.
    twin = MemoryItem.objects.in_scope(scope).recallable().filter(content_hash=text.hash).first()
    if twin is not None:
        return Stored(_seen_again(twin, new), Outcome.SEEN, text.masked)
    return Stored(_insert(new, text, scope), Outcome.ADDED, text.masked)


def _refuse_unknown(scope: Scope) -> None:
    """New memory is written to chats that a key can name; what an old database holds may say otherwise."""
    if scope.scope_type != CHAT_SCOPE:
        return
    try:
        address = ChatAddress.parse(scope.scope_id)
    except AddressError as error:
        raise ScopeError(f"{scope.scope_id!r} is no chat: {error}") from error
    if not address.typed or address.chat_key != scope.scope_id:
        raise ScopeError(f"{scope.scope_id!r} is no chat key: write channel, type and id")


def _refuse_forgotten(new: NewItem, text: _Text, scope: Scope) -> None:
    gone = MemoryItem.objects.forgotten()
    here = gone.filter(content_hash=text.hash).filter(_said_in(new, scope))
    if here.exists():
        raise ForgottenError("somebody had exactly this forgotten: it is not learnt again")
    proof = new.turns
    if proof and proof <= _forgotten_turns(proof, gone.filter(_said_in(new, scope))):
        raise ForgottenError("the only turns that prove this are of something forgotten")


def _said_in(new: NewItem, scope: Scope) -> Q:
    """Select the target scope, and the chat that it was said in: what it had forgotten must not come back as shared."""
    condition = Q(scope_type=scope.scope_type, scope_id=scope.scope_id)
    if new.source_session is not None and new.source_session.chat is not None:
        chat_key = new.source_session.chat.chat_key
        condition |= Q(scope_type=CHAT_SCOPE, scope_id=chat_key)
    return condition


def _forgotten_turns(proof: set[int], near: QuerySet[MemoryItem]) -> set[int]:
    anywhere = MemoryItem.objects.forgotten().filter(source_turn__in=proof)
    turns = {pk for pk in anywhere.values_list("source_turn", flat=True) if pk is not None}
    for evidence in near.values_list("evidence", flat=True):
        turns |= _turns_of(evidence)
    return turns


def _turns_of(evidence: Iterable[Any]) -> set[int]:
    return {
        entry["turn"]
        for entry in evidence
        if isinstance(entry, dict) and isinstance(entry.get("turn"), int)
    }


def _insert(new: NewItem, text: _Text, scope: Scope) -> MemoryItem:
    item = MemoryItem.objects.create(
        scope_type=scope.scope_type,
        scope_id=scope.scope_id,
        kind=new.kind,
        **text.columns,
        held=new.held,
        confidence=new.confidence,
        importance=new.importance,
        sensitivity=new.sensitivity,
        source=new.source,
        evidence=redact_json(list(new.evidence))[-MOST_EVIDENCE:],
        source_session=new.source_session,
        source_turn=new.source_turn,
    )
    embedding.wake()
    return item


def _seen_again(twin: MemoryItem, new: NewItem) -> MemoryItem:
    own = [{"turn": new.source_turn.pk}] if new.source_turn else []
    more = [
        entry for entry in (*redact_json(list(new.evidence)), *own) if entry not in twin.evidence
    ]
    twin.evidence = [*twin.evidence, *more][-MOST_EVIDENCE:]
    twin.confidence = max(twin.confidence, new.confidence)
    twin.version += 1
    twin.updated_at = timezone.now()
    twin.save(update_fields=["evidence", "confidence", "version", "updated_at"])
    return twin


def _change(
    item_id: int, *, scope: Scope, version: int, of: Sequence[ItemStatus], to: dict[str, Any]
) -> MemoryItem:
    there = MemoryItem.objects.in_scope(scope).filter(pk=item_id, status__in=of)
    changed = there.filter(version=version).update(
        **to, version=F("version") + 1, updated_at=timezone.now()
    )
    if changed:
        return MemoryItem.objects.get(pk=item_id)
    if there.exists():
        raise StaleError(f"item {item_id} was changed meanwhile: look at it again")
    raise MissingError(f"there is no {' or '.join(of)} item {item_id} in {scope}")


def _blank(item: MemoryItem) -> None:
    MemoryEmbedding.objects.filter(item=item).delete()
    RecallReceipt.objects.filter(item=item).delete()
    DreamUndo.objects.filter(item=item).delete()
    own_hash = item.content_hash or content_hash(item.content)
    _blank_proposals(item, own_hash)
    MemoryItem.objects.filter(pk=item.pk).update(
        title="",
        content="",
        search_tokens="",
        status=ItemStatus.FORGOTTEN,
        held=False,
        sensitivity="",
        evidence=[{"turn": turn} for turn in sorted(_turns_of(item.evidence))],
        content_hash=own_hash,
        # What an old database said of it, but for the name it had there.
        imported=item.imported and {"item_id": item.imported.get("item_id")},
        version=F("version") + 1,
        updated_at=timezone.now(),
    )
    item.refresh_from_db()


def _blank_proposals(item: MemoryItem, own_hash: str) -> None:
    here = Q(scope_type=item.scope_type, scope_id=item.scope_id)
    same = Q(content_hash=own_hash) | Q(content=item.content)
    candidates = MemoryCandidate.objects.filter(Q(item=item) | (here & same))
    candidates.filter(imported__isnull=False).update(imported={})
    candidates.update(title="", content="", evidence=[], content_hash=own_hash)
