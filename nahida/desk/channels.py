"""The channels as the owner sees them: who each one is, how it fares, and a test message through it."""

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from unfold.decorators import action, display
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from channels_app import outbox
from channels_app.addresses import AddressError, ChatAddress
from channels_app.admin import ReadOnlyAdmin
from channels_app.models import ChannelState, Delivery
from nahida import queue
from sessions_app import lanes

# Facts of a channel that have places of their own on the page.
SHOWN_APART = ("name", "mode", "hints", "pending", "last_error", "last_error_at")
NOT_CONFIGURED = "not configured any more"


class TestMessageForm(BaseDialogForm):
    target = forms.CharField(
        max_length=1000,
        help_text="the address of a chat, such as telegram:private:12345",
        widget=UnfoldAdminTextInputWidget(attrs={"autofocus": True}),
    )
    text = forms.CharField(
        max_length=4000,
        initial="A test message. Whoever reads this: the channel works.",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
    )

    def clean_target(self) -> ChatAddress:
        try:
            address = ChatAddress.target(self.cleaned_data["target"].strip())
        except AddressError as error:
            raise forms.ValidationError(str(error)) from error
        if address.channel not in settings.CHANNELS:
            known = ", ".join(sorted(settings.CHANNELS)) or "none"
            raise forms.ValidationError(
                f'no channel "{address.channel}" is configured (configured: {known})'
            )
        return address


@admin.register(ChannelState)
class ChannelStateAdmin(ReadOnlyAdmin):
    list_display = (
        "channel",
        "name",
        "mode",
        "shown_status",
        "last_event_at",
        "pending",
        "last_error",
    )
    ordering = ("channel",)
    fields = (
        "channel",
        "kind",
        "name",
        "mode",
        "status",
        "error",
        "hints",
        "last_event_at",
        "pending",
        "last_error",
        "lease_until",
        "facts",
    )
    actions_list = ("send_test",)

    def has_send_permission(self, request: HttpRequest, object_id: object = None) -> bool:
        return request.user.has_perm("channels_app.add_delivery")

    @display(description="kind")
    def kind(self, state: ChannelState) -> str:
        config = settings.CHANNELS.get(state.channel)
        return config.kind if config else NOT_CONFIGURED

    @display(description="who it is")
    def name(self, state: ChannelState) -> str:
        return str(state.detail.get("name", ""))

    @display(description="mode")
    def mode(self, state: ChannelState) -> str:
        return str(state.detail.get("mode", ""))

    @display(description="status", label={"ok": "success", "bad": "danger", "none": "info"})
    def shown_status(self, state: ChannelState) -> tuple[str, str]:
        if state.channel not in settings.CHANNELS:
            return "none", NOT_CONFIGURED
        return "bad" if state.error else "ok" if state.status else "none", state.status or "unknown"

    @display(description="events that wait there")
    def pending(self, state: ChannelState) -> str:
        return str(state.detail.get("pending", ""))

    @display(description="last error")
    def last_error(self, state: ChannelState) -> str:
        error, at = state.detail.get("last_error", ""), state.detail.get("last_error_at", "")
        return f"{error} ({at[:16].replace('T', ' ')} UTC)" if error else ""

    @display(description="to know")
    def hints(self, state: ChannelState) -> str:
        return "\n".join(state.detail.get("hints", ()))

    @display(description="what else it says of itself")
    def facts(self, state: ChannelState) -> str:
        others = sorted(name for name in state.detail if name not in SHOWN_APART)
        return "\n".join(f"{name.replace('_', ' ')}: {state.detail[name]}" for name in others)

    @action(
        description="Send a test message",
        url_path="test-message",
        icon="send",
        permissions=["send"],
        dialog={
            "title": "Send a test message",
            "description": "It goes out like any answer, and shows among the deliveries what became of it.",
            "form_class": TestMessageForm,
            "form_submit_text": "Send",
        },
    )
    def send_test(self, request: HttpRequest, form: TestMessageForm) -> HttpResponse:
        delivery = _post(form.cleaned_data["target"], form.cleaned_data["text"])
        if delivery is None:
            self.message_user(request, "The text shows nothing: nothing is sent.", messages.ERROR)
            return HttpResponse(headers={"HX-Refresh": "true"})
        self.message_user(request, "Queued: this page says what became of it.", messages.SUCCESS)
        page = reverse("admin:channels_app_delivery_change", args=[delivery.pk])
        return HttpResponse(headers={"HX-Redirect": page})


def _post(address: ChatAddress, text: str) -> Delivery | None:
    with transaction.atomic():
        lane = lanes.lock(address)
        delivery = outbox.post(lane.address, text)
        if delivery is not None:
            queue.wake_on_commit(queue.DELIVER, delivery.pk)
    return delivery
