from datetime import timedelta
from io import StringIO

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.utils import timezone

from nahida.gateway import keys
from nahida.gateway.auth import FAILURES, WINDOW_S
from nahida.gateway.models import ApiKey
from sessions_app.models import Chat
from tests.gateway.cast import ALICE, GROUP, GatewayTestCase, chat_of

WRONG = "Bearer nhd_00000000_" + "x" * 43


class MakeKeysTest(GatewayTestCase):
    def test_it_keeps_only_the_hash(self) -> None:
        key, text = keys.create("script", scopes=["chat"])

        kept = ApiKey.objects.filter(pk=key.pk).values().get()

        assert text.startswith(f"nhd_{key.prefix}_")
        assert text.rpartition("_")[2] not in repr(kept)
        assert keys.find(text) == key

    def test_it_refuses_a_scope_that_does_not_exist(self) -> None:
        with pytest.raises(keys.ScopeError, match=r'no scope "chats": use chat, send'):
            keys.create("script", scopes=["chats"])

    def test_it_finds_no_revoked_or_expired_key(self) -> None:
        revoked, revoked_text = keys.create("revoked", scopes=["chat"])
        keys.revoke(revoked)
        _, expired_text = keys.create("expired", scopes=["chat"], expires_at=timezone.now())

        assert keys.find(revoked_text) is None
        assert keys.find(expired_text) is None

    def test_it_finds_nothing_for_odd_text(self) -> None:
        for text in (
            "",
            "nhd_",
            "nhd__",
            "nhd_\x00\x00\x00\x00\x00\x00\x00\x00_x",
            "nhd_٣٣٣٣٣٣٣٣_x",
        ):
            assert keys.find(text) is None

    def test_it_prints_the_key_once(self) -> None:
        out, err = StringIO(), StringIO()

        call_command(
            "create_api_key",
            "script",
            "--scope=chat",
            "--scope=send",
            f"--chat={GROUP}",
            "--expires=90d",
            stdout=out,
            stderr=err,
        )

        key = keys.find(out.getvalue().strip())
        assert key is not None
        assert key.scopes == ["chat", "send"]
        assert key.limited
        assert [chat.chat_key for chat in key.chats.all()] == [GROUP]
        assert key.expires_at is not None
        assert key.expires_at - timezone.now() > timedelta(days=89)
        assert out.getvalue().strip() not in err.getvalue()

    def test_it_says_how_a_chat_and_a_time_are_written(self) -> None:
        with pytest.raises(CommandError, match="write milky:private:10001 or milky:group:10001"):
            call_command("create_api_key", "x", "--scope=chat", "--chat=milky:10001")
        with pytest.raises(CommandError, match="write 90d"):
            call_command("create_api_key", "x", "--scope=chat", "--expires=soon")
        with pytest.raises(CommandError, match="is over"):
            call_command("create_api_key", "x", "--scope=chat", "--expires=2001-01-01")


class AuthenticateTest(GatewayTestCase):
    path = "/api/sessions"

    def test_it_asks_for_a_key(self) -> None:
        response = self.client.get(self.path)

        assert response.status_code == 401
        assert response["WWW-Authenticate"] == 'Bearer realm="nahida"'
        assert response["Content-Type"] == "application/problem+json"
        assert response.json()["status"] == 401

    def test_it_refuses_a_wrong_secret_of_a_known_key(self) -> None:
        right = self.key()

        response = self.get(self.path, key=right[:-1] + ("A" if right[-1] != "A" else "B"))

        assert response.status_code == 401
        assert 'error="invalid_token"' in response["WWW-Authenticate"]

    def test_it_names_the_missing_scope(self) -> None:
        response = self.get(self.path, key=self.key("chat"))

        assert response.status_code == 403
        assert '"sessions:read"' in response.json()["detail"]

    def test_it_notes_the_use_once_a_minute(self) -> None:
        key = self.key()
        with time_machine.travel("2031-05-10T12:00:00Z", tick=False) as clock:
            self.get(self.path, key=key)
            first = ApiKey.objects.get().last_used_at
            clock.shift(30)
            self.get(self.path, key=key)
            second = ApiKey.objects.get().last_used_at
            clock.shift(40)
            self.get(self.path, key=key)
            third = ApiKey.objects.get().last_used_at

        assert first is not None
        assert first == second
        assert third == first + timedelta(seconds=70)

    def test_it_stays_limited_when_its_only_chat_is_gone(self) -> None:
        key = self.key(chats=[chat_of(GROUP)])
        chat_of(ALICE)
        ApiKey.objects.get().chats.clear()

        assert self.get("/api/chats", key=key).json()["items"] == []


