"""What is asked of the Bot API to send one part, judged by aiogram's types of its methods."""

from typing import Any

from aiogram import methods
from aiogram.methods.base import TelegramMethod
from aiogram.types import BufferedInputFile
from django.test import SimpleTestCase

from channels_app import media
from channels_app.addresses import ChatAddress
from channels_app.channels import SendError
from channels_app.messages import OutboundMessage, OutboundPart
from channels_app.telegram.markdown import split
from channels_app.telegram.outbound import LARGEST_FILE, LARGEST_PHOTO, Request, request
from tests.fakes import pictures

LIN = ChatAddress("telegram", "private", "5550001")
FORUM = ChatAddress("telegram", "group", "-1001234500001", "17")
NEWS = ChatAddress("telegram", "channel", "-1001234500003")
METHODS: dict[str, type[TelegramMethod[Any]]] = {
    "sendMessage": methods.SendMessage,
    "sendPhoto": methods.SendPhoto,
    "sendVoice": methods.SendVoice,
    "sendDocument": methods.SendDocument,
}


class OutboundCase(SimpleTestCase):
    def ask(self, address: ChatAddress, part: OutboundPart, *, reply_to: str = "") -> Request:
        """Return the request for a part, with nothing in it that Telegram does not know."""
        asked = request(OutboundMessage(address, part, reply_to))
        body = {name: value for name, value in asked.parameters.items() if value is not None}
        if upload := asked.upload:
            body[upload.parameter] = BufferedInputFile(upload.content, upload.name)
        read = METHODS[asked.method](**body)
        self.assertEqual(read.model_extra, {})
        for model in getattr(read, "entities", None) or []:
            self.assertEqual(model.model_extra, {})
        return asked

    def assert_refused(self, address: ChatAddress, *words: str) -> None:
        with self.assertRaises(SendError) as caught:
            request(OutboundMessage(address, OutboundPart("hi")))
        self.assertTrue(caught.exception.permanent)
        for word in (str(address), *words):
            self.assertIn(word, str(caught.exception))


class TextTests(OutboundCase):
    def test_it_sends_text_to_a_person(self):
        asked = self.ask(LIN, OutboundPart("hi"))

        self.assertEqual(asked.parameters["chat_id"], 5550001)
        self.assertEqual(asked.parameters["text"], "hi")
        self.assertEqual(asked.parameters["link_preview_options"], {"is_disabled": True})
        self.assertIsNone(asked.parameters["entities"])
        self.assertIsNone(asked.parameters["message_thread_id"])
        self.assertNotIn("reply_parameters", asked.parameters)

    def test_it_sends_what_is_marked_in_a_text(self):
        text = "# Hi\n\n> **bold** `code` [link](https://a.b)\n\n```py\nx\n```"
        (part,) = split(text)

        asked = self.ask(LIN, part)

        self.assertEqual(asked.parameters["entities"], part.markup)
        self.assertEqual(len(part.markup), 6)

    def test_it_sends_the_same_text_without_markup(self):
        asked = self.ask(LIN, OutboundPart("hi", plain=True, markup=split("**hi**")[0].markup))

        self.assertEqual(asked.parameters["text"], "hi")
        self.assertIsNone(asked.parameters["entities"])

    def test_it_answers_a_message_in_its_topic_even_if_it_is_gone(self):
        asked = self.ask(FORUM, OutboundPart("hi"), reply_to="205")

        self.assertEqual(asked.parameters["chat_id"], -1001234500001)
        self.assertEqual(asked.parameters["message_thread_id"], 17)
        self.assertEqual(
            asked.parameters["reply_parameters"],
            {"message_id": 205, "allow_sending_without_reply": True},
        )

    def test_it_answers_nothing_that_has_no_number(self):
        for reply_to in ("", "abc", "-5", "0", "1.5", "１２"):
            with self.subTest(reply_to):
                asked = self.ask(LIN, OutboundPart("hi"), reply_to=reply_to)

                self.assertNotIn("reply_parameters", asked.parameters)

    def test_it_sends_to_a_channel(self):
        self.assertEqual(self.ask(NEWS, OutboundPart("hi")).parameters["chat_id"], -1001234500003)


