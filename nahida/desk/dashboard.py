"""The admin's first page: what waits for a person, and whether all parts live."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Q, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from channels_app.models import Delivery, DeliveryState
from memory_app.models import MemoryTurn, ModelCall, TurnState
from nahida.legacy.gather import KIND
from nahida.legacy.proposals import SKIP_TYPED
from nahida.ops import health
from sessions_app.models import Access, Approval, Chat, MigrationLog

STALLED_S = 30  # longer than any wake-up takes

# Outcomes of a model call that brought what was asked, or that a person cut short.
USEFUL = ("stop", "length", "tool_calls", "stopped")

Person = User | AnonymousUser


@dataclass(frozen=True, slots=True)
class Card:
    title: str
    value: str
    note: str
    href: str
    is_alert: bool = False


def context(request: HttpRequest, page: dict[str, Any]) -> dict[str, Any]:
    """Add the dashboard to the index page: to each person what he may see elsewhere."""
    person = request.user
    page["title"] = "Overview"
    page["cards"] = list(_cards(person))
    if person.has_perm("memory_app.view_modelcall"):
        page["usage"] = _usage()
    if person.has_perm("ops.view_heartbeat"):
        page["heartbeats"] = _heartbeats()
        page["channels"] = _channels()
    return page


def _cards(person: Person) -> Iterator[Card]:
    if person.has_perm("sessions_app.view_chat"):
        yield _waiting_chats()
    if person.has_perm("channels_app.view_delivery"):
        yield _undelivered()
    if person.has_perm("memory_app.view_memoryturn"):
        yield _work()
    if person.has_perm("memory_app.view_modelcall"):
        yield _calls()
    if person.has_perm("sessions_app.view_migrationlog"):
        yield from _old_sessions()


def _waiting_chats() -> Card:
    waiting = Chat.objects.filter(access=Access.PENDING, merged_into=None).count()
    allowed = Chat.objects.filter(access=Access.ALLOWED, merged_into=None).count()
    link = _list("sessions_app_chat", access__exact=Access.PENDING.value)
    return Card("Chats to let in", str(waiting), f"{allowed} are in", link, waiting > 0)


def _undelivered() -> Card:
    ended = Delivery.objects.filter(state__in=[DeliveryState.FAILED, DeliveryState.UNKNOWN])
    counts = dict(ended.values_list("state").annotate(Count("pk")).order_by())
    unknown, failed = (
        counts.get(state.value, 0) for state in (DeliveryState.UNKNOWN, DeliveryState.FAILED)
    )
    state = DeliveryState.UNKNOWN if unknown else DeliveryState.FAILED
    link = _list("channels_app_delivery", state__exact=state.value)
    note = f"{failed} failed, {unknown} unknown"
    return Card("Not delivered", str(failed + unknown), note, link, failed + unknown > 0)


def _work() -> Card:
    unfinished = MemoryTurn.objects.unfinished().values_list("state").annotate(Count("pk"))
    counts = dict(unfinished.order_by())
    pending, running = (
        counts.get(state.value, 0) for state in (TurnState.PENDING, TurnState.RUNNING)
    )
    stalled = health.stalled_for()
    is_stalled = stalled > STALLED_S
    note = (
        f"the oldest work waits for {stalled:.0f} s"
        if is_stalled
        else f"{running} are being answered"
    )
    link = _list("memory_app_memoryturn", state__exact=TurnState.PENDING.value)
    return Card("Messages waiting", str(pending), note, link, is_stalled)


def _calls() -> Card:
    totals = _today().aggregate(
        calls=Count("pk"),
        tokens_in=Sum("tokens_in"),
        tokens_out=Sum("tokens_out"),
        cost=Sum("cost"),
    )
    tokens = (totals["tokens_in"] or 0) + (totals["tokens_out"] or 0)
    cost = f", cost {totals['cost']:.4f}" if totals["cost"] else ""
    link = _list("memory_app_modelcall")
    return Card("Tokens today", f"{tokens:,}", f"{totals['calls']} requests{cost}", link)


def _old_sessions() -> Iterator[Card]:
    """Yield a card while something is undecided, or decided and not applied."""
    open_ones = MigrationLog.objects.filter(kind=KIND, result="").exclude(recommendation=SKIP_TYPED)
    undecided = open_ones.filter(approval=Approval.PENDING).count()
    to_apply = open_ones.exclude(approval=Approval.PENDING).count()
    if undecided or to_apply:
        link = _list("sessions_app_migrationlog", result="open")
        note = f"{to_apply} decided, to be applied"
        yield Card("Old sessions to decide", str(undecided), note, link, undecided > 0)


def _usage() -> Mapping[str, Any]:
    by_model = (
        _today()
        .values("model")
        .annotate(
            calls=Count("pk"),
            failed=Count("pk", filter=~Q(outcome__in=USEFUL)),
            tokens_in=Sum("tokens_in"),
            tokens_out=Sum("tokens_out"),
            cost=Sum("cost"),
        )
        .order_by("-calls")
    )
    rows = [
        [
            row["model"],
            row["calls"],
            row["failed"],
            f"{row['tokens_in']:,}",
            f"{row['tokens_out']:,}",
            "—" if row["cost"] is None else f"{row['cost']:.4f}",
        ]
        for row in by_model
    ]
    return _table(["Model", "Requests", "Failed", "Tokens in", "Tokens out", "Cost"], rows)


def _heartbeats() -> Mapping[str, Any]:
    rows = [
        [beat.name, f"{beat.age_s:.0f} s ago", "lives" if beat.is_alive else "silent"]
        for beat in health.heartbeats()
    ]
    return _table(["Process", "Last heard of", "State"], rows)


def _channels() -> Mapping[str, Any]:
    rows = [
        [
            channel.name,
            channel.kind.rpartition(".")[2],
            channel.status or "—",
            timezone.localtime(channel.last_event_at).strftime("%Y-%m-%d %H:%M")
            if channel.last_event_at
            else "—",
            channel.error or "; ".join(channel.detail.get("hints", ())) or "—",
        ]
        for channel in health.channels()
    ]
    return _table(["Channel", "Kind", "Status", "Last event", "To know"], rows)


def _today() -> Any:
    midnight = datetime.combine(timezone.localdate(), time.min, timezone.get_current_timezone())
    return ModelCall.objects.filter(created_at__gte=midnight)


def _table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> Mapping[str, Any]:
    return {"headers": headers, "rows": rows}


def _list(name: str, **query: str) -> str:
    return reverse(f"admin:{name}_changelist", query=query)
