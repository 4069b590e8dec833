"""The approval desk: what is proposed for each old session, why, and a person's decision. It acts through the same functions as the commands."""

from collections.abc import Callable, Iterator
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from unfold.decorators import action, display

from channels_app.admin import ReadOnlyAdmin
from nahida.legacy import telling
from nahida.legacy.apply import to_apply
from nahida.legacy.decide import DecisionError, decide
from nahida.legacy.desk.filters import ChannelFilter, ConfidenceFilter, ResultFilter
from nahida.legacy.desk.forms import ApplyForm, RenameForm
from nahida.legacy.desk.pages import (
    at_stake,
    evidence_of,
    facts_of,
    history_of,
    jobs_of,
    outcome_of,
    sample_of,
    undoing_of,
)
from nahida.legacy.desk.splitting import SplitView
from nahida.legacy.gather import KIND
from nahida.legacy.long_work import start_apply, start_revert
from nahida.legacy.records import GONE, status
from nahida.ops.models import Operation
from sessions_app.models import Approval, MigrationLog

DECIDE = "sessions_app.decide_migration"
APPLY = "sessions_app.apply_migration"
BREAK = mark_safe("<br>")
LABELS = {"high": "success", "medium": "info", "low": "warning", "conflict": "danger"}


@admin.register(MigrationLog)
class MigrationDesk(ReadOnlyAdmin):
    list_display = (
        "shown_old_key",
        "shown_new_key",
        "proposal",
        "shown_confidence",
        "shown_evidence",
        "stake",
        "shown_approval",
        "shown_result",
    )
    list_filter = (
        "recommendation",
        ConfidenceFilter,
        "approval",
        ResultFilter,
        ChannelFilter,
        "kind",
    )
    search_fields = ("old_key", "new_key")
    ordering = ("pk",)
    actions = ("approve", "reject", "keep_legacy", "apply", "revert")
    actions_detail = ("rename", "split")
    change_form_template = "legacy/record.html"
    change_list_template = "legacy/records.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[MigrationLog]:
        found: QuerySet[MigrationLog] = super().get_queryset(request)
        return found.exclude(result=GONE)

    def has_decide_permission(self, request: HttpRequest, object_id: object = None) -> bool:
        return request.user.has_perm(DECIDE)

    def has_apply_permission(self, request: HttpRequest, object_id: object = None) -> bool:
        return request.user.has_perm(APPLY)

    @display(description="old key", ordering="old_key")
    def shown_old_key(self, record: MigrationLog) -> str:
        return telling.shown(record.old_key)

    @display(description="proposed key")
    def shown_new_key(self, record: MigrationLog) -> str:
        if record.targets:
            return ", ".join(telling.shown(target["new_session_id"]) for target in record.targets)
        return telling.shown(record.new_key)

    @display(description="proposal", ordering="recommendation")
    def proposal(self, record: MigrationLog) -> str:
        return record.recommendation.replace("_", " ")

    @display(description="confidence", ordering="confidence", label=LABELS)
    def shown_confidence(self, record: MigrationLog) -> tuple[str, str]:
        return record.confidence, record.confidence

    @display(description="evidence")
    def shown_evidence(self, record: MigrationLog) -> SafeString:
        return format_html_join(BREAK, "{}", ((line,) for line in evidence_of(record)))

    @display(description="rows")
    def stake(self, record: MigrationLog) -> str:
        return ", ".join(at_stake(record))

    @display(description="decision", ordering="approval")
    def shown_approval(self, record: MigrationLog) -> str:
        return record.get_approval_display()

    @display(
        description="outcome",
        label={"failed": "danger", "stale": "warning", "busy": "warning", "open": "info"},
    )
    def shown_result(self, record: MigrationLog) -> tuple[str, str]:
        return status(record), status(record)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        works = Operation.objects.filter(kind__endswith="_records").order_by("-pk")[:3]
        extra = {"summary": list(telling.counts()), "works": works}
        return super().changelist_view(request, {**(extra_context or {}), **extra})  # type: ignore[no-any-return]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        record = get_object_or_404(MigrationLog, pk=object_id)
        extra = {
            "record": record,
            "facts": list(facts_of(record)),
            "evidence": record.evidence,
            "stake": list(at_stake(record)),
            "jobs": list(jobs_of(record)),
            "samples": list(sample_of(record)),
            "history": list(history_of(record)),
            "decidable": not record.result and self.has_decide_permission(request),
        }
        return super().changeform_view(
            request, object_id, form_url, {**(extra_context or {}), **extra}
        )

    def get_urls(self) -> list[URLPattern]:
        own = [
            path(
                "<int:pk>/divide/",
                self.admin_site.admin_view(SplitView.as_view(desk=self)),
                name="legacy_divide",
            ),
            path(
                "work/<int:pk>/",
                self.admin_site.admin_view(self.work_view),
                name="legacy_work",
            ),
        ]
        return [*own, *super().get_urls()]

    @admin.action(description="Approve what is proposed", permissions=["decide"])
    def approve(self, request: HttpRequest, records: QuerySet[MigrationLog]) -> None:
        self._decide(request, records, Approval.APPROVED)

    @admin.action(description="Reject: change nothing", permissions=["decide"])
    def reject(self, request: HttpRequest, records: QuerySet[MigrationLog]) -> None:
        self._decide(request, records, Approval.REJECTED)

    @admin.action(description="Keep as an old session", permissions=["decide"])
    def keep_legacy(self, request: HttpRequest, records: QuerySet[MigrationLog]) -> None:
        self._decide(request, records, Approval.KEEP_LEGACY)

    def _decide(
        self, request: HttpRequest, records: QuerySet[MigrationLog], approval: Approval
    ) -> None:
        decided = 0
        for record in records.filter(kind=KIND).order_by("pk"):
            try:
                decide(record, approval, who=request.user.get_username())
            except DecisionError as error:
                self.message_user(request, str(error), messages.WARNING)
            else:
                decided += 1
        if decided:
            self.message_user(
                request, f"{telling.several(decided, 'records')} decided.", messages.SUCCESS
            )

    @admin.action(description="Apply what is decided …", permissions=["apply"])
    def apply(self, request: HttpRequest, records: QuerySet[MigrationLog]) -> HttpResponse | None:
        chosen = to_apply(records.values_list("pk", flat=True))
        return self._confirmed(
            request,
            chosen,
            nothing="Nothing here is decided and still open: approve something first.",
            title="Apply these decisions?",
            form=ApplyForm,
            tells=outcome_of,
            start=lambda form: start_apply(
                chosen,
                by=request.user.get_username(),
                allows=form.cleaned_data["allows"],
                backs_up=form.cleaned_data["backs_up"],
            ),
        )

    @admin.action(description="Take back what was applied …", permissions=["apply"])
    def revert(self, request: HttpRequest, records: QuerySet[MigrationLog]) -> HttpResponse | None:
        finished = records.exclude(result__in=("", "rejected", "reverted"))
        chosen = list(finished.values_list("pk", flat=True))
        return self._confirmed(
            request,
            chosen,
            nothing="Nothing here was applied: there is nothing to take back.",
            title="Take these back?",
            form=None,
            tells=undoing_of,
            start=lambda form: start_revert(chosen, by=request.user.get_username()),
        )

    def _confirmed(
        self,
        request: HttpRequest,
        chosen: list[int],
        *,
        nothing: str,
        title: str,
        form: type[ApplyForm] | None,
        tells: Callable[[MigrationLog], Iterator[str]],
        start: Callable[[Any], Operation],
    ) -> HttpResponse | None:
        """Ask once, with what will happen to each record, then let a worker do it."""
        if not chosen:
            self.message_user(request, nothing, messages.WARNING)
            return None
        is_answer = "confirmed" in request.POST
        bound = form(request.POST if is_answer else None) if form else None
        if is_answer and (bound is None or bound.is_valid()):
            work = start(bound)
            return HttpResponseRedirect(reverse("admin:legacy_work", args=[work.pk]))
        records = MigrationLog.objects.filter(pk__in=chosen).order_by("pk")
        context = {
            **self.admin_site.each_context(request),
            "opts": self.model._meta,
            "title": title,
            "records": records,
            "stakes": [
                (record, list(tells(record)), list(jobs_of(record))) for record in records[:50]
            ],
            "more": max(0, len(chosen) - 50),
            "form": bound,
            "action": request.POST["action"],
        }
        return TemplateResponse(request, "legacy/confirm.html", context)

    def work_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show how far a piece of work is. The row says it, so a reload shows the same."""
        work = get_object_or_404(Operation, pk=pk)
        if not self.has_view_permission(request):
            return HttpResponse(status=403)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.model._meta,
            "title": "Migration at work",
            "work": work,
            "percent": round(100 * work.done / work.total) if work.total else 100,
            "is_over": work.state in ("done", "failed"),
            "open": work.result.get("counts", {}).keys() & {"failed", "busy", "stale"},
        }
        return TemplateResponse(request, "legacy/work.html", context)

    @action(
        description="Rename to another key",
        url_path="force-rename",
        icon="edit",
        permissions=["decide"],
        dialog={
            "title": "Rename to a key you know",
            "description": "The whole session goes there, with all its turns.",
            "form_class": RenameForm,
            "form_submit_text": "Decide",
        },
    )
    def rename(self, request: HttpRequest, form: RenameForm, object_id: int) -> HttpResponse:
        record = get_object_or_404(MigrationLog, pk=object_id)
        who = request.user.get_username()
        try:
            decide(record, Approval.RENAME, who=who, new_key=str(form.cleaned_data["new_key"]))
        except DecisionError as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            self.message_user(
                request, "Decided: it is renamed when you apply it.", messages.SUCCESS
            )
        page = reverse("admin:sessions_app_migrationlog_change", args=[object_id])
        return HttpResponse(headers={"HX-Redirect": page})

    @action(
        description="Divide by hand",
        url_path="force-split",
        icon="call_split",
        permissions=["decide"],
    )
    def split(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:legacy_divide", args=[object_id]))
