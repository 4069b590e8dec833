"""The approval desk in headless Chromium: a person decides, applies and takes back."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from nahida import tasks
from nahida.legacy.inspect import inspect
from nahida.ops.models import Operation
from sessions_app.models import MigrationLog, Session
from tests.legacy.folder import Folder
from tests.web.browser import BrowserCase

LIST = "/admin/sessions_app/migrationlog/"


@pytest.mark.browser
class DeskTest(Folder, BrowserCase):
    def setUp(self) -> None:
        super().setUp()
        with self.old() as old:
            for number in ("20011", "20012"):
                key = old.session(f"milky:{number}")
                old.turn(key, "Good morning!", chat=f"milky:group:{number}")
                old.answer(key, "Good morning. How may I help?")
            old.job("milky:20011", job_id="morning")
            mixed = old.session("milky:10001")
            old.turn(mixed, "Only between us: when is the party?", chat="milky:private:10001")
            old.answer(mixed, "On Saturday at eight.")
            old.turn(mixed, "Who brings the cake?", chat="milky:group:10001")
            self.loose = old.turn(mixed, "I do!")
            old.answer(mixed, "Wonderful, then it is settled.")
            old.session("milky:30001")
        self.bring()
        inspect(who="alice")
        User.objects.create_superuser("owner", password="a long pass phrase")
        self.enter(self.page)

    def enter(self, page: Page) -> None:
        page.goto(f"{self.url}{LIST}")
        page.locator("[name=username]").fill("owner")
        page.locator("[name=password]").fill("a long pass phrase")
        page.locator("[name=password]").press("Enter")
        page.wait_for_url(f"**{LIST}")

    def record(self, key: str) -> MigrationLog:
        return MigrationLog.objects.get(old_key=key)

    def show(self, key: str) -> None:
        self.page.goto(f"{self.url}{LIST}{self.record(key).pk}/change/")

    def choose(self, action: str, *keys: str) -> None:
        """Tick these records in the list, and run an action on them."""
        self.page.goto(f"{self.url}{LIST}")
        for key in keys:
            self.page.locator(
                f"input[name=_selected_action][value='{self.record(key).pk}']"
            ).check()
        self.page.locator("select[name=action]").select_option(action)
        self.page.get_by_role("button", name="Run").click()

    def work(self) -> None:
        """Do what a worker does, to the end."""
        tasks.run_operation(Operation.objects.latest("pk").pk)

    def test_it_approves_two_and_applies_them_with_progress(self) -> None:
        """The page of the work says the same after a reload, and ends by itself at n of n."""
        self.choose("approve", "milky:20011", "milky:20012")
        expect(self.page.get_by_text("2 records decided.")).to_be_visible()
        self.choose("apply", "milky:20011", "milky:20012", "milky:30001")
        expect(self.page.get_by_text("job morning goes on in milky:group:20011")).to_be_visible()
        self.page.get_by_role("button", name="Yes, 2 records").click()
        expect(self.page.get_by_text("Apply: 0 of 2")).to_be_visible()
        self.page.reload()
        expect(self.page.get_by_text("Apply: 0 of 2")).to_be_visible()

        self.work()

        expect(self.page.get_by_text("Apply: 2 of 2")).to_be_visible()
        expect(self.page.get_by_text("2 renamed")).to_be_visible()
        self.assertTrue(Session.objects.filter(key="milky:group:20011").exists())
        self.assertEqual(self.problems, [])

    def test_it_says_in_the_dialog_how_a_key_is_written(self) -> None:
        """A key without a type is refused where it was typed, and can be mended there."""
        self.show("milky:30001")
        self.page.get_by_role("link", name="Rename to another key").click()
        field = self.page.get_by_label("New key")
        field.fill("milky:30001")
        self.page.get_by_role("button", name="Decide").click()
        expect(self.page.get_by_text("write milky:private:30001 or")).to_be_visible()
        expect(field).to_have_value("milky:30001")

        field.fill("milky:group:30001")
        self.page.get_by_role("button", name="Decide").click()

        expect(self.page.get_by_text("Decided: it is renamed when you apply it.")).to_be_visible()
        record = self.record("milky:30001")
        self.assertEqual((record.approval, record.new_key), ("force_rename", "milky:group:30001"))
        self.assertEqual(self.problems, [])

    def test_it_divides_by_hand(self) -> None:
        self.show("milky:10001")
        self.page.get_by_role("link", name="Divide by hand").click()
        self.page.locator(f"select[name=turn-{self.loose}]").select_option("milky:group:10001")

        self.page.get_by_role("button", name="Decide this division").click()

        expect(self.page.get_by_text("Decided: it is divided when you apply it.")).to_be_visible()
        targets = self.record("milky:10001").targets
        moved = {target["chat_address"]: target["turn_ids"] for target in targets}
        self.assertIn(self.loose, moved["milky:group:10001"])

    def test_it_takes_back_what_was_applied(self) -> None:
        self.choose("approve", "milky:20012")
        self.choose("apply", "milky:20012")
        self.page.get_by_role("button", name="Yes, 1 record").click()
        self.work()
        expect(self.page.get_by_text("Apply: 1 of 1")).to_be_visible()

        self.choose("revert", "milky:20012")
        self.page.get_by_role("button", name="Yes, 1 record").click()
        self.work()

        expect(self.page.get_by_text("Revert: 1 of 1")).to_be_visible()
        self.assertTrue(Session.objects.filter(key="milky:20012").exists())
        self.assertEqual(self.problems, [])
