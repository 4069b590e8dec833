from django.contrib import admin
from django.urls import include, path

from nahida.api import api
from nahida.gateway import health
from nahida.web.login import to_login

urlpatterns = [
    path("admin/login/", to_login),
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("", include("nahida.web.urls")),
]
