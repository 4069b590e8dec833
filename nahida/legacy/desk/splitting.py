"""Dividing a session by hand: each turn to a chat, prefilled as proposed. What names no chat stays where it is unless a person moves it."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views import View

from channels_app.addresses import AddressError, ChatAddress, SessionKey
from memory_app.models import MemoryTurn
from nahida.legacy.decide import DecisionError, Targets, decide
from nahida.legacy.gather import chat_named
from nahida.legacy.telling import shown
from sessions_app.models import Approval, MigrationLog

PER_PAGE = 100
STAYS = ""
FIELD = "turn-"


@dataclass(frozen=True, slots=True)
class Row:
    """A turn on the page. `fixed` names the chat its own envelope gives: it goes there or stays."""

    turn: MemoryTurn
    text: str
    fixed: str
    chosen: str


class Draft:
    """Where each turn is to go, kept in the person's own browser session until it is decided."""

    def __init__(self, request: HttpRequest, record: MigrationLog) -> None:
        self._store = request.session
        self._name = f"legacy-split-{record.pk}"
        self._proposed = {
            str(turn): target["chat_address"]
            for target in record.targets
            for turn in target["turn_ids"]
        }
        kept: dict[str, Any] = self._store.get(self._name, {})
        self.changes: dict[str, str] = kept.get("changes", {})
        proposed = [target["chat_address"] for target in record.targets]
        self.chats: list[str] = list(dict.fromkeys([*proposed, *kept.get("chats", [])]))

    def chosen(self, turn: int) -> str:
        where: str = self.changes.get(str(turn), self._proposed.get(str(turn), STAYS))
        return where

    def choose(self, turn: str, chat: str) -> None:
        if chat == self._proposed.get(turn, STAYS):
            self.changes.pop(turn, None)
        else:
            self.changes[turn] = chat

    def save(self) -> None:
        self._store[self._name] = {"changes": self.changes, "chats": self.chats}

    def forget(self) -> None:
        self._store.pop(self._name, None)

    def targets(self, record: MigrationLog) -> Targets:
        key = SessionKey.parse(record.old_key)
        turns = self._proposed | self.changes
        return [
            {
                "chat_address": chat,
                "new_session_id": str(key.at(ChatAddress.parse(chat))),
                "turn_ids": sorted(int(turn) for turn, where in turns.items() if where == chat),
            }
            for chat in self.chats
            if chat in turns.values()
        ]


class SplitView(View):
    desk: Any = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if not self.desk.has_decide_permission(request):
            return HttpResponseForbidden("Deciding about old sessions is a right of its own.")
        self.record = get_object_or_404(MigrationLog, pk=kwargs["pk"])
        self.draft = Draft(request, self.record)
        return super().dispatch(request, *args, **kwargs)

    def get(self, request: HttpRequest, pk: int) -> HttpResponse:
        page = self._page(request)
        context = {
            **self.desk.admin_site.each_context(request),
            "opts": MigrationLog._meta,
            "title": f"Divide {shown(self.record.old_key)}",
            "record": self.record,
            "page": page,
            "rows": [self._row(turn) for turn in page.object_list],
            "chats": self.draft.chats,
            "changed": len(self.draft.changes),
        }
        return TemplateResponse(request, "legacy/divide.html", context)

    def post(self, request: HttpRequest, pk: int) -> HttpResponse:
        for name, chat in request.POST.items():
            if name.startswith(FIELD) and chat in (STAYS, *self.draft.chats):
                self.draft.choose(name.removeprefix(FIELD), chat)
        if text := request.POST.get("chat", "").strip():
            self._add_chat(request, text)
        self.draft.save()
        if "decide" in request.POST and self._decide(request):
            page = reverse("admin:sessions_app_migrationlog_change", args=[pk])
            return HttpResponseRedirect(page)
        return HttpResponseRedirect(f"{request.path}?page={request.POST.get('go', 1)}")

    def _page(self, request: HttpRequest) -> Page[MemoryTurn]:
        turns = MemoryTurn.objects.filter(session=self.record.subject_pk).order_by("pk")
        return Paginator(turns, PER_PAGE).get_page(request.GET.get("page"))

    def _row(self, turn: MemoryTurn) -> Row:
        return Row(
            turn, shown(turn.content[:300]), chat_named(turn.origin), self.draft.chosen(turn.pk)
        )

    def _add_chat(self, request: HttpRequest, text: str) -> None:
        try:
            address = ChatAddress.target(text)
        except AddressError as error:
            messages.error(request, str(error))
            return
        if address.chat_key not in self.draft.chats:
            self.draft.chats.append(address.chat_key)

    def _decide(self, request: HttpRequest) -> bool:
        who = request.user.get_username()
        try:
            targets = self.draft.targets(self.record)
            decide(self.record, Approval.SPLIT, who=who, targets=targets)
        except (DecisionError, AddressError) as error:
            messages.error(request, str(error))
            return False
        self.draft.forget()
        messages.success(request, "Decided: it is divided when you apply it.")
        return True
