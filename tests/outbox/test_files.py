"""Files go out behind their text, one request each, and a file that is gone is said to be."""

from channels_app import media
from channels_app.channels import SendError
from channels_app.messages import Attachment
from channels_app.models import Delivery, DeliveryState
from nahida.agent import delivery
from tests.base import ALICE, BOB
from tests.outbox.stage import TIMED_OUT, OutboxTestCase


def kept(content: bytes, *, kind: str = "file", name: str = "") -> Attachment:
    return Attachment(kind, file=media.keep(content), name=name)


class FileTests(OutboxTestCase):
    def files(self) -> list[tuple[str, str, bytes]]:
        return self.platform().sent_files

    def test_it_sends_the_text_and_then_each_file(self):
        files = [kept(b"png", kind="image", name="a.png"), kept(b"pdf", name="b.pdf")]
        one = self.post("look", files=files, reply_to="77")

        self.deliver(one)

        self.assertEqual(self.sent(ALICE), ["look", "", ""])
        self.assertEqual(self.files(), [("image", "a.png", b"png"), ("file", "b.pdf", b"pdf")])
        self.assertEqual([message.reply_to for message in self.messages(ALICE)], ["77", "", ""])
        self.assertEqual(self.state(one), DeliveryState.SENT)
        self.assertEqual(self.messages(BOB), [])

    def test_it_sends_a_file_without_a_text(self):
        one = self.post("", files=[kept(b"ogg", kind="voice")])

        self.deliver(one)

        self.assertEqual(self.files(), [("voice", "voice", b"ogg")])

    def test_it_does_not_send_again_a_file_that_may_have_arrived(self):
        one = self.post("look", files=[kept(b"pdf"), kept(b"more")])
        self.plan(lambda message: None, TIMED_OUT)

        self.deliver(one)

        self.assertEqual((self.state(one), one.next_part), (DeliveryState.UNKNOWN, 1))

    def test_it_goes_on_with_the_file_that_was_not_sent(self):
        one = self.post("look", files=[kept(b"one"), kept(b"two")])
        self.plan(lambda message: None, lambda message: None, SendError("busy", retry_after=1))
        self.deliver(one)

        self.make_due(one)
        self.deliver(one)

        self.assertEqual([content for _, _, content in self.files()], [b"one", b"two"])
        self.assertEqual(self.state(one), DeliveryState.SENT)

    def test_it_fails_with_words_when_a_file_is_no_longer_kept(self):
        """The owner may ask for the rest of an old delivery; its text has arrived, its file is gone."""
        file = kept(b"gone")
        one = self.post("look", files=[file])
        media.remove(file.file)

        self.deliver(one)

        self.assertEqual((self.state(one), one.next_part), (DeliveryState.FAILED, 1))
        self.assertIn("no longer kept", one.error)

    def test_it_sends_the_rest_of_a_delivery_with_its_files(self):
        one = self.post("look", files=[kept(b"pdf", name="b.pdf")])
        self.plan(lambda message: None, TIMED_OUT)
        self.deliver(one)

        rest = delivery.send_rest(Delivery.objects.get(pk=one.pk))
        self.deliver(rest)

        self.assertEqual(self.files(), [("file", "b.pdf", b"pdf")])
