"""What becomes of an answer that Telegram does not simply take."""

from django.db import transaction

from channels_app import media, outbox
from channels_app.messages import Attachment
from channels_app.models import Delivery, DeliveryState
from nahida.agent.turns import NOTHING_SAID
from sessions_app import lanes
from sessions_app.models import Chat
from tests.fakes import pictures
from tests.fakes.telegram import ApiError, bad_request, flood, forbidden
from tests.telegram.site import LIN, TelegramSite
from tests.telegram.stage import MO

FILES = (
    ("image", "a.png", pictures.PNG, "sendPhoto"),
    ("file", "a.pdf", b"%PDF-1.7", "sendDocument"),
    ("voice", "a.ogg", b"OggS" + b"0" * 40, "sendVoice"),
    ("voice", "a.mp3", b"ID3" + b"0" * 40, "sendDocument"),
)


class SendingTests(TelegramSite):
    def answer(self, text: str = "an answer") -> Delivery:
        """Let Lin ask and be answered."""
        self.model.enqueue(text)
        self.lin.says("hi")
        self.hear()
        self.work()
        return Delivery.objects.order_by("-pk").first()  # type: ignore[return-value]

    def later(self, one: Delivery) -> None:
        """Let the pause pass that Telegram asked for."""
        Delivery.objects.filter(pk=one.pk).update(next_attempt_at=one.created_at)
        self.work()

    def test_it_waits_as_long_as_it_is_told_and_other_chats_go_on(self):
        mo = self.bot.private(MO)
        self.bot.fail("sendMessage", flood(900), chat_id=5550001)

        one = self.answer("to Lin")
        self.model.enqueue("to Mo")
        mo.says("hi")
        self.hear()
        self.work()

        self.assertEqual((one.state, self.lin.texts), (DeliveryState.PENDING, []))
        self.assertGreater((one.next_attempt_at - one.created_at).total_seconds(), 850)
        self.assertEqual(mo.texts, ["to Mo"])
        self.later(one)
        self.assertEqual(self.lin.texts, ["to Lin"])

    def test_it_sends_a_chunk_as_plain_text_when_its_markup_is_refused(self):
        self.bot.fail("sendMessage", bad_request("can't parse entities: byte offset 7"))

        self.answer("**bold**")

        self.assertEqual(self.lin.texts, ["bold"])
        self.assertNotIn("entities", self.lin.answers[0])

    def test_it_gives_up_a_chat_that_blocked_it_until_it_writes_again(self):
        self.bot.fail("sendMessage", forbidden("bot was blocked by the user"))

        one = self.answer()
        chat = Chat.objects.get(chat_key=str(LIN))

        self.assertEqual(one.state, DeliveryState.FAILED)
        self.assertIn("blocked", chat.unreachable_reason)
        self.answer("welcome back")
        self.assertEqual(self.lin.texts, ["welcome back"])

    def test_it_hears_that_it_was_blocked_and_unblocked(self):
        self.answer()
        self.lin.sets_bot("kicked")
        self.hear()
        self.assertIsNotNone(Chat.objects.get(chat_key=str(LIN)).unreachable_since)

        self.lin.sets_bot("member")
        self.hear()

        self.assertIsNone(Chat.objects.get(chat_key=str(LIN)).unreachable_since)

    def test_it_does_not_know_what_became_of_a_request_that_was_cut_off(self):
        for after, seen in ((False, []), (True, ["an answer"])):
            with self.subTest(after=after):
                self.bot.hang_up("sendMessage", after=after)

                one = self.answer()

                self.assertEqual(one.state, DeliveryState.UNKNOWN)
                self.assertEqual(self.lin.texts, seen)
                self.assertNotIn(self.bot.token, one.error)

    def test_it_repeats_nothing_that_a_broken_server_may_have_taken(self):
        self.bot.fail("sendMessage", ApiError(502, "Bad Gateway"), after=True)

        one = self.answer()
        self.work()

        self.assertEqual((one.state, self.lin.texts), (DeliveryState.UNKNOWN, ["an answer"]))

    def test_it_waits_while_nobody_answers_the_phone(self):
        self.model.enqueue("patience")
        self.lin.says("hi")
        self.hear()
        self.server.go_down()
        self.run_lanes()
        self.send_deliveries()
        self.server.come_up()

        self.later(Delivery.objects.get())

        self.assertEqual(self.lin.texts, ["patience"])

    def test_it_sends_a_long_answer_in_order(self):
        numbers = [f"{number:04}" for number in range(3000)]

        self.answer(" ".join(numbers))

        self.assertGreater(len(self.lin.texts), 3)
        self.assertEqual(" ".join(self.lin.texts).split(), numbers)

    def test_it_says_so_when_there_is_nothing_to_say(self):
        self.answer("  \n\u200b")

        self.assertEqual(self.lin.texts, [NOTHING_SAID])

    def test_it_sends_words_with_signs_as_they_are(self):
        words = "KeyError: 'user_name*[` a_b*c <b> &amp; x<y"

        self.answer(words)

        self.assertEqual(self.lin.texts, [words.replace("&amp;", "&")])


class FileTests(TelegramSite):
    def test_it_sends_each_kind_of_file(self):
        for kind, name, content, method in FILES:
            with self.subTest(name):
                self.send(Attachment(kind, file=media.keep(content), name=name))

                call = self.bot.calls[-1]
                self.assertEqual(call.method, method)
                (upload,) = call.uploads.values()
                self.assertEqual((upload.content, upload.name), (content, name))

    def send(self, *files: Attachment) -> None:
        with transaction.atomic():
            outbox.post(lanes.lock(LIN).address, "", files=files)
        self.work()

    def test_it_shows_the_model_the_picture_that_a_person_sent(self):
        self.model.sees_images = True
        self.model.enqueue("a picture")

        self.lin.says(photo=self.bot.add_photo(pictures.PNG), caption="what is this?")
        self.hear()
        self.work()

        (request,) = self.model.requests
        self.assertEqual(len(request.messages[-1].images), 1)
        self.assertEqual(self.lin.texts, ["a picture"])

    def test_it_says_so_when_a_file_is_too_large(self):
        self.model.enqueue("too large for me")
        file = self.bot.add_file(b"%PDF-1.7", size=21 * 1024 * 1024)

        self.lin.says(document={**file.wire(), "file_name": "big.pdf"})
        self.hear()
        self.work()

        self.assertIn("big.pdf", self.model.requests[0].messages[-1].text)
        self.assertEqual(self.lin.texts, ["too large for me"])
