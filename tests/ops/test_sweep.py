"""The minutely sweep: a sign of life, a round of the ticker, and no table that grows for ever."""

from datetime import timedelta

from django.test import TestCase
from django.utils import timezone
from django_q.models import Task

from channels_app.addresses import ChatAddress
from channels_app.models import InboundEvent
from memory_app.models import TurnKind
from memory_app.turns import NewTurn, append_turn
from nahida import tasks
from nahida.ops.models import Heartbeat
from sessions_app.models import Lane


class SweepTests(TestCase):
    def test_it_says_that_the_workers_live(self) -> None:
        tasks.sweep()

        assert Heartbeat.objects.filter(name="qcluster").exists()

    def test_it_wakes_what_a_lost_wake_up_left(self) -> None:
        append_turn(
            ChatAddress("fake", "private", "1"), NewTurn(kind=TurnKind.MESSAGE, content="hi")
        )

        tasks.sweep()

        assert Lane.objects.get().woken_at is not None

    def test_it_keeps_the_rows_that_recognise_an_event_for_a_month(self) -> None:
        now = timezone.now()
        for days in (1, 29, 31, 400):
            InboundEvent.objects.create(
                channel="fake", event_key=str(days), received_at=now - timedelta(days=days)
            )

        tasks.sweep()

        assert {event.event_key for event in InboundEvent.objects.all()} == {"1", "29"}

    def test_it_forgets_failed_tasks_after_two_weeks(self) -> None:
        now = timezone.now()
        for days in (1, 15):
            started = now - timedelta(days=days)
            Task.objects.create(
                id=str(days), name=str(days), func="x", started=started, stopped=started
            )

        tasks.sweep()

        assert [task.id for task in Task.objects.all()] == ["1"]
