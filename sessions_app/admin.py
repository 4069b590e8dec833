from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from unfold.admin import ModelAdmin
from unfold.decorators import action, display
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from channels_app.admin import ReadOnlyAdmin
from sessions_app.access import PairingError, decide, let_in
from sessions_app.models import Access, AnswerPolicy, Chat, ChatAlias, Session
from sessions_app.reach import open_again


class PairingForm(BaseDialogForm):
    code = forms.CharField(
        label="Pairing code",
        max_length=16,
        widget=UnfoldAdminTextInputWidget(attrs={"autofocus": True}),
    )


class ChatForm(forms.ModelForm):  # type: ignore[type-arg]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "model" in self.fields:
            names = [(name, name) for name in settings.NAHIDA.models]
            self.fields["model"] = forms.ChoiceField(
                choices=[("", "the site's model"), *names],
                required=False,
                widget=UnfoldAdminSelectWidget,
                label="Model",
            )

    def clean_time_zone(self) -> str:
        name = str(self.cleaned_data["time_zone"])
        try:
            return name and ZoneInfo(name).key
        except (KeyError, OSError, ValueError) as error:
            raise forms.ValidationError(
                f'"{name}" is no time zone: write one such as Asia/Shanghai'
            ) from error


@admin.register(Chat)
class ChatAdmin(ModelAdmin):
    form = ChatForm
    list_display = (
        "head",
        "shown_access",
        "first_line",
        "shown_policy",
        "owner",
        "unreachable_reason",
        "created_at",
    )
    list_filter = (
        "access",
        "channel",
        "target_type",
        "is_owner",
        ("unreachable_since", admin.EmptyFieldListFilter),
        ("muted_until", admin.EmptyFieldListFilter),
        "answer_policy",
    )
    search_fields = ("chat_key", "title", "=pairing_code")
    ordering = ("-pk",)
    list_per_page = 50
    show_full_result_count = False
    actions = ("approve", "block", "mark_owner", "unmark_owner", "write_again")
    actions_list = ("enter_code",)
    fieldsets = (
        (None, {"fields": ("chat_key", "title", "access", "answer_policy", "is_owner")}),
        ("Settings of this chat", {"fields": ("model", "time_zone")}),
        (
            "What is known",
            {
                "fields": (
                    "first_line",
                    "pairing_code",
                    "refused_count",
                    "unreachable_since",
                    "muted_until",
                    "unreachable_reason",
                    "parent",
                    "merged_into",
                    "created_at",
                    "imported_at",
                )
            },
        ),
    )
    readonly_fields = (
        "chat_key",
        "first_line",
        "pairing_code",
        "refused_count",
        "unreachable_since",
        "muted_until",
        "unreachable_reason",
        "parent",
        "merged_into",
        "created_at",
        "imported_at",
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """A chat is made by what is said in it."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Chat | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Chat | None = None) -> bool:
        is_merged = obj is not None and obj.merged_into_id is not None
        return not is_merged and super().has_change_permission(request, obj)

    @display(description="chat", ordering="chat_key", header=True)
    def head(self, chat: Chat) -> Sequence[str]:
        return chat.title or chat.target_id, chat.chat_key

    @display(
        description="access",
        ordering="access",
        label={Access.PENDING: "warning", Access.ALLOWED: "success", Access.BLOCKED: "danger"},
    )
    def shown_access(self, chat: Chat) -> tuple[str, str]:
        return chat.access, chat.get_access_display()

    @display(description="answers", ordering="answer_policy")
    def shown_policy(self, chat: Chat) -> str:
        return AnswerPolicy(chat.answer_policy).value.replace("_", " ")

    @display(description="owner's", ordering="is_owner", label={"yes": "info"})
    def owner(self, chat: Chat) -> str | None:
        return "yes" if chat.is_owner else None

    @admin.action(description="Let in", permissions=["change"])
    def approve(self, request: HttpRequest, chats: QuerySet[Chat]) -> None:
        count = decide(chats, Access.ALLOWED)
        self.message_user(request, f"{count} chats let in.", messages.SUCCESS)

    @admin.action(description="Block", permissions=["change"])
    def block(self, request: HttpRequest, chats: QuerySet[Chat]) -> None:
        count = decide(chats, Access.BLOCKED)
        self.message_user(request, f"{count} chats blocked.", messages.SUCCESS)

    @admin.action(description="Mark as the owner's", permissions=["change"])
    def mark_owner(self, request: HttpRequest, chats: QuerySet[Chat]) -> None:
        count = chats.filter(merged_into=None).update(is_owner=True)
        self.message_user(request, f"{count} chats may now reach other chats.", messages.WARNING)

    @admin.action(description="Mark as not the owner's", permissions=["change"])
    def unmark_owner(self, request: HttpRequest, chats: QuerySet[Chat]) -> None:
        count = chats.update(is_owner=False)
        self.message_user(request, f"{count} chats may no longer reach others.", messages.SUCCESS)

    @admin.action(description="Write to it again", permissions=["change"])
    def write_again(self, request: HttpRequest, chats: QuerySet[Chat]) -> None:
        """Forget that a chat cannot be written to: the next message finds out."""
        for chat in chats:
            open_again(chat)
        self.message_user(request, f"{len(chats)} chats are written to again.", messages.SUCCESS)

    @action(
        description="Enter a pairing code",
        url_path="pair",
        icon="key",
        permissions=["change"],
        dialog={
            "title": "Let a chat in",
            "description": "Type the code that the chat was told.",
            "form_class": PairingForm,
            "form_submit_text": "Let in",
        },
    )
    def enter_code(self, request: HttpRequest, form: PairingForm) -> HttpResponse:
        target = reverse("admin:sessions_app_chat_changelist")
        try:
            chat = let_in(form.cleaned_data["code"])
        except PairingError as error:
            self.message_user(request, f"{error}.", messages.ERROR)
        else:
            self.message_user(request, f"{chat} is let in.", messages.SUCCESS)
            target = reverse("admin:sessions_app_chat_change", args=[chat.pk])
        return HttpResponse(headers={"HX-Redirect": target})

    def save_model(self, request: HttpRequest, obj: Chat, form: Any, change: bool) -> None:
        if "access" in form.changed_data and obj.access != Access.PENDING:
            obj.pairing_code = ""
        obj.save(update_fields=[*form.changed_data, "pairing_code"])


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    list_display = ("head", "chat", "last_active_at", "legacy_untyped")
    list_filter = ("legacy_untyped", "chat__channel")
    list_select_related = ("chat",)
    search_fields = ("key", "title")
    ordering = ("-last_active_at", "-pk")

    @display(description="session", ordering="key", header=True)
    def head(self, session: Session) -> Sequence[str]:
        return session.title or "—", session.key


@admin.register(ChatAlias)
class ChatAliasAdmin(ReadOnlyAdmin):
    list_display = ("address", "chat", "reason", "created_at")
    list_select_related = ("chat",)
    search_fields = ("address", "chat__chat_key")
