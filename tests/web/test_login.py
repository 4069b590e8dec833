"""The one door, and its brake."""

from http import HTTPStatus

import time_machine
from django.contrib.auth.models import User
from django.core.cache import cache
from django.http import HttpResponse
from django.test import TestCase
from django.test.utils import override_settings

PASSWORD = "a long pass phrase"


@override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
class LoginTest(TestCase):
    def setUp(self) -> None:
        cache.clear()
        self.addCleanup(cache.clear)
        User.objects.create_user("alice", password=PASSWORD)
        User.objects.create_superuser("owner", password=PASSWORD)

    def enter(
        self, name: str, password: str, *, to: str = "", ip: str = "192.0.2.1"
    ) -> HttpResponse:
        form = {"username": name, "password": password, "next": to}
        return self.client.post("/login/", form, REMOTE_ADDR=ip)  # type: ignore[return-value]

    def test_it_leads_to_the_chat(self) -> None:
        self.assertRedirects(self.enter("alice", PASSWORD), "/chat/")
        self.assertRedirects(self.client.get("/login/"), "/chat/")

    def test_it_leads_to_no_other_site(self) -> None:
        answer = self.enter("alice", PASSWORD, to="https://evil.example/")

        self.assertRedirects(answer, "/chat/")

    def test_it_slows_a_guesser_down(self) -> None:
        """After some failures even the right password has to wait; another account does not."""
        with time_machine.travel(1_900_000_000, tick=False) as clock:
            for _ in range(5):
                self.assertEqual(self.enter("alice", "guess").status_code, HTTPStatus.OK)
            refused = self.enter("alice", PASSWORD)
            elsewhere = self.enter("owner", PASSWORD)
            clock.shift(3)
            later = self.enter("alice", PASSWORD)

        self.assertEqual(refused.status_code, HTTPStatus.TOO_MANY_REQUESTS)
        self.assertEqual(refused["Retry-After"], "3")
        self.assertContains(refused, "Too many tries", status_code=HTTPStatus.TOO_MANY_REQUESTS)
        self.assertRedirects(elsewhere, "/chat/")
        self.assertRedirects(later, "/chat/")

    def test_it_slows_an_address_that_tries_many_accounts(self) -> None:
        with time_machine.travel(1_900_000_000, tick=False):
            for number in range(21):
                self.enter(f"guess{number}", "guess")
            here = self.enter("alice", PASSWORD)
            elsewhere = self.enter("alice", PASSWORD, ip="192.0.2.2")

        self.assertEqual(here.status_code, HTTPStatus.TOO_MANY_REQUESTS)
        self.assertRedirects(elsewhere, "/chat/")

    def test_it_is_the_admin_s_door_too(self) -> None:
        """Guessing at the admin's own login would know no brake."""
        self.assertRedirects(
            self.client.get("/admin/login/?next=/admin/"), "/login/?next=%2Fadmin%2F"
        )
        self.assertEqual(
            self.client.post("/admin/login/", {"username": "owner", "password": PASSWORD}).url,  # type: ignore[attr-defined]
            "/login/?next=%2Fadmin%2F",
        )

    def test_it_tells_a_member_that_the_admin_is_not_his(self) -> None:
        self.enter("alice", PASSWORD)

        answer = self.client.get("/admin/", follow=True)

        self.assertContains(answer, "may not open that page")

    def test_it_signs_out_by_post_only(self) -> None:
        self.enter("alice", PASSWORD)

        self.assertEqual(self.client.get("/logout/").status_code, HTTPStatus.METHOD_NOT_ALLOWED)
        self.assertRedirects(self.client.post("/logout/"), "/login/")
