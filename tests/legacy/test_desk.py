"""The approval desk: what it shows, what its buttons do, and to whom."""

from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from nahida import tasks
from nahida.legacy.inspect import inspect
from nahida.ops.models import Operation
from sessions_app.models import MigrationLog, Session
from tests.legacy.folder import FolderCase

LIST = "/admin/sessions_app/migrationlog/"
HOSTILE = "<script>alert(1)</script>"


class DeskCase(FolderCase):
    """An old database with a clean session, a mixed one and one that says nothing, inspected."""

    def setUp(self) -> None:
        super().setUp()
        with self.old() as old:
            for key in ("milky:1", "milky:2"):
                old.talk(old.session(key), f"milky:private:{key[6:]}", times=2)
            old.job("milky:1")
            mixed = old.session("milky:10001")
            old.turn(mixed, HOSTILE, chat="milky:private:10001")
            self.unnamed = old.answer(mixed)
            self.grouped = old.turn(mixed, "in the group", chat="milky:group:10001")
            self.loose = old.turn(mixed, "from nowhere")
            old.session("milky:silent")
        self.bring()
        inspect(who="alice")
        self.owner = Client()
        self.owner.force_login(User.objects.create_superuser("owner"))
        self.clerk_user = User.objects.create_user("clerk", is_staff=True)
        self.clerk = Client()
        self.clerk.force_login(self.clerk_user)

    def record(self, key: str) -> MigrationLog:
        return MigrationLog.objects.get(old_key=key)

    def page(self, key: str) -> str:
        return f"{LIST}{self.record(key).pk}/change/"

    def act(self, action: str, *keys: str, client: Client | None = None, **fields: str) -> Any:
        chosen = [self.record(key).pk for key in keys]
        fields = {"action": action, **fields}
        data = {**fields, "_selected_action": chosen}
        return (client or self.owner).post(LIST, data, follow=True)

    def allow(self, *codenames: str) -> None:
        self.clerk_user.user_permissions.add(*Permission.objects.filter(codename__in=codenames))

    def work(self) -> Operation:
        operation = Operation.objects.latest("pk")
        while operation.state not in ("done", "failed"):
            tasks.run_operation(operation.pk)
            operation.refresh_from_db()
        return operation


class ShowTests(DeskCase):
    def test_it_lists_the_proposals_with_their_counts(self) -> None:
        page = self.owner.get(LIST).content.decode()

        for shown in ("4 records", "milky:private:1", "milky:group:10001: 1 turn", "1 job"):
            self.assertIn(shown, page)

    def test_it_narrows_the_list(self) -> None:
        for query, here, not_here in (
            ("recommendation=split", "milky:10001", "milky:silent"),
            ("confidence=high", "milky:1<", "milky:10001<"),
            ("channel=milky", "milky:1<", "nothing"),
            ("q=silent", "milky:silent", "milky:10001<"),
            ("result=open", "milky:1<", "nothing"),
        ):
            with self.subTest(query):
                page = self.owner.get(f"{LIST}?{query}").content.decode()
                rows = page.partition("<tbody")[2]
                self.assertIn(here, rows)
                self.assertNotIn(not_here, rows)

    def test_it_shows_why_with_some_of_the_turns(self) -> None:
        page = self.owner.get(self.page("milky:10001")).content.decode()

        for shown in ("milky:private:10001", "first of its chat", "in the group", "&lt;script&gt;"):
            self.assertIn(shown, page)
        self.assertNotIn(HOSTILE, page)

    def test_it_shows_what_becomes_of_jobs(self) -> None:
        self.assertIn(
            "goes on in milky:private:1", self.owner.get(self.page("milky:1")).content.decode()
        )


class DecideTests(DeskCase):
    def test_it_writes_each_decision_with_its_person(self) -> None:
        self.act("approve", "milky:1", "milky:2")
        self.act("reject", "milky:2")
        self.act("keep_legacy", "milky:silent")

        decided = {key: self.record(key).approval for key in ("milky:1", "milky:2", "milky:silent")}
        self.assertEqual(
            decided,
            {"milky:1": "approved", "milky:2": "rejected", "milky:silent": "force_keep_legacy"},
        )
        self.assertEqual(self.record("milky:1").history[-1]["who"], "owner")
        self.assertIn("owner", self.owner.get(self.page("milky:1")).content.decode())

    def test_it_can_be_decided_where_it_is_read(self) -> None:
        button = '<button class="desk-button" name="action" value="approve">'
        self.assertIn(button, self.owner.get(self.page("milky:1")).content.decode())
        self.allow("view_migrationlog")

        self.assertNotIn(button, self.clerk.get(self.page("milky:1")).content.decode())

    def rename(self, key: str, new_key: str, client: Client | None = None) -> Any:
        url = f"{LIST}{self.record(key).pk}/force-rename/"
        data = {"new_key": new_key, "_form_submitted": "on"}
        return (client or self.owner).post(url, data)

    def test_it_renames_to_a_key_that_a_person_knows(self) -> None:
        answer = self.rename("milky:silent", "milky:silent")
        self.assertIn("milky:private:silent", answer.content.decode())
        self.assertEqual(self.record("milky:silent").approval, "pending")

        self.rename("milky:silent", "milky:group:silent")

        record = self.record("milky:silent")
        self.assertEqual((record.approval, record.new_key), ("force_rename", "milky:group:silent"))

    def divide(self, **fields: str) -> Any:
        url = reverse("admin:legacy_divide", args=[self.record("milky:10001").pk])
        return self.owner.post(url, fields, follow=True)

    def test_it_divides_by_hand_and_leaves_alone_what_names_no_chat(self) -> None:
        self.divide(decide="yes")

        targets = {
            one["chat_address"]: one["turn_ids"] for one in self.record("milky:10001").targets
        }
        self.assertEqual(targets["milky:group:10001"], [self.grouped])
        self.assertNotIn(self.loose, [turn for ids in targets.values() for turn in ids])

    def test_it_moves_a_turn_where_a_person_says(self) -> None:
        self.divide(**{f"turn-{self.loose}": "milky:group:10001", "go": "1"})
        page = self.divide(decide="yes")

        targets = {
            one["chat_address"]: one["turn_ids"] for one in self.record("milky:10001").targets
        }
        self.assertEqual(targets["milky:group:10001"], [self.grouped, self.loose])
        self.assertIn("it is divided when you apply it", page.content.decode())

    def test_it_lets_no_turn_go_where_its_envelope_contradicts(self) -> None:
        page = self.divide(**{f"turn-{self.grouped}": "milky:private:10001", "decide": "yes"})

        self.assertIn("cannot go to milky:private:10001", page.content.decode())
        self.assertEqual(self.record("milky:10001").approval, "pending")

    def test_it_takes_another_chat_only_with_its_type(self) -> None:
        self.assertIn("milky:private:7", self.divide(chat="milky:7").content.decode())

        page = self.divide(chat="milky:group:7")

        self.assertIn('<option value="milky:group:7"', page.content.decode())


