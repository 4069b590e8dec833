"""Memory that hung on an old session, and which of it goes to the chat of that session."""

from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from memory_app.models import MemoryItem
from memory_app.scopes import CHAT_SCOPE, GLOBAL_SCOPE
from nahida.legacy.facts import base_of, parsed
from nahida.legacy.gather import KIND
from sessions_app import rekey
from sessions_app.ledger import Ledger
from sessions_app.models import Chat, MigrationLog

OF_ALL = Q(scope_type=CHAT_SCOPE)


def follow_memory(record: MigrationLog, chat: Chat, ledger: Ledger) -> int:
    """Give the items and candidates of a session to its chat; return how many items it had.

    What the scope of a whole old chat holds may come from any chat of that number: it moves only if there is no other.
    """
    items = MemoryItem.objects.filter(scope_id=record.old_key).exclude(scope_type=GLOBAL_SCOPE)
    number = items.count()
    is_shared = bool(number) and _is_shared(record, chat, items)
    which = ~OF_ALL if is_shared else Q()
    rekey.follow_session(record.old_key, chat, which=which, ledger=ledger)
    return number


def _is_shared(record: MigrationLog, chat: Chat, items: QuerySet[MemoryItem]) -> bool:
    if not items.filter(OF_ALL).exists():
        return False
    key = parsed(record.old_key)
    base = base_of(record.old_key, key) if key else record.old_key
    beginning = MigrationLog.objects.filter(kind=KIND).annotate(
        beginning=Left("old_key", len(base))
    )
    family = (
        other
        for other in beginning.filter(beginning=base).exclude(pk=record.pk)
        if (its := parsed(other.old_key)) and key and its.address == key.address
    )
    return any(part["chat_address"] != chat.chat_key for one in family for part in one.evidence)
