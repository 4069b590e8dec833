"""How the admin looks: its colours, its marks, and what stands in the side bar."""

from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse

from sessions_app.models import MigrationLog

MOVING = "Moving over"  # shown where something moves

# title, icon, admin name, permission
GROUPS = (
    (
        "Conversations",
        (
            ("Chats", "forum", "sessions_app_chat", "sessions_app.view_chat"),
            ("Sessions", "history", "sessions_app_session", "sessions_app.view_session"),
            ("Turns", "notes", "memory_app_memoryturn", "memory_app.view_memoryturn"),
            ("Deliveries", "outbox", "channels_app_delivery", "channels_app.view_delivery"),
        ),
    ),
    (
        MOVING,
        (
            (
                "Old sessions",
                "move_down",
                "sessions_app_migrationlog",
                "sessions_app.view_migrationlog",
            ),
        ),
    ),
    (
        "Running",
        (
            ("Model usage", "monitoring", "memory_app_modelcall", "memory_app.view_modelcall"),
            ("Heartbeats", "ecg_heart", "ops_heartbeat", "ops.view_heartbeat"),
            ("Channels", "cable", "channels_app_channelstate", "channels_app.view_channelstate"),
            ("Queue", "low_priority", "django_q_ormq", "django_q.view_ormq"),
            ("Failed tasks", "error", "django_q_failure", "django_q.view_failure"),
        ),
    ),
    (
        "Access",
        (
            ("API keys", "key", "gateway_apikey", "gateway.view_apikey"),
            ("Users", "person", "auth_user", "auth.view_user"),
            ("Groups", "group", "auth_group", "auth.view_group"),
        ),
    ),
)


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    hidden = () if MigrationLog.objects.exists() else (MOVING,)
    first = {"title": "Overview", "icon": "dashboard", "link": reverse("admin:index")}
    return [
        {"items": [first]},
        *(
            {"title": title, "separator": True, "items": items}
            for title, entries in GROUPS
            if title not in hidden
            and (items := [_item(*entry) for entry in entries if request.user.has_perm(entry[3])])
        ),
    ]


def _item(title: str, icon: str, name: str, permission: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse(f"admin:{name}_changelist")}


def styles(request: HttpRequest) -> str:
    return static("desk/desk.css")


def icon(request: HttpRequest) -> str:
    return static("web/leaf.svg")


def chat_page(request: HttpRequest) -> str:
    return reverse("web:chat")
