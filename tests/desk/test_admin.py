"""The admin: what it shows, what its actions do, and to whom."""

from datetime import timedelta
from http import HTTPStatus
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client, TestCase
from django.utils import timezone

from channels_app.models import Delivery, DeliveryState
from memory_app.models import MemoryTurn, ModelCall, Role, TurnKind
from nahida.gateway import keys
from nahida.gateway.models import ApiKey
from nahida.ops.models import Heartbeat
from sessions_app.models import Access, Approval, Chat, MigrationLog, Session

CHATS = "/admin/sessions_app/chat/"
DELIVERIES = "/admin/channels_app/delivery/"
KEYS = "/admin/gateway/apikey/"


class DeskCase(TestCase):
    """A superuser, and a member of the staff who may do what a test gives him."""

    def setUp(self) -> None:
        self.owner = Client()
        self.owner.force_login(User.objects.create_superuser("owner"))
        self.clerk_user = User.objects.create_user("clerk", is_staff=True)
        self.clerk = Client()
        self.clerk.force_login(self.clerk_user)
        self.chat = self.make_chat("10001", pairing_code="ABCDEFGH", first_line="hello there")

    def make_chat(self, number: str, **columns: Any) -> Chat:
        key = f"fake-group-{number}".replace("-", ":")
        return Chat.objects.create(
            chat_key=key, channel="fake", target_type="group", target_id=number, **columns
        )

    def allow(self, *codenames: str) -> None:
        self.clerk_user.user_permissions.add(*Permission.objects.filter(codename__in=codenames))

    def act(self, client: Client, url: str, action: str, *rows: Any) -> Any:
        chosen = [row.pk for row in rows]
        return client.post(url, {"action": action, "_selected_action": chosen}, follow=True)


class ReachTest(DeskCase):
    def test_it_writes_again_to_a_chat_that_was_given_up(self) -> None:
        Chat.objects.update(unreachable_since=timezone.now(), unreachable_reason="blocked")

        self.act(self.owner, CHATS, "write_again", self.chat)

        self.chat.refresh_from_db()
        self.assertIsNone(self.chat.unreachable_since)
        self.assertEqual(self.chat.unreachable_reason, "")


class EveryPageTest(DeskCase):
    def test_it_shows_every_list_and_search(self) -> None:
        for model, model_admin in admin.site._registry.items():
            url = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
            with self.subTest(url):
                self.assertFalse(model_admin.show_full_result_count)
                self.assertEqual(self.owner.get(url).status_code, HTTPStatus.OK)
                self.assertEqual(self.owner.get(f"{url}?q=x").status_code, HTTPStatus.OK)
                self.assertEqual(self.clerk.get(url).status_code, HTTPStatus.FORBIDDEN)

    def test_it_changes_nothing_that_the_system_writes(self) -> None:
        session = Session.objects.create(chat=self.chat, key=self.chat.chat_key)
        turn = MemoryTurn.objects.create(session=session, kind=TurnKind.NOTICE, role=Role.SYSTEM)
        for row in (session, turn):
            url = f"/admin/{row._meta.app_label}/{row._meta.model_name}"
            with self.subTest(url):
                self.assertContains(self.owner.get(f"{url}/{row.pk}/change/"), session.key)
                for page in ("add/", f"{row.pk}/delete/"):
                    answer = self.owner.get(f"{url}/{page}")
                    self.assertEqual(answer.status_code, HTTPStatus.FORBIDDEN)
                answer = self.owner.post(f"{url}/{row.pk}/change/", {})
                self.assertEqual(answer.status_code, HTTPStatus.FORBIDDEN)

    def test_it_finds_turns_by_the_key_of_their_session(self) -> None:
        for number in ("20001", "20002"):
            chat = self.make_chat(number)
            session = Session.objects.create(chat=chat, key=chat.chat_key)
            MemoryTurn.objects.create(
                session=session, kind=TurnKind.NOTICE, role=Role.SYSTEM, content=f"said in {number}"
            )

        found = self.owner.get("/admin/memory_app/memoryturn/?q=group:20001")

        self.assertContains(found, "said in 20001")
        self.assertNotContains(found, "said in 20002")

    def test_it_hides_schedules_from_all_but_superusers(self) -> None:
        """A schedule names any function: its page would be a way to run code."""
        self.allow("view_schedule", "add_schedule", "change_schedule")

        for page in ("", "add/"):
            answer = self.clerk.get(f"/admin/django_q/schedule/{page}")
            self.assertEqual(answer.status_code, HTTPStatus.FORBIDDEN)


