"""One number, four conversations: nothing of one is ever found in another (DESIGN 11)."""

from channels_app.addresses import ChatAddress
from memory_app.models import MemoryTurn
from sessions_app.models import Chat, Session
from tests.base import ALICE, BOB, GROUP, NahidaTestCase

TOPIC = GROUP.with_thread("42")
OTHER_ACCOUNT = ChatAddress("fake-alt", "private", "10001")
OTHER_GROUP = ChatAddress("fake-alt", "group", "10001")
COLON = ChatAddress("fake", "group", "a:b", "c")
COLON_TOO = ChatAddress("fake", "group", "a", "b:c")
EVERYBODY = (ALICE, GROUP, TOPIC, OTHER_ACCOUNT, OTHER_GROUP, COLON, COLON_TOO, BOB)


def canary(address: ChatAddress) -> str:
    return f"canary-{EVERYBODY.index(address)}"


class IsolationTests(NahidaTestCase):
    def test_it_never_mixes_chats_that_talk_at_once(self):
        """Private and group of one number, a topic, a second account, ids with colons: all apart."""
        for round_ in range(3):
            for address in EVERYBODY:
                self.say(address, f"{canary(address)} round {round_}")
            self.model.enqueue(*(self.echo for _ in EVERYBODY))
            self.work()

        for address in EVERYBODY:
            answers = self.sent(address)
            self.assertEqual(len(answers), 3)
            for other in EVERYBODY:
                found = [text for text in answers if canary(other) in text]
                self.assertEqual(len(found), 3 if other == address else 0, (address, other))

    @staticmethod
    def echo(messages: object) -> str:
        """Answer with every canary that can be seen."""
        text = str(messages)
        return " ".join(canary(address) for address in EVERYBODY if canary(address) in text)

    def test_it_gives_each_its_own_session_and_history(self):
        for address in EVERYBODY:
            self.say(address, canary(address))
        self.model.enqueue(*(self.echo for _ in EVERYBODY))
        self.work()

        self.assertEqual(
            {session.key for session in Session.objects.all()},
            {str(address) for address in EVERYBODY},
        )
        for session in Session.objects.all():
            address = session.session_key.address
            texts = {turn.content for turn in session.turns.all()}
            self.assertEqual(texts, {canary(address)})

    def test_it_gives_a_topic_its_own_lane_in_its_groups_chat(self):
        self.model.enqueue("a", "b")
        self.say(GROUP, "in general")
        self.say(TOPIC, "in the topic")
        self.work()

        self.assertEqual(Chat.objects.count(), 1)
        self.assertEqual((self.sent(GROUP), self.sent(TOPIC)), (["a"], ["b"]))

    def test_it_counts_every_turn_to_the_chat_it_came_from(self):
        """A turn's own envelope never contradicts its session."""
        for address in EVERYBODY:
            self.say(address, "hi")
        self.model.enqueue(*("hello" for _ in EVERYBODY))
        self.work()

        for turn in MemoryTurn.objects.exclude(origin="").select_related("session"):
            self.assertEqual(turn.origin, str(turn.session.session_key.address))
