"""A chat gets another address that nobody has: its rows stay, its texts follow."""

from channels_app.addresses import AddressError, ChatAddress, SessionKey
from channels_app.models import Delivery, DeliveryState
from memory_app.models import MemoryCandidate, MemoryItem, MemoryTurn
from nahida.gateway.models import ApiKey
from scheduler_app.models import CronJob
from sessions_app.models import Chat, ChatAlias, MigrationLog, Session
from sessions_app.routing import find_chat
from tests.base import ALICE, BOB
from tests.sessions_app.moving import NEW, OLD, TOPIC, MovingTestCase

UNFINISHED = (DeliveryState.PENDING, DeliveryState.CLAIMED, DeliveryState.SENDING)
TWIN = ChatAddress("fake", "private", "-7001")  # the same number, another chat
LONGER = ChatAddress("fake", "group", "-70010")  # begins like the old address


class RenameTests(MovingTestCase):
    def test_it_keeps_the_row_and_changes_its_key(self):
        chat = self.furnish(OLD)

        left = self.move()

        self.assertEqual((left.pk, left.chat_key, left.address), (chat.pk, str(NEW), NEW))
        self.assertFalse(Chat.objects.filter(chat_key=str(OLD)).exists())

    def test_it_renames_sessions_with_their_topics_and_suffixes(self):
        self.furnish(OLD)
        keys = [session.session_key for session in Session.objects.order_by("pk")]

        self.move()

        moved = [session.session_key for session in Session.objects.order_by("pk")]
        self.assertEqual(
            moved, [SessionKey(NEW.with_thread(k.address.thread_id), k.suffix) for k in keys]
        )
        self.assertEqual({key.address.thread_id for key in moved}, {"", TOPIC})
        self.assertTrue(any(key.suffix for key in moved))

    def test_it_writes_no_turn_and_no_job(self):
        """They point to rows; what they say of the past stays as it was then."""
        self.furnish(OLD)
        turns = list(MemoryTurn.objects.order_by("pk").values())
        jobs = list(CronJob.objects.values())

        self.move()

        self.assertEqual(list(MemoryTurn.objects.order_by("pk").values()), turns)
        self.assertEqual(list(CronJob.objects.values()), jobs)
        self.assertEqual({turn["origin"] for turn in turns}, {str(OLD), f"{OLD}:topic:{TOPIC}"})

    def test_it_takes_its_memory_along(self):
        self.furnish(OLD)

        self.move()

        chat_items = MemoryItem.objects.filter(scope_type="chat")
        self.assertEqual(chat_items.get().scope_id, str(NEW))
        self.assertEqual(MemoryCandidate.objects.get().scope_id, str(NEW))
        self.assertEqual(MemoryItem.objects.get(scope_type="global").scope_id, "__global__")

    def test_it_takes_along_what_still_has_to_be_sent(self):
        """What was sent is evidence of where it was sent."""
        self.furnish(OLD)

        self.move()

        for address in (NEW, NEW.with_thread(TOPIC)):
            self.assertEqual(self.delivery_states(address), set(UNFINISHED))
        for address in (OLD, OLD.with_thread(TOPIC)):
            self.assertEqual(
                self.delivery_states(address), set(DeliveryState.values) - set(UNFINISHED)
            )

    def test_it_touches_no_other_chat(self):
        """Not the private chat of the same number, nor one whose number begins alike, nor bob."""
        for address in (OLD, TWIN, LONGER, BOB):
            self.furnish(address)

        self.move()

        for address in (TWIN, LONGER, BOB):
            self.assertEqual(find_chat(address), self.chat(address))
            self.assertEqual(
                MemoryItem.objects.filter(scope_type="chat", scope_id=str(address)).count(), 1
            )
            self.assertEqual(self.delivery_states(address), set(DeliveryState.values))
            self.assertTrue(Session.objects.filter(key=str(address)).exists())

    def test_it_leaves_legacy_rows_of_the_same_number_alone(self):
        """Text keys are compared as a whole: neither `fake:-7001` nor `fake:-70010` belongs to the group."""
        self.furnish(OLD)
        now = self.chat(OLD).created_at
        for key in ("fake:-7001", "fake:-70010", "fake:-7001:ab", "fake:-7001:subagent:t1"):
            Session.objects.create(key=key, legacy_untyped=True, imported_at=now)
            MemoryItem.objects.create(
                scope_type="chat", scope_id=key, kind="fact", imported={"id": 1}
            )
        legacy = Session.objects.filter(legacy_untyped=True).order_by("pk")
        before = list(legacy.values()), list(MemoryItem.objects.filter(imported__id=1).values())

        self.move()

        after = list(legacy.values()), list(MemoryItem.objects.filter(imported__id=1).values())
        self.assertEqual(after, before)

    def test_it_rewrites_no_text_that_mentions_the_address(self):
        turn = self.append(OLD, f"see {OLD} and fake:-7001")
        item = MemoryItem.objects.create(
            scope_type="chat", scope_id=str(OLD), kind="fact", content=f"{OLD} is the old group"
        )

        self.move()

        turn.refresh_from_db()
        item.refresh_from_db()
        self.assertEqual(turn.content, f"see {OLD} and fake:-7001")
        self.assertEqual(item.content, f"{OLD} is the old group")

    def test_it_answers_to_its_old_address(self):
        """Messages to either address land in the one chat, in the topic they name."""
        self.furnish(OLD)
        chat = self.move()

        for address in (OLD, NEW, OLD.with_thread("9")):
            self.append(address, f"later at {address}")

        self.assertEqual(find_chat(OLD), chat)
        self.assertEqual(Chat.objects.filter(target_type="group").count(), 1)
        self.assertEqual(Session.objects.filter(chat=chat, key__startswith=str(OLD)).count(), 0)
        self.assertIn(("user", f"later at {OLD}", "pending"), self.lines(NEW))
        self.assertIn(
            ("user", f"later at {OLD}:topic:9", "pending"), self.lines(NEW.with_thread("9"))
        )

    def test_it_answers_there_what_was_asked_here(self):
        self.say(OLD, "are you there?")
        self.move()
        self.model.enqueue("here I am")

        self.work()

        self.assertEqual((self.sent(OLD), self.sent(NEW)), ([], ["here I am"]))

    def test_it_keeps_the_session_begun_by_new(self):
        self.furnish(OLD)
        active = self.lane(OLD.with_thread(TOPIC)).active_session

        self.move()

        after = self.lane(NEW.with_thread(TOPIC)).active_session
        self.assertEqual(after.pk, active.pk)
        self.assertEqual(after.key, f"{NEW}:topic:{TOPIC}:{active.suffix}")

    def test_it_logs_the_move(self):
        chat = self.furnish(OLD)

        self.move()

        record = MigrationLog.objects.get()
        self.assertEqual((record.kind, record.subject_pk), ("chat_move", chat.pk))
        self.assertEqual((record.old_key, record.new_key), (str(OLD), str(NEW)))
        self.assertEqual((record.result, record.reason), ("renamed", "moved by a test"))

    def test_it_does_nothing_where_the_chat_already_is(self):
        chat = self.furnish(OLD)

        left = self.move(OLD)

        self.assertEqual(left, chat)
        self.assertFalse(MigrationLog.objects.exists() or ChatAlias.objects.exists())

    def test_it_moves_back_and_forth(self):
        """Each address answers throughout, and nothing is left behind."""
        self.furnish(OLD)
        keys = sorted(Session.objects.values_list("key", flat=True))

        for _ in range(2):
            self.move(NEW)
            self.assertEqual(find_chat(OLD), self.chat(NEW))
            self.move(OLD, chat=self.chat(NEW))
            self.assertEqual(find_chat(NEW), self.chat(OLD))

        self.assertEqual(sorted(Session.objects.values_list("key", flat=True)), keys)
        self.assertEqual(ChatAlias.objects.get().address, str(NEW))
        self.assertEqual(MemoryItem.objects.get(scope_type="chat").scope_id, str(OLD))

    def test_it_follows_a_chat_that_moves_twice(self):
        third = ChatAddress("fake-alt", "group", "-3")
        self.furnish(OLD)

        self.move(NEW)
        left = self.move(third, chat=self.chat(NEW))

        self.assertEqual((find_chat(OLD), find_chat(NEW), find_chat(third)), (left, left, left))
        self.assertEqual(left.channel, "fake-alt")

    def test_it_takes_an_address_that_another_chat_left(self):
        """The alias of the one that left gives way to the chat that lives there now."""
        self.furnish(OLD)
        self.move(NEW)
        self.append(ALICE, "hi")

        self.move(OLD, chat=self.chat(ALICE))

        self.assertEqual(find_chat(OLD), self.chat(OLD))
        self.assertNotEqual(find_chat(OLD), find_chat(NEW))

    def test_it_keeps_the_reach_of_api_keys(self):
        chat = self.furnish(OLD)

        self.move()

        self.assertEqual(list(ApiKey.objects.get().chats.all()), [chat])

    def test_it_never_moves_to_an_untyped_address(self):
        self.furnish(OLD)

        with self.assertRaises(AssertionError):
            self.move(ChatAddress.parse("fake:-7001"))

    def test_it_changes_nothing_when_a_key_would_be_too_long(self):
        self.furnish(OLD)
        before = sorted(Session.objects.values_list("key", flat=True))

        with self.assertRaises(AddressError):
            self.move(ChatAddress("fake", "group", "9" * 985))

        self.assertEqual(sorted(Session.objects.values_list("key", flat=True)), before)
        self.assertEqual(self.chat(OLD).address, OLD)

    def delivery_states(self, address: ChatAddress) -> set[str]:
        return set(Delivery.objects.filter(address=str(address)).values_list("state", flat=True))
