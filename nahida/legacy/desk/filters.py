"""How the list of records is narrowed."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from nahida.legacy.records import GONE
from sessions_app.models import Chat, MigrationLog, Session

OPEN = "open"


class _ColumnFilter(admin.SimpleListFilter):
    """Offers the values that a column has."""

    column: str

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        found = MigrationLog.objects.order_by(self.column).values_list(self.column, flat=True)
        return [(value or OPEN, value or OPEN) for value in found.distinct() if value != GONE]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[MigrationLog]
    ) -> QuerySet[MigrationLog]:
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(**{self.column: "" if value == OPEN else value})


class ConfidenceFilter(_ColumnFilter):
    title = "confidence"
    parameter_name = column = "confidence"


class ResultFilter(_ColumnFilter):
    title = "outcome"
    parameter_name = column = "result"


class ChannelFilter(admin.SimpleListFilter):
    title = "channel"
    parameter_name = "channel"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        chats = Chat.objects.exclude(imported_at=None).order_by("channel")
        return [(name, name) for name in chats.values_list("channel", flat=True).distinct()]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[MigrationLog]
    ) -> QuerySet[MigrationLog]:
        if self.value() is None:
            return queryset
        sessions = Session.objects.filter(chat__channel=self.value())
        return queryset.filter(subject_pk__in=sessions.values("pk"))
