"""Files sent through the API: base64 in, kept once, out behind the text."""

from base64 import b64encode
from pathlib import Path
from typing import Any

from django.conf import settings
from django.test import override_settings

from channels_app import media
from channels_app.channels import get_channel
from channels_app.models import Delivery
from memory_app.models import MemoryTurn
from nahida.agent.delivery import deliver
from nahida.config import Files
from sessions_app.models import Access, Chat
from tests.fakes import pictures
from tests.fakes.channel import FakeChannel
from tests.gateway.cast import GatewayTestCase, lane_of

PRIVATE = "fake:private:10001"
GROUP = "fake:group:10001"
WEB = "web:private:1"


def file(content: bytes = b"pdf", *, kind: str = "file", name: str = "a.pdf") -> dict[str, str]:
    return {"kind": kind, "name": name, "data": b64encode(content).decode()}


def kept() -> set[str]:
    return {path.name for path in Path(settings.MEDIA_ROOT).glob("*")}


class SendFilesCase(GatewayTestCase):
    def setUp(self) -> None:
        super().setUp()
        get_channel("fake")
        FakeChannel.reset_all()
        lane_of(GROUP)

    def send(self, *files: dict[str, str], **body: object) -> Any:
        message = {"target": GROUP, "text": "look", "attachments": list(files), **body}
        return self.post("/api/send", message, key=self.key("send"))

    def arrived(self) -> list[tuple[str, str, bytes]]:
        for delivery in Delivery.objects.all():
            deliver(delivery.pk)
        return FakeChannel.instances["fake"].sent_files

    def refusal(self, *files: dict[str, str], status: int = 400, **body: object) -> str:
        """Return why files are not taken; nothing of them is kept."""
        before = kept()
        response = self.send(*files, **body)
        assert response.status_code == status, response.content
        assert response["Content-Type"] == "application/problem+json"
        assert kept() == before
        assert not Delivery.objects.exists()
        return str(response.json()["detail"])


class SendFilesTest(SendFilesCase):
    def test_it_sends_files_behind_the_text(self) -> None:
        response = self.send(
            file(pictures.PNG, kind="image", name="b.png"), file(b"ogg", kind="voice", name="")
        )

        assert response.status_code == 200, response.content
        assert self.arrived() == [("image", "b.png", pictures.PNG), ("voice", "voice", b"ogg")]
        assert FakeChannel.instances["fake"].sent[0].part.text == "look"

    def test_it_sends_a_file_without_a_text(self) -> None:
        response = self.send(file(), text="")

        assert response.status_code == 200, response.content
        assert self.arrived() == [("file", "a.pdf", b"pdf")]

    def test_it_names_what_has_no_name_or_an_odd_one(self) -> None:
        self.send(
            file(pictures.JPEG, kind="image", name=""),
            file(name="../../etc/passwd"),
            file(name="a\u202efdp.exe"),
        )

        assert [name for _, name, _ in self.arrived()] == ["image.jpeg", "passwd", "a fdp.exe"]

    def test_it_says_what_type_each_is(self) -> None:
        self.send(
            file(pictures.GIF, name="a.pdf"),
            file(b"OggS voice", kind="voice", name="note"),
            file(),
            file(name="unheard.of"),
        )

        parts = Delivery.objects.get().parts[1:]
        types = [part["file_mime"] for part in parts]
        assert types == ["image/gif", "audio/ogg", "application/pdf", ""]

    def test_it_records_a_line_for_each_file(self) -> None:
        self.send(file(), delivery="record")

        turn = MemoryTurn.objects.get()
        assert turn.content == "look\n[file a.pdf, 3 bytes]"
        assert media.read(turn.attachments.get().file) == b"pdf"

    def test_it_shows_a_line_where_a_chat_reads_here(self) -> None:
        lane_of(WEB)

        response = self.send(file(), target=WEB)

        assert response.json()["delivery_id"] is None
        assert MemoryTurn.objects.get().content == "look\n[file a.pdf, 3 bytes]"

    def test_it_keeps_and_sends_once_what_is_sent_again(self) -> None:
        key, before = self.key("send"), kept()
        body = {"target": GROUP, "attachments": [file()]}

        answers = [
            self.post("/api/send", body, key=key, **{"idempotency-key": "once"}).json()
            for _ in range(3)
        ]

        assert answers[0] == answers[1] == answers[2]
        assert len(kept() - before) == 1
        assert len(self.arrived()) == 1


class RefusedFilesTest(SendFilesCase):
    def test_it_refuses_what_is_not_base64(self) -> None:
        for data in ("a", "!!!!", "data:image/png;base64,AAAA", "AA\nAA", "早"):
            assert "body.attachments.0.data is not base64" in self.refusal(file() | {"data": data})

    def test_it_refuses_what_is_no_picture_as_one(self) -> None:
        said = self.refusal(file(), file(b"<svg/>", kind="image"))

        assert said == (
            "body.attachments.1 is no PNG, JPEG, GIF or WebP: send it with the kind file"
        )

    def test_it_refuses_what_makes_no_sense(self) -> None:
        assert "kind" in self.refusal(file(kind="hologram"))
        assert "data" in self.refusal(file(b""))
        assert "path" in self.refusal(file() | {"path": "/etc/passwd"})
        assert "attachments" in self.refusal(*[file()] * 11)
        assert "the text is empty" in self.refusal(text=" ")

    def test_it_refuses_more_than_the_limit_together(self) -> None:
        files = settings.NAHIDA.model_copy(update={"files": Files(largest_mb=1)})
        with override_settings(NAHIDA=files):
            said = self.refusal(file(b"x" * 600_000), file(b"x" * 400_001), status=413)
            self.send(file(b"x" * 600_000), file(b"x" * 400_000))

        assert "1 MB together: at most 1 MB are sent at once (files.largest_mb)" in said
        assert len(self.arrived()) == 2

    def test_it_takes_a_body_as_large_as_the_limit_of_files(self) -> None:
        size = settings.NAHIDA.files.largest

        assert self.send(file(b"x" * size)).status_code == 200

    def test_it_keeps_nothing_for_a_chat_that_may_not_be_written_to(self) -> None:
        Chat.objects.update(access=Access.BLOCKED)
        assert "blocked" in self.refusal(file())

        self.refusal(file(), target="milky:private:999", status=404)
