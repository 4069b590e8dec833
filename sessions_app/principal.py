"""On whose behalf a query is made."""

from dataclasses import dataclass

from django.db.models import Q


@dataclass(frozen=True, slots=True)
class Principal:
    """What a caller may do, and in which chats; `chat_ids` None means every chat."""

    permissions: frozenset[str]
    chat_ids: frozenset[int] | None

    def may(self, permission: str) -> bool:
        return permission in self.permissions

    def reaches(self, chat_id: int | None) -> bool:
        return self.chat_ids is None or chat_id in self.chat_ids

    def limit(self, column: str) -> Q:
        """Return the condition that keeps only rows whose `column` is a chat of the caller's."""
        return Q() if self.chat_ids is None else Q(**{f"{column}__in": self.chat_ids})
