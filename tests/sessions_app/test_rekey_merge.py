"""R12: two chats become one, with their lanes, their sessions and all that points to them."""

from channels_app.addresses import ChatAddress
from channels_app.models import Delivery, DeliveryState
from memory_app.models import DreamRun, DreamState, MemoryItem, MemoryTurn, TurnState
from nahida.gateway.models import ApiKey
from scheduler_app.models import BackgroundTask, CronJob
from sessions_app.models import Access, Chat, ChatAlias, Draft, Lane, MigrationLog, Session
from sessions_app.routing import find_chat
from tests.base import BOB
from tests.sessions_app.moving import NEW, OLD, TOPIC, MovingTestCase


class MergeTests(MovingTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.old, self.into = self.furnish(OLD), self.furnish(NEW)

    def test_it_leaves_one_chat_and_a_mark(self):
        """The merged row stays, so that what names it finds the other."""
        left = self.move()

        self.assertEqual((left, left.merged_into), (self.into, None))
        self.old.refresh_from_db()
        self.assertEqual((self.old.merged_into, self.old.chat_key), (self.into, str(OLD)))
        self.assertEqual(find_chat(OLD), self.into)
        self.assertEqual(ChatAlias.objects.get(address=str(OLD)).chat, self.into)
        self.assertEqual(MigrationLog.objects.get().result, "merged")

    def test_it_leaves_one_lane_for_each_thread(self):
        self.append(OLD.with_thread("only-old"), "hi")

        self.move()

        self.assertEqual(
            sorted(Lane.objects.values_list("chat", "thread")),
            sorted((self.into.pk, thread) for thread in ("", TOPIC, "only-old")),
        )

    def test_it_joins_sessions_of_one_key_and_moves_the_others(self):
        begun = Session.objects.exclude(suffix="").filter(chat=self.old).get()

        self.move()

        self.assertFalse(Session.objects.exclude(chat=self.into).exists())
        self.assertEqual(
            sorted(Session.objects.filter(suffix="").values_list("key", flat=True)),
            sorted([str(NEW), f"{NEW}:topic:{TOPIC}"]),
        )
        begun.refresh_from_db()
        self.assertEqual(begun.key, f"{NEW}:topic:{TOPIC}:{begun.suffix}")

    def test_it_keeps_every_turn_in_order(self):
        ids = list(MemoryTurn.objects.order_by("pk").values_list("pk", "content"))

        self.move()

        self.assertEqual(list(MemoryTurn.objects.order_by("pk").values_list("pk", "content")), ids)
        self.assertEqual(
            [text for _, text, _ in self.lines(NEW)], [f"said at {OLD}", f"said at {NEW}"]
        )
        base = Session.objects.get(key=str(NEW))
        self.assertEqual(base.turns.count(), 2)

    def test_it_loses_no_row_that_points_to_the_old_chat(self):
        """Hidden relations and many-to-many tables too; only a draft ends, since its answer is begun anew."""
        models = (CronJob, BackgroundTask, ApiKey, MemoryItem, MemoryTurn, DreamRun, Delivery)
        counts = [model.objects.count() for model in models]

        self.move()

        self.assertEqual([model.objects.count() for model in models], counts)
        self.assertFalse(CronJob.objects.exclude(chat=self.into).exists())
        for key in ApiKey.objects.all():
            self.assertEqual(list(key.chats.all()), [self.into])
        self.assertEqual(Chat.objects.filter(parent=self.into).count(), 2)
        self.assertEqual(Draft.objects.count(), 1)

    def test_it_lists_the_chat_once_for_a_key_that_had_both(self):
        key = ApiKey.objects.create(name="both", prefix="both", digest="d")
        key.chats.add(self.old, self.into)

        self.move()

        self.assertEqual(list(key.chats.all()), [self.into])

    def test_it_joins_dreams_without_forgetting_a_turn(self):
        """What only one of them had dreamt is read again; two dreams of a night keep two numbers."""
        first = min(DreamState.objects.values_list("dreamt_to", flat=True))

        self.move()

        self.assertEqual(DreamState.objects.get().dreamt_to, first)
        self.assertEqual(sorted(DreamRun.objects.values_list("part", flat=True)), [1, 2])

    def test_it_joins_what_the_chats_remember(self):
        self.move()

        scopes = MemoryItem.objects.filter(scope_type="chat").values_list("scope_id", flat=True)
        self.assertEqual(list(scopes), [str(NEW)] * 2)

    def test_it_takes_along_what_still_has_to_be_sent(self):
        self.move()

        unfinished = Delivery.objects.filter(state=DeliveryState.PENDING)
        self.assertEqual(
            sorted(unfinished.values_list("address", flat=True)),
            sorted([str(NEW), f"{NEW}:topic:{TOPIC}"] * 2),
        )
        finished = Delivery.objects.filter(state=DeliveryState.SENT)
        self.assertEqual(len(set(finished.values_list("address", flat=True))), 4)

    def test_it_lands_messages_to_either_address_in_the_one_lane(self):
        self.move()

        self.append(OLD, "to the old address")
        self.append(NEW, "to the new one")

        texts = [text for _, text, _ in self.lines(NEW)]
        self.assertEqual(texts[-2:], ["to the old address", "to the new one"])
        self.assertFalse(Lane.objects.filter(chat=self.old).exists())

    def test_it_does_nothing_the_second_time(self):
        self.move()

        left = self.move()

        self.assertEqual(left, self.into)
        self.assertEqual(MigrationLog.objects.count(), 1)

    def test_it_moves_back_and_forth(self):
        """The chat that is left takes the address that its merged row had."""
        self.move(NEW)
        back = self.move(OLD, chat=self.into)

        self.old.refresh_from_db()
        self.assertEqual((back.pk, back.chat_key), (self.into.pk, str(OLD)))
        self.assertEqual((self.old.chat_key, self.old.address), (str(NEW), NEW))
        self.assertEqual((find_chat(OLD), find_chat(NEW)), (self.into, self.into))
        self.assertTrue(Session.objects.filter(key=str(OLD)).exists())
        self.assertEqual(self.move(NEW, chat=self.old).chat_key, str(NEW))
        self.assertEqual((find_chat(OLD), find_chat(NEW)), (self.into, self.into))

    def test_it_follows_a_chain_of_merges(self):
        third = ChatAddress("fake", "group", "3")
        last = self.furnish(third)

        self.move(NEW)
        self.move(third, chat=self.chat(NEW))

        self.assertEqual([find_chat(at) for at in (OLD, NEW, third)], [last] * 3)
        self.assertEqual(set(ChatAlias.objects.values_list("chat", flat=True)), {last.pk})
        self.assertEqual(Chat.objects.get(pk=self.old.pk).merged_into, last)

    def test_it_touches_no_stranger(self):
        bob = self.furnish(BOB)
        before = list(Lane.objects.filter(chat=bob).order_by("pk").values())

        self.move()

        self.assertEqual(list(Lane.objects.filter(chat=bob).order_by("pk").values()), before)
        self.assertEqual(find_chat(BOB), bob)
        self.assertTrue(MemoryItem.objects.filter(scope_id=str(BOB)).exists())

    def test_it_is_its_own_parent_never(self):
        """A thread that becomes one with the chat it hung from hangs from nothing."""
        Chat.objects.filter(pk=self.into.pk).update(parent=self.old)

        left = self.move()

        self.assertIsNone(left.parent)


class SettingsTests(MovingTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.append(OLD, "hi")
        self.append(NEW, "hi")

    def test_it_lets_in_what_either_was_let_in_to_and_blocks_what_either_was_blocked_for(self):
        cases = [
            (Access.ALLOWED, Access.PENDING, Access.ALLOWED),
            (Access.PENDING, Access.ALLOWED, Access.ALLOWED),
            (Access.PENDING, Access.PENDING, Access.PENDING),
            (Access.BLOCKED, Access.ALLOWED, Access.BLOCKED),
            (Access.PENDING, Access.BLOCKED, Access.BLOCKED),
        ]
        for number, (old, into, left) in enumerate(cases):
            with self.subTest(old=old, into=into):
                a, b = (ChatAddress("fake", "group", f"{number}{letter}") for letter in "ab")
                self.append(a, "hi")
                self.append(b, "hi")
                Chat.objects.filter(chat_key=str(a)).update(access=old)
                Chat.objects.filter(chat_key=str(b)).update(access=into)

                self.assertEqual(self.move(b, chat=self.chat(a)).access, left)

    def test_it_keeps_what_only_the_old_chat_had_set(self):
        Chat.objects.filter(chat_key=str(OLD)).update(
            title="the family",
            model="other",
            time_zone="Asia/Shanghai",
            answer_policy="always",
            is_owner=True,
            pairing_code="ABCDEFGH",
            refused_count=2,
        )
        Chat.objects.filter(chat_key=str(NEW)).update(title="The Family", refused_count=1)

        left = self.move()

        self.assertEqual((left.title, left.model), ("The Family", "other"))
        self.assertEqual((left.time_zone, left.answer_policy), ("Asia/Shanghai", "always"))
        self.assertEqual((left.is_owner, left.pairing_code), (True, "ABCDEFGH"))
        self.assertEqual(left.refused_count, 3)


class LaneTests(MovingTestCase):
    """Of two lanes the one whose holder lives goes on undisturbed; what the other had is done again there."""

    def setUp(self) -> None:
        super().setUp()
        self.append(NEW, "asked at the new address")
        self.append(OLD, "asked at the old address")
        self.pks = {self.lane(at).pk: at for at in (OLD, NEW)}

    def test_it_keeps_the_older_lane_when_nobody_holds_one(self):
        self.move()

        lane = self.lane(NEW)
        self.assertEqual((lane.pk, lane.token), (min(self.pks), None))
        self.assertEqual(
            self.lines(NEW),
            [
                ("user", "asked at the new address", "pending"),
                ("user", "asked at the old address", "pending"),
            ],
        )

    def test_it_wakes_the_lane_that_stays(self):
        Lane.objects.update(wake_at=None, inbox=5, woken_at=self.chat(OLD).created_at)

        self.move()

        lane = self.lane(NEW)
        self.assertIsNotNone(lane.wake_at)
        self.assertEqual((lane.inbox, lane.woken_at), (6, None))

    def test_it_keeps_the_lane_of_the_holder_that_lives(self):
        """Whichever it is, the old chat's or the new one's, the older row or the younger."""
        for number, living in enumerate(("old", "older new", "new")):
            with self.subTest(living):
                old, new = (ChatAddress("fake", "group", f"{number}{at}") for at in ("a", "b"))
                for where in (new, old) if living == "older new" else (old, new):
                    self.append(where, "hi")
                held = old if living == "old" else new
                lane, token = self.lane(held).pk, self.hold(held)

                self.move(new, chat=self.chat(old))

                self.assertEqual((self.lane(new).pk, self.lane(new).token), (lane, token))

    def test_it_does_not_count_a_lease_that_ran_out(self):
        """Though its lane is the older row."""
        self.hold(NEW)
        self.lose(NEW)
        lane, token = self.lane(OLD).pk, self.hold(OLD)

        self.move()

        self.assertEqual((self.lane(NEW).pk, self.lane(NEW).token), (lane, token))

    def test_it_takes_the_token_from_the_younger_of_two_that_live(self):
        tokens = {self.lane(at).pk: self.hold(at) for at in (OLD, NEW)}

        self.move()

        lane = self.lane(NEW)
        self.assertEqual((lane.pk, lane.token), (min(tokens), tokens[min(tokens)]))

    def test_it_begins_anew_what_the_ended_lane_was_running(self):
        """The batch stays together; only the attempt will be another."""
        turn = MemoryTurn.objects.get(content="asked at the old address")
        MemoryTurn.objects.filter(pk=turn.pk).update(state=TurnState.RUNNING, batch=turn.pk)
        self.hold(NEW)

        self.move()

        turn.refresh_from_db()
        self.assertEqual((turn.state, turn.batch), (TurnState.PENDING, turn.pk))
        self.assertEqual(turn.lane, self.lane(NEW))

    def test_it_stops_what_was_to_be_stopped(self):
        """By its own lane's mark alone: that of the lane that stays says nothing about turns of the other."""
        turn = MemoryTurn.objects.get(content="asked at the old address")
        later = self.append(OLD, "asked later")
        MemoryTurn.objects.filter(pk__in=[turn.pk, later.pk]).update(state=TurnState.RUNNING)
        Lane.objects.filter(pk=self.lane(OLD).pk).update(stop_before=turn.pk + 1)
        Lane.objects.filter(pk=self.lane(NEW).pk).update(stop_before=9_999)
        self.hold(NEW)

        self.move()

        turn.refresh_from_db()
        later.refresh_from_db()
        self.assertEqual((turn.state, later.state), (TurnState.STOPPED, TurnState.PENDING))
        self.assertEqual(self.lane(NEW).stop_before, 9_999)

    def test_it_keeps_the_session_begun_by_new(self):
        """Of either chat; if both began one, that of the address that stays."""
        begun = self.start_session(OLD)
        self.move()
        self.assertEqual(self.lane(NEW).active_session, begun)

        self.append(OLD.with_thread("7"), "hi")
        third = ChatAddress("fake", "group", "3")
        self.append(third, "hi")
        theirs = self.start_session(third)
        self.move(third, chat=self.chat(NEW))
        self.assertEqual(self.lane(third).active_session, theirs)

    def test_it_answers_each_message_once(self):
        self.model.enqueue("both answered")

        self.move()
        self.work()

        self.assertEqual(self.sent(NEW), ["both answered"])
        self.assertEqual([state for *_, state in self.lines(NEW)], ["done"] * 3)


class MidTurnTests(MovingTestCase):
    """The chat is merged while the model thinks."""

    def setUp(self) -> None:
        super().setUp()
        self.append(NEW, "hello at the new address")
        self.say(OLD, "asked at the old address")

    def test_it_answers_once_at_the_new_address(self):
        """The holder of the old lane lives: its answer lands where the chat is by then."""

        def think(messages: object) -> str:
            self.move()
            return "thought about it"

        Lane.objects.filter(pk=self.lane(NEW).pk).update(wake_at=None)
        self.model.enqueue(think, "hello to you")
        self.run_lanes()
        self.make_due(NEW)
        self.work()

        self.assertEqual(
            (self.sent(OLD), self.sent(NEW)), ([], ["thought about it", "hello to you"])
        )
        self.assertEqual(self.answers(NEW), ["thought about it", "hello to you"])
        self.assertFalse(MemoryTurn.objects.unfinished().exists())

    def test_it_drops_the_answer_of_a_holder_that_lost_its_lane(self):
        """Both live: the younger lane's holder finds its token gone, and its message is answered by the other."""

        def think(messages: object) -> str:
            self.make_due(NEW)
            self.hold(NEW)
            self.move()
            return "too late"

        Lane.objects.filter(pk=self.lane(NEW).pk).update(wake_at=None)
        self.model.enqueue(think, "one", "two")
        self.run_lanes()
        self.assertEqual(self.answers(NEW), [])
        self.lose(NEW)
        self.make_due(NEW)
        self.work()

        self.assertEqual(self.sent(NEW), ["one", "two"])
        self.assertEqual((self.answers(NEW), self.sent(OLD)), (["one", "two"], []))
        self.assertEqual([state for *_, state in self.lines(NEW)], ["done"] * 4)
