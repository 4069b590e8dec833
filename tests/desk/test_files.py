"""What the admin shows of files: their names and what became of them, never where they lie."""

from channels_app.models import Delivery
from memory_app.models import Attachment, MemoryTurn, Role, TurnKind
from sessions_app.models import Session
from tests.desk.test_admin import DELIVERIES, DeskCase


class FilesTest(DeskCase):
    def test_it_shows_the_files_of_a_turn_and_why_one_is_missing(self) -> None:
        session = Session.objects.create(chat=self.chat, key=self.chat.chat_key)
        turn = MemoryTurn.objects.create(session=session, kind=TurnKind.NOTICE, role=Role.SYSTEM)
        Attachment.objects.create(
            turn=turn,
            kind="file",
            name="a.pdf",
            platform_id="token-of-it",
            error="larger than 20 MB",
        )
        url = f"/admin/memory_app/memoryturn/{turn.pk}/change/"
        self.allow("view_memoryturn")

        for person in (self.owner, self.clerk):
            page = person.get(url)
            self.assertContains(page, "a.pdf")
            self.assertContains(page, "larger than 20 MB")
            self.assertNotContains(page, "token-of-it")

    def test_it_names_the_files_of_a_delivery(self) -> None:
        parts = [{"text": "look"}, {"text": "", "file": "0" * 32, "file_name": "a.pdf"}]
        Delivery.objects.create(address=self.chat.chat_key, parts=parts)

        self.assertContains(self.owner.get(DELIVERIES), "look a.pdf")
