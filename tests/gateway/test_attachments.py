"""The files of a session's turns, to whoever may read the session and to nobody else."""

from typing import Any
from urllib.parse import quote

from channels_app import media
from channels_app.messages import Attachment as Sent
from memory_app.models import Attachment, TurnKind, TurnState
from memory_app.turns import NewTurn, append_turn
from tests.gateway.cast import ALICE, GROUP, GatewayTestCase, chat_of, lane_of

BOB = "milky:private:20002"


def keep(address: str, file: Sent) -> Attachment:
    """Store a line of a user with a file."""
    done = TurnState.DONE
    new = NewTurn(kind=TurnKind.MESSAGE, content="look", state=done, attachments=(file,))
    return append_turn(lane_of(address), new).attachments.get()


class AttachmentsTest(GatewayTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.pdf = keep(ALICE, Sent("file", file=media.keep(b"%PDF"), name='年 "a".pdf', size=4))

    def read(self, id_: object, *, session: str = ALICE, key: str = "") -> Any:
        path = f"/api/sessions/{quote(session, safe='')}/attachments/{id_}"
        return self.get(path, key=key or self.key())

    def test_it_lists_them_with_their_turn(self) -> None:
        keep(ALICE, Sent("voice", "0:12", platform_id="secret"))

        turns = self.get(f"/api/sessions/{ALICE}/turns", key=self.key()).json()["items"]

        (voice,), (pdf,) = (turn["attachments"] for turn in turns)
        assert pdf == {
            "id": self.pdf.pk,
            "kind": "file",
            "name": '年 "a".pdf',
            "mime": "",
            "size": 4,
            "text": "",
            "is_kept": True,
            "error": "",
        }
        assert (voice["is_kept"], voice["text"], voice["size"]) == (False, "0:12", None)
        assert "secret" not in str(turns)

    def test_it_gives_the_bytes_as_a_download(self) -> None:
        response = self.read(self.pdf.pk)

        assert response.content == b"%PDF"
        assert response["Content-Type"] == "application/octet-stream"
        assert response["Content-Disposition"].startswith("attachment; filename*=utf-8''")
        assert response["X-Content-Type-Options"] == "nosniff"

    def test_it_knows_none_that_is_not_kept_or_not_there(self) -> None:
        voice = keep(ALICE, Sent("voice", platform_id="x"))

        for id_ in (voice.pk, self.pdf.pk + 100, 2**63 - 1):
            assert self.read(id_).status_code == 404
        for odd in (0, 2**63, "x", "..%2F..%2Fsecret_key"):
            assert self.read(odd).status_code in (400, 404)

    def test_it_says_that_a_file_is_gone(self) -> None:
        media.remove(self.pdf.file)

        response = self.read(self.pdf.pk)

        assert response.status_code == 404
        assert "no longer kept" in response.json()["detail"]

    def test_it_gives_none_of_another_session(self) -> None:
        """Neither by its id under a session that may be read, nor by a key that may not read its own."""
        for other in (GROUP, BOB):
            lane_of(other)
            assert self.read(self.pdf.pk, session=other).status_code == 404
            limited = self.key("sessions:read", chats=[chat_of(other)])
            assert self.read(self.pdf.pk, key=limited).status_code == 404

    def test_it_wants_the_right_to_read(self) -> None:
        assert self.read(self.pdf.pk, key=self.key("send")).status_code == 403
        assert (
            self.client.get(f"/api/sessions/{ALICE}/attachments/{self.pdf.pk}").status_code == 401
        )