class GuessTest(GatewayTestCase):
    def guess(self, key: str = WRONG, *, address: str = "192.0.2.1", **headers: str) -> int:
        return self.client.get(
            "/api/sessions",
            headers={"authorization": key, **headers},
            REMOTE_ADDR=address,
        ).status_code

    @time_machine.travel("2031-05-10T12:00:00Z", tick=False)
    def test_it_slows_an_address_down(self) -> None:
        statuses = [self.guess(f"Bearer nope{n}") for n in range(FAILURES + 2)]

        assert statuses == [401] * FAILURES + [429] * 2

    @time_machine.travel("2031-05-10T12:00:15Z", tick=False)
    def test_it_says_when_to_try_again(self) -> None:
        for n in range(FAILURES + 1):
            self.guess(f"Bearer nope{n}")

        response = self.get("/api/sessions", key="Bearer nope")
        other = self.client.get(
            "/api/sessions", headers={"authorization": "Bearer x"}, REMOTE_ADDR="192.0.2.1"
        )

        assert response.status_code == 401  # another address
        assert other.status_code == 429
        assert other["Retry-After"] == str(WINDOW_S - 15)

    @time_machine.travel("2031-05-10T12:00:00Z", tick=False)
    def test_it_does_not_believe_a_forwarded_address(self) -> None:
        statuses = [
            self.guess(f"Bearer nope{n}", **{"x-forwarded-for": f"198.51.100.{n}"})
            for n in range(FAILURES + 1)
        ]

        assert statuses[-1] == 429

    @time_machine.travel("2031-05-10T12:00:00Z", tick=False)
    def test_it_takes_a_site_of_ipv6_for_one_address(self) -> None:
        statuses = [
            self.guess(f"Bearer nope{n}", address=f"2001:db8::{n}") for n in range(FAILURES + 1)
        ]

        assert statuses[-1] == 429

    @time_machine.travel("2031-05-10T12:00:00Z", tick=False)
    def test_it_slows_guesses_at_one_key_from_many_addresses(self) -> None:
        right = self.key()
        wrong = right[:20] + "x" * 40
        for n in range(FAILURES):
            assert self.guess(wrong, address=f"192.0.2.{n}") == 401

        again = self.guess(wrong, address="192.0.2.1")
        even_right = self.guess(right, address="192.0.2.1")
        owner = self.guess(right, address="203.0.113.9")

        assert (again, even_right, owner) == (429, 429, 200)

    @time_machine.travel("2031-05-10T12:00:00Z", tick=False)
    def test_it_lets_other_keys_of_the_same_address_work(self) -> None:
        """Behind a proxy everybody has one address: a script with an old key must not stop the rest."""
        for _ in range(2 * FAILURES):
            self.guess()

        assert self.guess(self.key()) == 200

    def test_it_forgets_with_the_window(self) -> None:
        with time_machine.travel("2031-05-10T12:00:00Z", tick=False) as clock:
            for n in range(FAILURES + 1):
                self.guess(f"Bearer nope{n}")
            clock.shift(WINDOW_S)

            assert self.guess() == 401

    def test_it_makes_no_chat_for_anybody(self) -> None:
        self.guess()

        assert not Chat.objects.exists()
