from django.contrib.auth.views import LogoutView
from django.urls import path
from django.views.generic import RedirectView

from nahida.web import views
from nahida.web.csp import own_files_only
from nahida.web.login import Login

app_name = "web"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="web:chat"), name="home"),
    path("login/", own_files_only(Login.as_view()), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("chat/", own_files_only(views.chat), name="chat"),
    path("chat/s/<int:session_id>/", own_files_only(views.chat), name="session"),
    path("chat/state/", views.state, name="state"),
    path("chat/turns/", views.turns, name="turns"),
    path("chat/send/", views.send, name="send"),
    path("chat/events/", views.events, name="events"),
]
