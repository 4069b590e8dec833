"""What becomes of an answer on QQ: in which parts it arrives, what it quotes, and what a failure leaves behind."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from channels_app import media, outbox
from channels_app.addresses import ChatAddress
from channels_app.channels import get_channel
from channels_app.messages import Attachment
from channels_app.models import Delivery, DeliveryState
from nahida.agent import delivery
from sessions_app import lanes
from tests.fakes.milky import faults
from tests.fakes.milky.end import Call
from tests.fakes.pictures import PNG
from tests.milky.site import ALICE, GROUP, MilkySite
from tests.milky_types.official import official

FAILED, PENDING, SENT = DeliveryState.FAILED, DeliveryState.PENDING, DeliveryState.SENT
UNKNOWN = DeliveryState.UNKNOWN
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "
SENDS = ("send_private_message", "send_group_message", "upload_private_file", "upload_group_file")


class SendingTests(MilkySite):
    def setUp(self) -> None:
        super().setUp()
        self.world.befriend(10001)
        self.world.found(10001)

    def send(
        self, to: ChatAddress, text: str = "hi", *files: Attachment, reply_to: str = ""
    ) -> Delivery:
        """Post a delivery and send what may go out at once."""
        with transaction.atomic():
            lane = lanes.lock(to)
            posted = outbox.post(lane.address, text, files=files, reply_to=reply_to)
        assert posted is not None
        delivery.deliver(posted.pk)
        posted.refresh_from_db()
        return posted

    def outcome(self, to: ChatAddress, **details: str) -> tuple[str, str]:
        sent = self.send(to, **details)
        return sent.state, sent.error

    def requests(self) -> list[Call]:
        return [call for call in self.end.calls if call.api in SENDS]

    def test_it_writes_to_a_person_and_to_a_group_of_one_number(self):
        self.send(ALICE, "for alice")
        self.send(GROUP, "for all")

        self.assertEqual(
            self.world.everywhere(),
            {("friend", 10001): ["for alice"], ("group", 10001): ["for all"]},
        )

    def test_it_keeps_the_number_of_what_it_sent(self):
        sent = self.send(GROUP)

        (message,) = self.world.sent("group", 10001)
        self.assertEqual(sent.message_ids, [str(message["message_seq"])])

    def test_it_sends_a_long_answer_in_numbered_parts(self):
        self.configure(qq=self.config(text_limit=200))

        self.send(ALICE, "word " * 100)

        texts = self.world.seen("friend", 10001)
        self.assertEqual([text[:6] for text in texts], ["(1/3) ", "(2/3) ", "(3/3) "])
        self.assertEqual("".join(text[6:] for text in texts).count("word"), 100)

    def test_it_leaves_a_pause_between_two_parts(self):
        self.configure(qq=self.config(text_limit=200, pace_s=30))

        sent = self.send(ALICE, "word " * 100)

        self.assertEqual(len(self.world.seen("friend", 10001)), 1)
        self.assertGreater(sent.next_attempt_at, timezone.now() + timedelta(seconds=20))

    def test_it_quotes_the_question(self):
        asked = self.world.group_says(10001, 20002, "why?")["data"]["message_seq"]

        self.send(GROUP, "because", reply_to=str(asked))

        (answer,) = self.world.sent("group", 10001)
        self.assertEqual(answer["segments"][0]["data"]["message_seq"], asked)

    def test_it_answers_without_the_quote_when_the_question_was_recalled(self):
        self.assertEqual(self.outcome(GROUP, reply_to="99"), (SENT, ""))

        self.assertEqual(self.world.seen("group", 10001), ["hi"])

    def test_it_sends_files_as_what_they_are(self):
        files = (
            Attachment("image", file=media.keep(PNG), name="a.png"),
            Attachment("voice", file=media.keep(WAV), name="a.wav"),
            Attachment("file", file=media.keep(b"text"), name="笔记.txt"),
        )

        for to, scene in ((ALICE, "friend"), (GROUP, "group")):
            self.send(to, "look", *files)

            with self.subTest(to):
                kinds = [m["segments"][0]["type"] for m in self.world.sent(scene, 10001)]
                self.assertEqual(kinds, ["text", "image", "record", "file"])
                name = self.world.sent(scene, 10001)[-1]["segments"][0]["data"]["file_name"]
                self.assertEqual(name, "笔记.txt")

    def test_it_asks_only_what_the_protocol_takes(self):
        self.send(ALICE, "look", Attachment("image", file=media.keep(PNG), name="a.png"))
        self.send(GROUP, "look", Attachment("file", file=media.keep(b"text"), name="a.txt"))

        for call in self.requests():
            self.assertEqual(official().objection("request", call.params, name=call.api), "")
            self.assertEqual(call.authorization, "Bearer example-token")
        self.assertEqual(len(self.requests()), 4)

    def test_it_tells_a_stranger_who_takes_no_answer(self):
        """Some ends write to no stranger: that is seen, and not tried again."""
        state, why = self.outcome(ChatAddress("qq", "private", "40004"))

        self.assertEqual(state, FAILED)
        self.assertIn("Friend not found", why)
        self.assertEqual(len(self.requests()), 1)

    def test_it_sends_nothing_to_what_has_no_chat_type(self):
        broken = Delivery.objects.create(address="qq:unknown:10001", parts=[{"text": "hi"}])

        delivery.deliver(broken.pk)

        broken.refresh_from_db()
        self.assertEqual(broken.state, FAILED)
        self.assertIn("no chat of QQ", broken.error)
        self.assertEqual(self.end.calls, [])

    def test_it_sends_as_if_nothing_had_been_after_a_failure(self):
        """A malformed one, a refused one, one that was cut off."""
        self.outcome(ChatAddress("qq", "group", "no-number"))
        self.end.fail("send_private_message", faults.refused(-400))
        self.end.fail("send_private_message", faults.dropped(after_effect=False))
        self.outcome(ALICE)
        self.outcome(ALICE)

        self.assertEqual(self.outcome(ALICE), (SENT, ""))

        self.assertEqual(self.world.everywhere(), {("friend", 10001): ["hi"]})

    def test_it_takes_an_ok_with_a_code_for_a_failure(self):
        self.end.fail("send_private_message", faults.ok_with(120))

        self.assertEqual(self.outcome(ALICE)[0], FAILED)

    def test_it_never_sends_twice_what_may_have_arrived(self):
        for fault in (
            faults.dropped(after_effect=True),
            faults.garbled(),
            faults.refused(-500),
            faults.http(502),
        ):
            self.end.fail("send_private_message", fault)
            self.assertEqual(self.outcome(ALICE)[0], UNKNOWN)

        self.assertEqual(len(self.requests()), 4)

    def test_it_lets_wait_what_cannot_go_out_now(self):
        for fault, words in (
            (faults.refused(-403), "not logged in"),
            (faults.http(401), "does not know the token"),
        ):
            with self.subTest(words):
                self.end.fail("send_private_message", fault)
                sent = self.send(ALICE)

                self.assertEqual(sent.state, PENDING)
                self.assertIn(words, sent.error)
                self.assertGreater(sent.next_attempt_at, timezone.now() + timedelta(seconds=20))
                sent.delete()

    def test_it_waits_for_an_end_that_is_down(self):
        self.end.go_down()
        sent = self.send(ALICE)
        self.assertEqual(sent.state, PENDING)

        self.end.come_up()
        Delivery.objects.update(next_attempt_at=timezone.now())
        delivery.deliver(sent.pk)

        self.assertEqual(self.world.seen("friend", 10001), ["hi"])


class SeenTests(MilkySite):
    def show(self, to: ChatAddress, message_id: str = "1") -> float | None:
        return get_channel("qq").show_working(to, message_id)

    def test_it_shows_a_group_that_a_message_was_seen(self):
        self.configure(qq=self.config(seen_reaction="124"))
        self.world.group_says(10001, 20002, "hi")
        self.world.friend_says(10001, "hi")

        self.assertIsNone(self.show(GROUP))
        self.assertIsNone(self.show(ALICE))

        self.assertEqual(self.world.reactions[10001, 1], {"124"})
        (asked,) = self.end.asked("send_group_message_reaction")
        objection = official().objection("request", asked, name="send_group_message_reaction")
        self.assertEqual(objection, "")

    def test_it_shows_nothing_unless_that_is_switched_on(self):
        self.world.group_says(10001, 20002, "hi")

        self.assertIsNone(self.show(GROUP))

        self.assertEqual(self.end.calls, [])

    def test_it_never_fails_for_a_sign(self):
        self.configure(qq=self.config(seen_reaction="124"))
        self.end.fail("send_group_message_reaction", faults.refused(-500))

        self.assertIsNone(self.show(GROUP))
        self.assertIsNone(self.show(ChatAddress("qq", "group", "no-number")))
