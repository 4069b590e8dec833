"""The chat page in headless Chromium, against a running server and worker."""

import re

import pytest
from django.db import transaction
from playwright.sync_api import Locator, Page, expect

from channels_app.addresses import ChatAddress
from memory_app.models import TurnKind, TurnState
from memory_app.turns import NewTurn, append_turn
from sessions_app import lanes
from tests.web.browser import PHONE, BrowserCase


@pytest.mark.browser
class ChatPageTest(BrowserCase):
    def sign_in(self, page: Page, name: str = "alice") -> None:
        page.goto(f"{self.url}/")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill("a long pass phrase")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("button", name="Send")).to_be_enabled()

    def say(self, page: Page, text: str) -> None:
        page.get_by_placeholder("Write a message").fill(text)
        page.keyboard.press("Enter")

    def answers(self, page: Page) -> Locator:
        return page.locator(".turn.assistant:not(.draft)")

    def test_it_streams_an_answer(self) -> None:
        """Sign in, send, see the answer grow and end; nothing is asked of any other host."""
        self.model.answers = ["**Bold** beginnings, and then a quiet end."]
        self.model.gate.clear()
        self.sign_in(self.page)

        self.say(self.page, "Hello")
        expect(self.page.locator(".turn.user")).to_have_text("Hello")
        expect(self.page.locator(".draft strong")).to_have_text("Bold")
        self.model.gate.set()

        expect(self.answers(self.page)).to_have_text("Bold beginnings, and then a quiet end.")
        expect(self.page.locator(".draft")).to_have_count(0)
        self.assertEqual([url for url in self.requests if not url.startswith(self.url)], [])
        self.assertEqual(self.problems, [])

    def test_it_stops_an_answer(self) -> None:
        self.model.answers = ["one two three four five six"]
        self.model.gate.clear()
        self.sign_in(self.page)
        self.say(self.page, "Count")
        expect(self.page.locator(".draft .text")).to_contain_text("one")

        self.page.get_by_role("button", name="Stop the answer").click()

        expect(self.page.locator(".turn.user.stopped")).to_contain_text("Count")
        expect(self.page.locator(".draft")).to_have_count(0)
        expect(self.answers(self.page)).to_have_text("one two three")

    def test_it_takes_a_running_answer_up_after_a_reload(self) -> None:
        self.model.answers = ["a long answer that takes its time"]
        self.model.gate.clear()
        self.sign_in(self.page)
        self.say(self.page, "Tell me")
        expect(self.page.locator(".draft .text")).to_contain_text("a long")

        self.page.reload()

        expect(self.page.locator(".draft .text")).to_contain_text("a long")
        self.model.gate.set()
        expect(self.answers(self.page)).to_have_text("a long answer that takes its time")

    def test_it_begins_a_new_conversation_and_goes_on_with_an_old_one(self) -> None:
        self.sign_in(self.page)
        self.say(self.page, "About trees")
        expect(self.answers(self.page)).to_have_text("answer 1")

        self.page.get_by_role("button", name="New conversation").click()
        expect(self.page.get_by_role("heading", name="Hello, alice.")).to_be_visible()
        self.say(self.page, "About rivers")
        expect(self.answers(self.page)).to_have_text("answer 2")
        self.page.get_by_role("link", name="About trees").click()
        expect(self.page.locator(".turn.user")).to_have_text("About trees")
        self.say(self.page, "More trees")

        expect(self.answers(self.page)).to_have_text(["answer 1", "answer 3"])
        shown = " ".join(message.text for message in self.model.asked[-1])
        self.assertIn("About trees", shown)
        self.assertNotIn("About rivers", shown)

    def test_it_shows_the_same_in_two_tabs(self) -> None:
        self.sign_in(self.page)
        other = self.page.context.new_page()
        other.goto(f"{self.url}/chat/")

        self.say(self.page, "Hello")

        expect(self.answers(self.page)).to_have_text("answer 1")
        expect(self.answers(other)).to_have_text("answer 1")
        expect(other.locator(".turn.user")).to_have_text("Hello")

    def test_it_keeps_the_text_when_sending_fails(self) -> None:
        """Offline, the text stays in the box; sent again it is one message."""
        self.sign_in(self.page)
        box = self.page.get_by_placeholder("Write a message")

        self.page.context.set_offline(True)
        self.say(self.page, "Hello")
        expect(self.page.get_by_role("alert")).to_contain_text("offline")
        expect(box).to_have_value("Hello")
        self.page.context.set_offline(False)
        self.page.keyboard.press("Enter")

        expect(box).to_have_value("")
        expect(self.page.locator(".turn.user")).to_have_text(["Hello"])
        expect(self.answers(self.page)).to_have_text("answer 1")

    def test_it_sends_one_message_when_only_the_answer_got_lost(self) -> None:
        self.sign_in(self.page)
        lost = []

        def lose(route, request) -> None:
            route.fetch()
            lost.append(request)
            route.abort()

        self.page.route("**/chat/send/", lose, times=1)
        self.say(self.page, "Hello")
        expect(self.page.get_by_role("alert")).to_contain_text("does not answer")
        self.page.get_by_role("button", name="Send").click()

        expect(self.page.get_by_placeholder("Write a message")).to_have_value("")
        expect(self.answers(self.page)).to_have_text("answer 1")
        expect(self.page.locator(".turn.user")).to_have_text(["Hello"])
        self.assertEqual(len(lost), 1)

    def test_it_writes_lines_and_waits_for_the_input_method(self) -> None:
        """Shift+Enter is a new line; an Enter that picks a word sends nothing."""
        self.sign_in(self.page)
        box = self.page.get_by_placeholder("Write a message")
        box.fill("one")
        self.page.keyboard.press("Shift+Enter")
        self.page.keyboard.type("two")
        expect(box).to_have_value("one\ntwo")

        for how in ("isComposing: true", "keyCode: 229"):
            event = f"new KeyboardEvent('keydown', {{key: 'Enter', bubbles: true, {how}}})"
            box.evaluate(f"(box) => box.dispatchEvent({event})")
        expect(box).to_have_value("one\ntwo")
        self.page.keyboard.press("Enter")

        expect(self.page.locator(".turn.user .text")).to_have_text(re.compile(r"one\s+two"))

    def test_it_never_runs_what_is_written(self) -> None:
        """Neither the user's text nor the model's becomes markup, script or a request."""
        evil = (
            "<img src=x onerror=window.bad=1> <script>window.bad=1</script> "
            "[a](javascript:window.bad=1) ![leak](https://evil.example/x.png) `<b>`"
        )
        self.model.answers = [evil]
        self.sign_in(self.page)

        self.say(self.page, evil)
        expect(self.answers(self.page)).to_contain_text("<script>")

        self.assertIsNone(self.page.evaluate("window.bad ?? null"))
        self.assertEqual(self.page.locator(".turn img, .turn script").count(), 0)
        self.assertEqual(self.page.locator(".turn a[href^='javascript']").count(), 0)
        self.assertEqual([url for url in self.requests if not url.startswith(self.url)], [])
        self.assertEqual(self.problems, [])

    def test_it_loads_earlier_messages(self) -> None:
        self.sign_in(self.page)
        self.say(self.page, "the first one")
        expect(self.answers(self.page)).to_be_visible()
        self.fill_session(lines=60)
        self.page.reload()
        expect(self.page.locator(".turn.user").first).to_contain_text("line 21")

        self.page.get_by_role("button", name="Earlier messages").click()

        expect(self.page.locator(".turn.user").first).to_contain_text("the first one")
        expect(self.page.locator(".turn.user").nth(1)).to_contain_text("line 1")
        expect(self.page.get_by_role("button", name="Earlier messages")).not_to_be_visible()

    def fill_session(self, *, lines: int) -> None:
        with transaction.atomic():
            lane = lanes.lock(ChatAddress.web(self.alice.pk))
            for number in range(1, lines + 1):
                line = NewTurn(
                    kind=TurnKind.MESSAGE, state=TurnState.DONE, content=f"line {number}"
                )
                append_turn(lane, line)

    def test_it_fits_a_phone(self) -> None:
        """At 375 px nothing sticks out, and the conversations are one tap away."""
        page = self.open_tab(viewport=PHONE)
        self.model.answers = [
            "| a | b |\n|---|---|\n| " + "wide " * 40 + "| x |\n\n```\n" + "long" * 60 + "\n```"
        ]
        self.sign_in(page)
        self.say(page, "x" * 200)
        expect(self.answers(page)).to_be_visible()

        self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), 375)
        expect(page.get_by_role("button", name="New conversation")).not_to_be_visible()
        page.get_by_role("button", name="Conversations", exact=True).click()
        page.get_by_role("button", name="New conversation").click()

        expect(page.get_by_role("heading", name="Hello, alice.")).to_be_visible()
