"""A QQ account that is listened to: what is said is answered where it was said, once, and nowhere else."""

from channels_app.models import InboundEvent
from sessions_app.models import Session
from tests.fakes.milky import events, segments
from tests.fakes.milky.end import MilkyEnd
from tests.fakes.milky.events import SELF
from tests.milky.site import ALICE, GROUP, MilkySite


class ListeningTests(MilkySite):
    def test_it_answers_what_a_friend_says(self):
        self.model.enqueue("hello, 小叶")

        self.hear(lambda: self.world.friend_says(10001, "hi"), self.has_heard(1))
        self.work()

        self.assertEqual(self.world.everywhere(), {("friend", 10001): ["hello, 小叶"]})

    def test_it_never_mixes_a_friend_a_group_and_a_stranger_of_one_number(self):
        """All of them are 10001, and write at once; the stranger comes through that very group."""
        self.world.opens_temp = True
        for _ in range(3):
            self.model.enqueue(lambda request: f"heard {request[-1].text[-5:]}")

        def speak() -> None:
            self.world.group_says(10001, 20002, segments.mention(SELF), " alpha")
            self.world.temp_says(10001, "gamma", through=10001)

        self.hear(speak, self.has_heard(2))
        self.work()
        self.assertEqual(
            self.world.everywhere(),
            {("group", 10001): ["heard alpha"], ("temp", 10001): ["heard gamma"]},
        )
        self.hear(lambda: self.world.friend_says(10001, "delta"), self.has_heard(3))
        self.work()

        self.assertEqual(self.world.seen("friend", 10001), ["heard delta"])
        self.assertEqual(self.world.seen("group", 10001), ["heard alpha"])
        self.assertEqual(self.said(GROUP), ["alpha"])
        self.assertEqual(self.said(ALICE), ["gamma", "delta"])

    def test_it_shows_the_model_of_a_chat_nothing_of_another(self):
        for _ in range(2):
            self.model.enqueue(lambda request: f"plum: {'plum' in str(request)}")

        def speak() -> None:
            self.world.friend_says(10001, "my secret is plum")
            self.world.group_says(10001, 20002, segments.mention(SELF), " what is it?")

        self.hear(speak, self.has_heard(2))
        self.work()

        self.assertEqual(self.world.seen("friend", 10001), ["plum: True"])
        self.assertEqual(self.world.seen("group", 10001), ["plum: False"])
        self.assertEqual(Session.objects.filter(chat__channel="qq").count(), 2)

    def test_it_never_answers_itself(self):
        """The end reports our own messages, too."""
        self.model.enqueue("hello")

        self.hear(
            lambda: self.world.friend_says(10001, "hi"),
            self.has_heard(1),
            self.work,
            lambda: self.world.friend_says(10001, "bye"),
            self.has_heard(2),
        )

        self.assertEqual(self.said(ALICE), ["hi", "bye"])
        self.assertEqual(InboundEvent.objects.filter(channel="qq").count(), 3)

    def test_it_stores_a_repeated_event_once(self):
        self.hear(
            lambda: self.end.emit(self.world.friend_says(10001, "hi")),
            lambda: self.world.friend_says(10001, "bye"),
            self.has_heard(2),
        )

        self.assertEqual(self.said(ALICE), ["hi", "bye"])

    def test_it_goes_on_after_what_nobody_can_read(self):
        def speak() -> None:
            self.end.emit_raw(b"event: milky_event\ndata: {\n\n")
            self.end.emit({"event_type": "message_receive", "data": {"segments": 7}})
            self.end.emit(events.unknown_event())
            self.world.friend_says(10001, segments.unknown())

        self.hear(speak, self.has_heard(1))

        self.assertEqual(self.said(ALICE), ["[unsupported: hologram]"])

    def test_it_says_who_it_is(self):
        self.hear(self.has_status("listening"))

        detail = self.state().detail
        self.assertEqual(detail["account"], str(SELF))
        self.assertEqual((detail["mode"], detail["version"]), ("events", "Milky 1.2"))
        self.assertIn(str(SELF), detail["name"])
        self.assertEqual(detail["hints"], [])

    def test_it_warns_of_an_end_that_asks_for_no_token(self):
        self.end.token = ""
        self.configure(qq=self.config())

        self.hear(self.has_status("listening"))

        self.assertIn("asks for no token", self.state().detail["hints"][0])
        self.assertIsNone(self.end.calls[0].authorization)

    def test_it_takes_no_event_of_another_account(self):
        stranger = {**events.friend_message(10001, "hi"), "self_id": 1234567891}

        self.hear(
            lambda: self.end.emit(stranger),
            lambda: self.world.friend_says(10001, "me"),
            self.has_heard(1),
        )

        self.assertEqual(self.said(ALICE), ["me"])

    def test_it_listens_to_no_other_account_than_was_configured(self):
        self.configure(qq=self.config(uin=1234567891))

        self.hear_status("wrong account")

        self.assertIn(f"the account {SELF} is logged in, not 1234567891", self.state().error)
        self.assertEqual(self.end.opened, [])

    def test_it_shows_a_wrong_token_and_does_not_storm(self):
        self.end.token = "another"

        self.hear_status("unauthorized")

        self.assertIn("set the same on both sides", self.state().error)
        self.assertEqual(len(self.end.calls), 1)

    def test_it_shows_a_wrong_path(self):
        self.configure(qq=self.config(base_url=f"http://127.0.0.1:{self.end.port}/other"))

        self.hear_status("misconfigured")

        self.assertIn("check base_url", self.state().error)


class TwoAccountsTests(MilkySite):
    def test_it_keeps_two_accounts_apart(self):
        """The same person talks to both: two chats, two histories, and each answer leaves by its own account."""
        other = self.enterContext(MilkyEnd())
        self.configure(qq=self.config(), second=self.config(other))
        for _ in range(2):
            self.model.enqueue(lambda request: f"heard {request[-1].text[-5:]}")

        self.hear(
            lambda: bool(other.opened),
            lambda: self.world.friend_says(10001, "alpha"),
            lambda: other.world.friend_says(10001, "omega"),
            self.has_heard(2),
        )
        self.work()

        self.assertEqual(self.world.seen("friend", 10001), ["heard alpha"])
        self.assertEqual(other.world.seen("friend", 10001), ["heard omega"])
        self.assertEqual(self.said(ALICE), ["alpha"])
