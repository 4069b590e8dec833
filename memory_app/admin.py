from collections.abc import Sequence

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import TabularInline
from unfold.decorators import display

from channels_app.admin import ReadOnlyAdmin
from memory_app.models import Attachment, MemoryTurn, ModelCall, TurnState
from sessions_app.models import Session

MOST_SESSIONS = 200  # that one search looks into
LINE = 120  # characters


class AttachmentInline(TabularInline):
    """The files of a turn; what the platform calls them and where they lie is nobody's business."""

    model = Attachment
    fields = ("kind", "name", "mime", "size", "text", "error")
    readonly_fields = fields
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: MemoryTurn | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: MemoryTurn | None = None) -> bool:
        return request.user.has_perm("memory_app.view_memoryturn")


@admin.register(MemoryTurn)
class MemoryTurnAdmin(ReadOnlyAdmin):
    list_display = ("line", "session", "kind", "shown_state", "created_at")
    list_filter = ("state", "kind", "role", "source")
    list_select_related = ("session",)
    search_fields = ("session__key",)
    search_help_text = "part of a session's key"
    raw_id_fields = ("session", "lane", "answered_by", "delivery")
    exclude = ("search_tokens",)
    inlines = (AttachmentInline,)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[MemoryTurn], search_term: str
    ) -> tuple[QuerySet[MemoryTurn], bool]:
        """Look the sessions up first: a join would read every turn to find a key that is not there."""
        if not (term := search_term.strip()):
            return queryset, False
        sessions = Session.objects.filter(key__icontains=term).order_by("-last_active_at", "-pk")
        found = list(sessions.values_list("pk", flat=True)[:MOST_SESSIONS])
        return queryset.filter(session__in=found), False

    @display(description="turn", header=True)
    def line(self, turn: MemoryTurn) -> Sequence[str]:
        text = turn.content if len(turn.content) <= LINE else f"{turn.content[:LINE]}…"
        return text or "—", f"{turn.role} {turn.sender_name or turn.sender}".strip()

    @display(
        description="state",
        ordering="state",
        label={
            TurnState.PENDING: "warning",
            TurnState.RUNNING: "info",
            TurnState.DONE: "success",
            TurnState.FAILED: "danger",
        },
    )
    def shown_state(self, turn: MemoryTurn) -> tuple[str, str]:
        return turn.state, turn.get_state_display()


@admin.register(ModelCall)
class ModelCallAdmin(ReadOnlyAdmin):
    list_display = (
        "created_at",
        "model",
        "outcome",
        "tokens_in",
        "tokens_out",
        "cost",
        "ms",
        "turn",
    )
    list_filter = ("outcome", "model", "created_at")
    list_select_related = ("turn",)
    raw_id_fields = ("turn",)
