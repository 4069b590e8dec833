"""Admin pages whose actions need the agent or the queue, and those of other people's apps in our dress."""

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from django_q import admin as queue_admin
from django_q.models import Failure, OrmQ, Schedule, Success
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from channels_app.admin import ReadOnlyAdmin
from channels_app.models import Delivery, DeliveryState
from nahida.agent.delivery import send_rest
from nahida.desk.channels import ChannelStateAdmin

__all__ = ["ChannelStateAdmin"]  # Django looks for admin pages in this module

LINE = 100  # characters


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = ("address", "shown_state", "line", "progress", "attempts", "error", "created_at")
    list_filter = ("state", "created_at")
    search_fields = ("address",)
    actions = ("send_the_rest",)
    exclude = ("token",)

    def has_send_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("channels_app.change_delivery")

    @display(
        description="state",
        ordering="state",
        label={
            DeliveryState.PENDING: "info",
            DeliveryState.SENDING: "info",
            DeliveryState.SENT: "success",
            DeliveryState.FAILED: "danger",
            DeliveryState.UNKNOWN: "warning",
        },
    )
    def shown_state(self, delivery: Delivery) -> tuple[str, str]:
        return delivery.state, delivery.get_state_display()

    @display(description="text")
    def line(self, delivery: Delivery) -> str:
        text = " ".join(part["text"] or part.get("file_name", "") for part in delivery.parts)
        return text if len(text) <= LINE else f"{text[:LINE]}…"

    @display(description="parts sent")
    def progress(self, delivery: Delivery) -> str:
        return f"{delivery.next_part} of {len(delivery.parts)}"

    @admin.action(description="Send the rest", permissions=["send"])
    def send_the_rest(self, request: HttpRequest, deliveries: QuerySet[Delivery]) -> None:
        """Queue again what is not known to have arrived; what may still go out by itself is left alone."""
        queued = 0
        for delivery in deliveries.order_by("pk"):
            try:
                send_rest(delivery)
            except ValueError as error:
                self.message_user(request, str(error), messages.WARNING)
            else:
                queued += 1
        if queued:
            self.message_user(request, f"{queued} deliveries queued anew.", messages.SUCCESS)


admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class DeskUserAdmin(UserAdmin, ModelAdmin):  # type: ignore[type-arg]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    show_full_result_count = False


@admin.register(Group)
class DeskGroupAdmin(GroupAdmin, ModelAdmin):
    show_full_result_count = False


for model in (Success, Failure, Schedule, OrmQ):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


@admin.register(Success)
class SuccessAdmin(queue_admin.TaskAdmin, ModelAdmin):
    show_full_result_count = False


@admin.register(Failure)
class FailureAdmin(queue_admin.FailAdmin, ModelAdmin):
    show_full_result_count = False


@admin.register(OrmQ)
class WaitingAdmin(queue_admin.QueueAdmin, ModelAdmin):
    show_full_result_count = False


@admin.register(Schedule)
class ScheduleAdmin(queue_admin.ScheduleAdmin, ModelAdmin):
    """A schedule runs any function of any module, so only a superuser may see or write one."""

    show_full_result_count = False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def has_view_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        return request.user.is_superuser

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        return request.user.is_superuser

    def has_delete_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        return request.user.is_superuser
