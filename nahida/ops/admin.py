from django.contrib import admin
from django.utils import timezone
from unfold.decorators import display

from channels_app.admin import ReadOnlyAdmin
from nahida.ops.models import Heartbeat, Operation


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    list_display = ("name", "age", "at")
    ordering = ("name",)

    @display(description="last heard of")
    def age(self, beat: Heartbeat) -> str:
        return f"{(timezone.now() - beat.at).total_seconds():.0f} s ago"


@admin.register(Operation)
class OperationAdmin(ReadOnlyAdmin):
    list_display = ("kind", "state", "done", "total", "created_by", "created_at", "finished_at")
    list_filter = ("state", "kind")
    exclude = ("token",)
