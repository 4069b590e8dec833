"""Signing in, which gets slower the more often it fails."""

import time
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

FORGET_S = 15 * 60  # after this long without a failure
LONGEST_WAIT_S = 60
FREE_FOR_ACCOUNT = 4  # failures before the first wait, of one account from one address
FREE_FOR_ADDRESS = 20  # and of all accounts: many people may share an address


@dataclass(frozen=True, slots=True)
class Brake:
    """Counts the failures of one guesser. Each one beyond `free` doubles the wait."""

    name: str
    free: int

    def wait(self) -> float:
        """Return for how many seconds no try is looked at."""
        failures, last = self._failures()
        if failures <= self.free:
            return 0.0
        pause = min(LONGEST_WAIT_S, 2.0 ** min(failures - self.free, 10))
        return max(0.0, last + pause - time.time())

    def failed(self) -> None:
        failures, _ = self._failures()
        cache.set(self.name, (failures + 1, time.time()), FORGET_S)

    def release(self) -> None:
        cache.delete(self.name)

    def _failures(self) -> tuple[int, float]:
        """Return how many there were lately, and when the last one was."""
        count, last = cache.get(self.name, (0, 0.0))
        return int(count), float(last)


def brakes(request: HttpRequest) -> tuple[Brake, Brake]:
    """Return the brakes of the account tried and of the address. No proxy may name the address."""
    address = request.META.get("REMOTE_ADDR", "")
    account = request.POST.get("username", "").casefold().encode().hex()[:100]
    return (
        Brake(f"login-{address}-{account}".replace(":", "."), FREE_FOR_ACCOUNT),
        Brake(f"login-{address}".replace(":", "."), FREE_FOR_ADDRESS),
    )


class Login(LoginView):
    template_name = "web/login.html"
    extra_context = {"site_name": settings.NAHIDA.site.name}

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated and not self.get_redirect_url():
            return redirect(self.get_default_redirect_url())
        return super().get(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        wait = max(brake.wait() for brake in brakes(request))
        if not wait:
            return super().post(request, *args, **kwargs)
        form = self.get_form_class()(request)
        seconds = int(wait) + 1
        page = self.get_context_data(form=form, wait=seconds)
        response = self.render_to_response(page, status=429)
        response["Retry-After"] = str(seconds)
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        for brake in brakes(self.request):
            brake.failed()
        return super().form_invalid(form)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        of_account, _ = brakes(self.request)
        of_account.release()
        return super().form_valid(form)


def to_login(request: HttpRequest) -> HttpResponse:
    """Send the admin's login to ours: one door, one brake."""
    target = request.GET.get("next") or reverse("admin:index")
    return redirect(f"{reverse('web:login')}?{urlencode({'next': target})}")