class ChatAdminTest(DeskCase):
    def test_it_lets_in_and_blocks(self) -> None:
        for action, access in (("approve", Access.ALLOWED), ("block", Access.BLOCKED)):
            self.act(self.owner, CHATS, action, self.chat)
            self.chat.refresh_from_db()
            self.assertEqual((self.chat.access, self.chat.pairing_code), (access, ""))

    def test_it_marks_the_owner_s_chat(self) -> None:
        self.act(self.owner, CHATS, "mark_owner", self.chat)
        self.assertTrue(Chat.objects.get(is_owner=True))

        self.act(self.owner, CHATS, "unmark_owner", self.chat)
        self.assertFalse(Chat.objects.filter(is_owner=True).exists())

    def test_it_lets_in_the_chat_whose_code_is_typed(self) -> None:
        other = self.make_chat("20002", pairing_code="ZZZZZZZZ")

        answer = self.owner.post(f"{CHATS}pair/", {"code": " abcdefgh", "_form_submitted": "on"})

        self.chat.refresh_from_db()
        other.refresh_from_db()
        self.assertEqual(answer["HX-Redirect"], f"{CHATS}{self.chat.pk}/change/")
        self.assertEqual((self.chat.access, other.access), (Access.ALLOWED, Access.PENDING))

    def test_it_says_that_no_chat_has_a_code(self) -> None:
        """Neither an empty code nor that of a blocked chat opens anything."""
        self.make_chat("20002", access=Access.BLOCKED, pairing_code="ZZZZZZZZ")
        self.make_chat("20003")

        for code in ("WRONG", "ZZZZZZZZ", " "):
            self.owner.post(f"{CHATS}pair/", {"code": code, "_form_submitted": "on"})

        self.assertFalse(Chat.objects.filter(access=Access.ALLOWED).exists())
        self.assertContains(self.owner.get(CHATS), "No chat waits with the code")

    def test_it_shows_what_a_decision_needs(self) -> None:
        Chat.objects.update(unreachable_reason="the bot was removed")

        page = self.owner.get(CHATS)

        for text in (self.chat.chat_key, "hello there", "the bot was removed"):
            self.assertContains(page, text)

    def test_it_refuses_a_zone_and_a_model_that_do_not_exist(self) -> None:
        for column, value in (("time_zone", "Mars/Base"), ("time_zone", "../x"), ("model", "no")):
            form = {"title": "", "access": "allowed", "answer_policy": "always", column: value}
            answer = self.owner.post(f"{CHATS}{self.chat.pk}/change/", form)
            self.assertEqual(answer.status_code, HTTPStatus.OK, value)
            self.assertContains(answer, "errorlist" if column == "model" else "is no time zone")

    def test_it_forgets_the_code_of_a_chat_decided_by_hand(self) -> None:
        form = {"title": "", "access": "allowed", "answer_policy": "always", "time_zone": "UTC"}

        self.owner.post(f"{CHATS}{self.chat.pk}/change/", form)

        self.chat.refresh_from_db()
        self.assertEqual((self.chat.access, self.chat.pairing_code), ("allowed", ""))

    def test_it_lets_only_look_who_may_only_look(self) -> None:
        self.allow("view_chat")

        self.assertContains(self.clerk.get(CHATS), "hello there")
        self.act(self.clerk, CHATS, "approve", self.chat)
        answer = self.clerk.post(f"{CHATS}pair/", {"code": "ABCDEFGH", "_form_submitted": "on"})

        self.assertEqual(answer.status_code, HTTPStatus.FORBIDDEN)
        self.chat.refresh_from_db()
        self.assertEqual(self.chat.access, Access.PENDING)


class DeliveryAdminTest(DeskCase):
    def setUp(self) -> None:
        super().setUp()
        self.unknown = self.make_delivery(DeliveryState.UNKNOWN)
        self.pending = self.make_delivery(DeliveryState.PENDING)

    def make_delivery(self, state: DeliveryState) -> Delivery:
        return Delivery.objects.create(
            address=self.chat.chat_key,
            parts=[{"text": "good evening", "plain": False}],
            state=state,
        )

    def test_it_sends_the_rest_of_what_ended(self) -> None:
        """A new delivery at the tail; one that may still go out by itself is left alone."""
        self.act(self.owner, DELIVERIES, "send_the_rest", self.unknown, self.pending)

        rest = Delivery.objects.exclude(pk__in=[self.unknown.pk, self.pending.pk]).get()
        self.assertEqual((rest.state, rest.parts), (DeliveryState.PENDING, self.unknown.parts))
        self.unknown.refresh_from_db()
        self.assertEqual(self.unknown.state, DeliveryState.UNKNOWN)

    def test_it_sends_nothing_for_who_may_only_look(self) -> None:
        self.allow("view_delivery")

        self.act(self.clerk, DELIVERIES, "send_the_rest", self.unknown)
        self.assertEqual(Delivery.objects.count(), 2)

        self.allow("change_delivery")
        self.clerk_user = User.objects.get(pk=self.clerk_user.pk)
        self.act(self.clerk, DELIVERIES, "send_the_rest", self.unknown)
        self.assertEqual(Delivery.objects.count(), 3)

    def test_it_filters_by_state(self) -> None:
        page = self.owner.get(f"{DELIVERIES}?state__exact=unknown")

        self.assertEqual([row.pk for row in page.context["cl"].result_list], [self.unknown.pk])