class AddressTests(OutboundCase):
    def test_it_refuses_what_is_no_id(self):
        for chat_id in ("lin", "0", "1_000", " 5", "+5", "５", "1" * 20):
            with self.subTest(chat_id):
                self.assert_refused(
                    ChatAddress("telegram", "private", chat_id), "telegram:private:5550001"
                )

    def test_it_sends_nothing_for_a_group_to_the_person_of_the_same_number(self):
        for address in (
            ChatAddress("telegram", "group", "5550001"),
            ChatAddress("telegram", "channel", "5550001"),
            ChatAddress("telegram", "private", "-77001"),
        ):
            with self.subTest(address):
                self.assert_refused(address, "telegram:group:-77001")

    def test_it_sends_nothing_to_a_chat_without_a_type(self):
        for chat_id in ("5550001", "-77001"):
            self.assert_refused(ChatAddress("telegram", "unknown", chat_id))

    def test_it_names_a_topic_that_is_none(self):
        for thread_id in ("abc", "0", "-1"):
            with self.subTest(thread_id):
                self.assert_refused(FORUM.with_thread(thread_id), f'"{thread_id}"')


class FileTests(OutboundCase):
    def file(self, content: bytes, kind: str, name: str, *, mime: str = "") -> Request:
        kept = media.keep(content)
        self.addCleanup(media.remove, kept)
        part = OutboundPart("", file=kept, file_kind=kind, file_name=name, file_mime=mime)
        return self.ask(FORUM, part, reply_to="205")

    def test_it_sends_each_kind_in_its_own_way(self):
        for kind, name, content, method in (
            ("image", "a.png", pictures.PNG, "sendPhoto"),
            ("image", "a.jpg", pictures.JPEG, "sendPhoto"),
            ("image", "a.webp", pictures.WEBP_LOSSY, "sendPhoto"),
            ("image", "a.gif", pictures.GIF, "sendDocument"),
            ("image", "a.svg", b"<svg/>", "sendDocument"),
            ("voice", "a.ogg", b"OggS", "sendVoice"),
            ("voice", "a.mp3", b"ID3", "sendDocument"),
            ("file", "a.png", pictures.PNG, "sendDocument"),
        ):
            with self.subTest(name, kind=kind):
                self.assertEqual(self.file(content, kind, name).method, method)

    def test_it_sends_a_file_with_its_name_and_type_where_it_belongs(self):
        asked = self.file(b"%PDF-1.7", "file", "报告.pdf")

        assert asked.upload is not None
        self.assertEqual((asked.upload.parameter, asked.upload.content), ("document", b"%PDF-1.7"))
        self.assertEqual((asked.upload.name, asked.upload.mime), ("报告.pdf", "application/pdf"))
        self.assertEqual(asked.parameters["message_thread_id"], 17)
        self.assertEqual(asked.parameters["reply_parameters"]["message_id"], 205)

    def test_it_believes_what_is_known_of_the_type(self):
        asked = self.file(b"x", "file", "noname", mime="text/csv")

        assert asked.upload is not None
        self.assertEqual(asked.upload.mime, "text/csv")

    def test_it_sends_a_large_picture_as_a_document(self):
        large = pictures.PNG.ljust(LARGEST_PHOTO + 1, b"\0")

        self.assertEqual(self.file(large, "image", "a.png").method, "sendDocument")

    def test_it_refuses_what_is_too_large_for_telegram(self):
        kept = media.keep(b"\0" * (LARGEST_FILE + 1))
        self.addCleanup(media.remove, kept)
        part = OutboundPart("", file=kept, file_kind="file", file_name="big.bin")

        with self.assertRaisesRegex(SendError, r"big\.bin has 50 MB") as caught:
            request(OutboundMessage(LIN, part))

        self.assertTrue(caught.exception.permanent)

    def test_it_lets_the_outbox_say_that_a_file_is_gone(self):
        part = OutboundPart("", file="0" * 32, file_kind="file", file_name="a.bin")

        with self.assertRaises(media.MissingFileError):
            request(OutboundMessage(LIN, part))