class ApplyTests(DeskCase):
    def test_it_asks_once_with_what_will_happen(self) -> None:
        self.act("approve", "milky:1")

        page = self.act("apply", "milky:1", "milky:2").content.decode()

        for shown in ("Yes, 1 record", "Let these chats in", "goes on in milky:private:1"):
            self.assertIn(shown, page)
        self.assertFalse(Operation.objects.exists())

    def test_it_says_of_each_record_what_becomes_of_it(self) -> None:
        for action, key, expected in (
            ("approve", "milky:1", "all of it to milky:private:1"),
            ("reject", "milky:2", "nothing changes"),
            ("approve", "milky:10001", "1 turn to milky:group:10001"),
            ("approve", "milky:silent", "stays an old session"),
        ):
            with self.subTest(key):
                self.act(action, key)

                self.assertIn(expected, self.act("apply", key).content.decode())

    def test_it_applies_and_shows_how_far_it_is(self) -> None:
        self.act("approve", "milky:1", "milky:2", "milky:10001")

        page = self.act("apply", "milky:1", "milky:2", "milky:10001", confirmed="yes", allows="on")
        self.assertIn("0 of 3", page.content.decode())
        work = self.work()

        page = self.owner.get(reverse("admin:legacy_work", args=[work.pk])).content.decode()
        self.assertIn("3 of 3", page)
        self.assertIn("2 renamed", page)
        session = Session.objects.get(key="milky:private:1")
        self.assertEqual(session.chat.access, "allowed")  # type: ignore[union-attr]

    def test_it_lets_nobody_in_when_told_so(self) -> None:
        self.act("approve", "milky:1")
        self.act("apply", "milky:1", confirmed="yes")
        self.work()

        session = Session.objects.get(key="milky:private:1")
        self.assertEqual(session.chat.access, "pending")  # type: ignore[union-attr]

    def test_it_takes_back_what_was_applied(self) -> None:
        self.act("approve", "milky:1")
        self.act("apply", "milky:1", confirmed="yes")
        self.work()

        self.assertIn("Take these back?", self.act("revert", "milky:1").content.decode())
        self.act("revert", "milky:1", confirmed="yes")
        self.work()

        self.assertEqual(self.record("milky:1").result, "reverted")
        self.assertTrue(Session.objects.filter(key="milky:1").exists())

    def test_it_says_when_there_is_nothing_to_do(self) -> None:
        self.assertIn("approve something first", self.act("apply", "milky:1").content.decode())
        self.assertIn("nothing to take back", self.act("revert", "milky:1").content.decode())


class RightsTests(DeskCase):
    def test_it_shows_nothing_without_the_right_to_look(self) -> None:
        self.assertEqual(self.clerk.get(LIST).status_code, 403)

    def test_it_lets_who_only_looks_decide_nothing(self) -> None:
        self.allow("view_migrationlog")

        self.act("approve", "milky:1", client=self.clerk)
        divide = reverse("admin:legacy_divide", args=[self.record("milky:10001").pk])

        self.assertEqual(self.clerk.get(LIST).status_code, 200)
        self.assertEqual(self.clerk.post(divide, {"decide": "yes"}).status_code, 403)
        self.assertEqual(self.record("milky:1").approval, "pending")

    def test_it_lets_who_decides_apply_nothing(self) -> None:
        self.allow("view_migrationlog", "decide_migration")

        self.act("approve", "milky:1", client=self.clerk)
        self.act("apply", "milky:1", client=self.clerk, confirmed="yes")

        self.assertEqual(self.record("milky:1").approval, "approved")
        self.assertFalse(Operation.objects.exists())

    def test_it_lets_who_applies_decide_nothing(self) -> None:
        self.allow("view_migrationlog", "apply_migration")
        self.act("approve", "milky:1")

        self.act("reject", "milky:1", client=self.clerk)
        self.act("apply", "milky:1", client=self.clerk, confirmed="yes")

        self.assertEqual(self.record("milky:1").approval, "approved")
        self.assertEqual(self.work().created_by, "clerk")
