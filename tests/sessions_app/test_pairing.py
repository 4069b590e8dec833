"""The pairing code that a stranger was told lets his chat in, and no other."""

from channels_app.addresses import ChatAddress
from memory_app.turns import requeue
from sessions_app import rekey
from sessions_app.access import PairingError, let_in
from sessions_app.models import Access, Chat
from tests.base import NahidaTestCase

STRANGER = ChatAddress("guarded", "group", "1")
OTHER = ChatAddress("guarded", "group", "2")


class PairingTests(NahidaTestCase):
    def code_of(self, address: ChatAddress) -> str:
        self.say(address, "let me in")
        return self.chat(address).pairing_code

    def test_it_lets_in_the_chat_that_was_told_the_code(self):
        code = self.code_of(STRANGER)
        self.code_of(OTHER)

        let_in(f" {code.lower()} ")

        self.assertEqual(self.chat(STRANGER).access, Access.ALLOWED)
        self.assertEqual(self.chat(OTHER).access, Access.PENDING)

    def test_it_lets_in_what_became_of_the_chat_that_was_told_the_code(self):
        """Both codes work after two waiting chats turned out to be one."""
        code = self.code_of(STRANGER)
        self.code_of(OTHER)
        rekey.move_chat(self.chat(STRANGER), OTHER, reason="upgrade", requeue=requeue)

        let_in(code)

        self.assertEqual(self.chat(OTHER).access, Access.ALLOWED)

    def test_it_refuses_an_unknown_empty_or_blocked_code(self):
        code = self.code_of(STRANGER)
        self.code_of(OTHER)
        rekey.move_chat(self.chat(STRANGER), OTHER, reason="upgrade", requeue=requeue)
        Chat.objects.filter(chat_key=str(OTHER)).update(access=Access.BLOCKED)

        for typed in ("", "ABCDEFGH", code):
            with self.assertRaises(PairingError):
                let_in(typed)
