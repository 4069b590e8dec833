"""The chat page of a signed-in user and what its script asks for."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import transaction
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_GET, require_POST
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from channels_app.addresses import WEB, ChatAddress, account
from channels_app.messages import InboundMessage, Sender
from memory_app.models import MemoryTurn
from nahida.agent.intake import Outcome, accept
from nahida.config import Config
from nahida.web import history, stream
from sessions_app import lanes
from sessions_app.models import Chat, Session
from sessions_app.routing import resume_session

LONGEST_TEXT = 20_000  # characters of one message


class Sent(BaseModel):
    """A message on its way in. `key` is made by the page for each message, so that sending it again is no second one."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=LONGEST_TEXT)
    key: str = Field(pattern=r"^[0-9a-f-]{36}$")
    session: int | None = None


def signed_in(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Answer 401 to a stranger: a script must not be led to the login page."""

    @wraps(view)
    def for_users(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return JsonResponse({"error": "Sign in first."}, status=401)
        return view(request, *args, **kwargs)

    return for_users


@require_GET
@never_cache
@login_required
@ensure_csrf_cookie
def chat(request: HttpRequest, session_id: int | None = None) -> HttpResponse:
    user = _user(request)
    mine = history.own(user.pk)
    page = {
        "site": settings.NAHIDA.site.name,
        "local_model": _answers_locally(mine.chat),
        "boot": {
            "state": _state(mine, _chosen(mine, session_id)),
            "longest": LONGEST_TEXT,
            "urls": {
                name: reverse(f"web:{name}")
                for name in ("chat", "state", "turns", "send", "events")
            },
        },
    }
    return render(request, "web/chat.html", page)


@require_GET
@never_cache
@signed_in
def state(request: HttpRequest) -> JsonResponse:
    """Return the sessions and the last turns of one of them, of the active one by default."""
    mine = history.own(_user(request).pk)
    return JsonResponse(_state(mine, _chosen(mine, _number(request, "session"))))


@require_GET
@never_cache
@signed_in
def turns(request: HttpRequest) -> JsonResponse:
    """Return the page of turns before one."""
    mine = history.own(_user(request).pk)
    session = _chosen(mine, _number(request, "session"))
    before = _number(request, "before")
    if session is None or before is None:
        raise Http404
    earlier, has_more = history.page(session, before=before)
    return JsonResponse({"turns": history.as_json(earlier), "more": has_more})


@require_POST
@signed_in
def send(request: HttpRequest) -> JsonResponse:
    """Take a message in. Its answer comes over the event stream."""
    try:
        sent = Sent.model_validate_json(request.body)
    except ValidationError as error:
        return JsonResponse({"error": _first_problem(error)}, status=400)
    user = _user(request)
    session = _chosen(history.own(user.pk), sent.session)
    with transaction.atomic():
        if session is not None:
            _continue(session, ChatAddress.web(user.pk))
        accepted = accept(_message(user, sent))
    if accepted.outcome in (Outcome.IGNORED, Outcome.REFUSED):
        return JsonResponse({"error": "This chat is closed. Please ask the owner."}, status=403)
    return JsonResponse({"outcome": accepted.outcome, "turn": accepted.turn_id})


@require_GET
@signed_in
def events(request: HttpRequest) -> HttpResponseBase:
    """Stream what happens in one session from a cursor on; without one, wait for the user's first."""
    user = _user(request)
    wanted = _number(request, "session")
    session = _chosen(history.own(user.pk), wanted) if wanted is not None else None
    last = request.headers.get("Last-Event-ID") or request.GET.get("after") or ""
    after = int(last) if last.isascii() and last.isdigit() else 0
    watch = stream.Watch(user.pk, session.pk if session else None, after)
    return StreamingHttpResponse(
        stream.events(watch),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


def _state(mine: history.Own, session: Session | None) -> dict[str, Any]:
    shown: list[MemoryTurn] = []
    has_more = False
    if session is not None:
        shown, has_more = history.page(session)
    return {
        "sessions": history.session_list(mine),
        "active": mine.active_id,
        "session": session and session.pk,
        "turns": history.as_json(shown),
        "more": has_more,
        "cursor": history.cursor(shown, after=shown[0].pk - 1 if shown else 0),
    }


def _chosen(mine: history.Own, session_id: int | None) -> Session | None:
    """Return the session asked for, the active one by default. That of another chat is 404, as one that never was."""
    wanted = mine.active_id if session_id is None else session_id
    if wanted is None:
        return None
    return get_object_or_404(mine.sessions, pk=wanted)


def _continue(session: Session, address: ChatAddress) -> None:
    lane = lanes.lock(address)
    if lane.active_session_id != session.pk:
        resume_session(lane, session)


def _message(user: User, sent: Sent) -> InboundMessage:
    return InboundMessage(
        address=ChatAddress.web(user.pk),
        event_key=f"{user.pk} {sent.key}",
        text=sent.text,
        sender=Sender(account(WEB, str(user.pk)), user.get_full_name() or user.username),
        sent_at=timezone.now(),
        message_id=sent.key,
        addressed=True,
    )


def _answers_locally(chat: Chat | None) -> bool:
    config: Config = settings.NAHIDA
    chosen = config.models.get(chat.model if chat else "") or config.models[config.agent.model]
    return chosen.local


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User), "the decorators let only users in"
    return request.user


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, problem["loc"])) or "body"
    return f"{field}: {problem['msg']}"
