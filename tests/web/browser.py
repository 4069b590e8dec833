"""Headless Chromium against a running server and worker."""

import os
import shutil
from typing import ClassVar
from unittest import SkipTest

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from tests.web.live import LiveCase

ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
)
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 375, "height": 740}


class BrowserCase(LiveCase):
    """A tab at `self.page`; what it asked for in `self.requests`, what it complained of in `self.problems`."""

    browser: ClassVar[Browser]

    @classmethod
    def setUpClass(cls) -> None:
        chromium = shutil.which("chromium")
        if chromium is None:
            raise SkipTest("chromium is not installed")
        # The driver runs an event loop in this thread; Django would refuse sync ORM calls beside it.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        cls.addClassCleanup(os.environ.pop, "DJANGO_ALLOW_ASYNC_UNSAFE")
        super().setUpClass()
        driver = sync_playwright().start()
        cls.addClassCleanup(driver.stop)
        cls.browser = driver.chromium.launch(executable_path=chromium, args=list(ARGS))
        cls.addClassCleanup(cls.browser.close)

    def setUp(self) -> None:
        super().setUp()
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.page = self.open_tab()

    def open_tab(self, *, viewport: dict[str, int] = DESKTOP) -> Page:
        context = self.browser.new_context(viewport=viewport, locale="en-GB")  # type: ignore[arg-type]
        self.addCleanup(context.close)
        page = context.new_page()
        page.on("request", self._note)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._note_complaint)
        return page

    def _note(self, request: Request) -> None:
        self.requests.append(request.url)

    def _note_complaint(self, line: ConsoleMessage) -> None:
        if line.type == "error":
            self.problems.append(line.text)
