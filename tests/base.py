"""The cast and the stage of the tests.

Alice talks in private, and there is a group with the very same number; bob is a stranger to both and must never see either.
"""

import itertools

from django.test import TestCase, TransactionTestCase

from channels_app.addresses import ChatAddress, account
from channels_app.channels import get_channel
from channels_app.messages import InboundMessage, OutboundMessage, Sender
from channels_app.models import Delivery, DeliveryState
from memory_app.models import MemoryTurn, Role
from nahida.agent import delivery, turns
from nahida.agent.intake import Accepted, accept
from nahida.agent.vocabulary import Model
from sessions_app.models import Chat, Lane
from tests.fakes.channel import FakeChannel
from tests.fakes.model import ScriptedModel

ALICE = ChatAddress("fake", "private", "10001")
GROUP = ChatAddress("fake", "group", "10001")
BOB = ChatAddress("fake", "private", "20002")

_numbers = itertools.count(1)


class Stage:
    """What a test of conversations needs: people who speak, a scripted model, a worker that is called by hand."""

    model: ScriptedModel

    def setUp(self) -> None:
        super().setUp()  # type: ignore[misc]
        self.model = ScriptedModel()
        for name in ("fake", "fake-alt", "guarded"):
            get_channel(name)
        FakeChannel.reset_all()

    def tearDown(self) -> None:
        self.model.check()
        super().tearDown()  # type: ignore[misc]

    def say(self, address: ChatAddress, text: str, **details: object) -> Accepted:
        """Let a message arrive."""
        return accept(message(address, text, **details))

    def work(self, *, model: Model | None = None) -> None:
        """Run every due lane and delivery until nothing is left, as the workers would."""
        while self.run_lanes(model=model) or self.send_deliveries():
            pass

    def run_lanes(self, *, model: Model | None = None) -> int:
        due = list(Lane.objects.filter(wake_at__isnull=False).order_by("wake_at"))
        unfinished = MemoryTurn.objects.unfinished().count()
        for lane in due:
            turns.run_lane(lane.pk, model_for=lambda chat: model or self.model)
        return unfinished - MemoryTurn.objects.unfinished().count()

    def send_deliveries(self) -> int:
        pending = Delivery.objects.filter(state=DeliveryState.PENDING).order_by("pk")
        ids = list(pending.values_list("pk", flat=True))
        for pk in ids:
            delivery.deliver(pk)
        return len(ids) - pending.filter(pk__in=ids).count()

    def sent(self, address: ChatAddress) -> list[str]:
        """Return the texts a platform was handed for an address, in order."""
        return [message.part.text for message in self.messages(address)]

    def messages(self, address: ChatAddress) -> list[OutboundMessage]:
        return [
            message
            for message in FakeChannel.instances[address.channel].sent
            if message.address == address
        ]

    def platform(self, name: str = "fake") -> FakeChannel:
        return FakeChannel.instances[name]

    def chat(self, address: ChatAddress) -> Chat:
        return Chat.objects.get(chat_key=address.chat_key)

    def lane(self, address: ChatAddress) -> Lane:
        return Lane.objects.get(chat__chat_key=address.chat_key, thread=address.thread_id)

    def lines(self, address: ChatAddress) -> list[tuple[str, str, str]]:
        """Return role, text and state of every turn of a lane, in order."""
        rows = MemoryTurn.objects.filter(lane=self.lane(address)).order_by("pk")
        return [(turn.role, turn.content, turn.state) for turn in rows]

    def answers(self, address: ChatAddress) -> list[str]:
        rows = MemoryTurn.objects.filter(lane=self.lane(address), role=Role.ASSISTANT)
        return list(rows.order_by("pk").values_list("content", flat=True))


class NahidaTestCase(Stage, TestCase):
    """A test inside one transaction."""


class CommittedTestCase(Stage, TransactionTestCase):
    """A test whose transactions are real, for threads and for what happens on commit."""


def message(address: ChatAddress, text: str, **details: object) -> InboundMessage:
    """Return a message as a channel would; in a private chat the person's id is the chat's."""
    number = next(_numbers)
    who = details.pop("who", None) or address.target_id
    name = str(details.pop("name", "") or f"person {who}")
    is_admin = bool(details.pop("is_admin", False))
    defaults: dict[str, object] = {
        "event_key": f"event-{number}",
        "message_id": str(number),
        "sender": Sender(account(address.channel, str(who)), name, is_admin),
        "addressed": True,
    }
    return InboundMessage(address, text=text, **{**defaults, **details})  # type: ignore[arg-type]
