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
