from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from nahida.gateway import keys
from nahida.gateway.models import ApiKey


class NewKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    scopes = forms.MultipleChoiceField(
        choices=[(scope, f"{scope}: {what}") for scope, what in keys.SCOPES.items()],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Give no more than the script needs.",
    )

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        if data.get("chats") and not data.get("limited"):
            self.add_error("limited", "Chats are listed, so tick this, or the key reaches all.")
        expires_at = data.get("expires_at")
        if expires_at and expires_at <= timezone.now():
            self.add_error("expires_at", "That is over already: choose a time to come.")
        return data


@admin.register(ApiKey)
class ApiKeyAdmin(ModelAdmin):
    list_display = ("name", "prefix", "shown_scopes", "status", "expires_at", "last_used_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("name", "=prefix")
    ordering = ("-pk",)
    show_full_result_count = False
    autocomplete_fields = ("chats",)
    actions = ("revoke",)
    readonly_on_change = ("prefix", "scopes", "revoked_at", "last_used_at", "created_at")

    def get_form(self, request: HttpRequest, obj: ApiKey | None = None, **kwargs: Any) -> Any:
        if obj is None:
            kwargs["form"] = NewKeyForm
        return super().get_form(request, obj, **kwargs)

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> list[str]:
        choices = ["name", "scopes", "limited", "chats", "expires_at"]
        return choices if obj is None else [*choices, "prefix", "revoked_at", "last_used_at"]

    def get_readonly_fields(
        self, request: HttpRequest, obj: ApiKey | None = None
    ) -> tuple[str, ...]:
        return () if obj is None else self.readonly_on_change

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """A key is revoked, so that what it did can still be told."""
        return False

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            obj.save(update_fields=[name for name in form.changed_data if name != "chats"])
            return
        made, text = keys.create(
            obj.name,
            scopes=form.cleaned_data["scopes"],
            chats=form.cleaned_data["chats"] if obj.limited else None,
            expires_at=obj.expires_at,
        )
        obj.__dict__.update(made.__dict__)
        request.new_key = text  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the key here and nowhere else: a message would be kept in a cookie."""
        page = {
            **self.admin_site.each_context(request),
            "title": "A new API key",
            "key": obj,
            "text": request.new_key,  # type: ignore[attr-defined]
            "opts": self.opts,
        }
        response = TemplateResponse(request, "gateway/new_key.html", page)
        response["Cache-Control"] = "no-store"
        return response

    @display(description="scopes")
    def shown_scopes(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)

    @display(
        description="status",
        label={"in force": "success", "expired": "warning", "revoked": "danger"},
    )
    def status(self, key: ApiKey) -> str:
        if key.revoked_at:
            return "revoked"
        is_over = key.expires_at is not None and key.expires_at <= timezone.now()
        return "expired" if is_over else "in force"

    @admin.action(description="Revoke", permissions=["change"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApiKey]) -> None:
        for key in chosen:
            keys.revoke(key)
        self.message_user(request, f"{len(chosen)} keys revoked.", messages.SUCCESS)