class ApiKeyAdminTest(DeskCase):
    def test_it_shows_a_new_key_once(self) -> None:
        form = {"name": "report", "scopes": ["send"], "limited": "on", "chats": [self.chat.pk]}

        shown = self.owner.post(f"{KEYS}add/", form)

        key = ApiKey.objects.get()
        text = shown.context["text"]
        self.assertEqual(keys.find(text), key)
        self.assertContains(shown, text)
        self.assertIn("no-store", shown["Cache-Control"])
        self.assertEqual((key.scopes, key.limited), (["send"], True))
        self.assertEqual(list(key.chats.all()), [self.chat])
        for url in (KEYS, f"{KEYS}{key.pk}/change/", "/admin/"):
            self.assertNotContains(self.owner.get(url), text)

    def test_it_asks_for_scopes_and_a_time_to_come(self) -> None:
        past = timezone.now() - timedelta(days=1)
        form = {"name": "report", "expires_at_0": f"{past:%Y-%m-%d}", "expires_at_1": "00:00"}

        answer = self.owner.post(f"{KEYS}add/", form)

        self.assertContains(answer, "That is over already")
        self.assertFalse(ApiKey.objects.exists())

    def test_it_makes_no_open_key_by_mistake(self) -> None:
        """Chats were chosen and the limit forgotten: such a key would reach all."""
        form = {"name": "report", "scopes": ["send"], "chats": [self.chat.pk]}

        self.owner.post(f"{KEYS}add/", form)

        self.assertFalse(ApiKey.objects.exists())

    def test_it_revokes(self) -> None:
        key, text = keys.create("report", scopes=["send"])

        self.act(self.owner, KEYS, "revoke", key)

        self.assertIsNone(keys.find(text))
        self.assertContains(self.owner.get(KEYS), "revoked")


class DashboardTest(DeskCase):
    def cards(self, client: Client) -> dict[str, tuple[str, str]]:
        page = client.get("/admin/")
        return {card.title: (card.value, card.note) for card in page.context["cards"]}

    def test_it_counts_what_matters(self) -> None:
        session = Session.objects.create(chat=self.chat, key=self.chat.chat_key)
        turn = MemoryTurn.objects.create(session=session, kind=TurnKind.NOTICE, role=Role.SYSTEM)
        ModelCall.objects.create(
            turn=turn, model="small", tokens_in=1_000, tokens_out=234, outcome="stop"
        )
        long_ago = timezone.now() - timedelta(days=2)
        ModelCall.objects.create(
            turn=turn, model="small", tokens_in=9, outcome="stop", created_at=long_ago
        )
        for state in (DeliveryState.FAILED, DeliveryState.UNKNOWN, DeliveryState.SENT):
            Delivery.objects.create(address=self.chat.chat_key, parts=[], state=state)
        Heartbeat.objects.create(name="ticker", at=timezone.now() - timedelta(minutes=5))

        cards = self.cards(self.owner)
        page = self.owner.get("/admin/")

        self.assertEqual(cards["Chats to let in"], ("1", "0 are in"))
        self.assertEqual(cards["Not delivered"], ("2", "1 failed, 1 unknown"))
        self.assertEqual(cards["Messages waiting"], ("0", "0 are being answered"))
        self.assertEqual(cards["Tokens today"], ("1,234", "1 requests"))
        self.assertEqual(page.context["usage"]["rows"], [["small", 1, 0, "1,000", "234", "—"]])
        self.assertContains(page, "silent")

    def test_it_shows_old_sessions_while_they_wait(self) -> None:
        """Where nothing was ever moved over, nothing speaks of it."""
        title, menu = "Old sessions to decide", "Moving over"
        self.assertNotIn(title, self.cards(self.owner))
        self.assertNotContains(self.owner.get("/admin/"), menu)
        record = MigrationLog.objects.create(
            kind="session_keys", old_key="milky:1", recommendation="rename"
        )

        self.assertEqual(self.cards(self.owner)[title], ("1", "0 decided, to be applied"))
        record.approval = Approval.APPROVED
        record.save()
        self.assertEqual(self.cards(self.owner)[title], ("0", "1 decided, to be applied"))
        record.result = "renamed"
        record.save()
        self.assertNotIn(title, self.cards(self.owner))
        self.assertContains(self.owner.get("/admin/"), menu)

    def test_it_shows_each_person_what_he_may_see(self) -> None:
        self.assertEqual(self.cards(self.clerk), {})

        self.allow("view_chat")

        self.assertEqual(list(self.cards(self.clerk)), ["Chats to let in"])
        self.assertNotIn("heartbeats", self.clerk.get("/admin/").context)
        links = self.clerk.get("/admin/").content.decode()
        self.assertIn(f'href="{CHATS}"', links)
        self.assertNotIn(f'href="{KEYS}"', links)
