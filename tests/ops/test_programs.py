"""How the supervisor sees in the database that the workers do no work."""

import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.test import TestCase, override_settings
from django.utils import timezone
from django_q.models import OrmQ

from nahida.ops import heartbeat
from nahida.ops.models import Heartbeat
from nahida.ops.programs import busy_workers, cluster_sickness, forget_wake_ups, serve_sickness
from sessions_app.models import Chat, Lane, Session

LONG = 10_000.0  # seconds of uptime


def ago(seconds: float) -> datetime:
    return timezone.now() - timedelta(seconds=seconds)


class SicknessTests(TestCase):
    def setUp(self) -> None:
        heartbeat.beat("qcluster")
        self.chat = Chat.objects.create(
            chat_key="api:private:1", channel="api", target_type="private", target_id="1"
        )
        self.session = Session.objects.create(chat=self.chat, key="api:private:1")

    def lane(self, thread: int = 0, **values: object) -> Lane:
        return Lane.objects.create(
            chat=self.chat, thread=str(thread), active_session=self.session, **values
        )

    def test_it_finds_nothing_wrong_with_an_idle_cluster(self) -> None:
        assert cluster_sickness(LONG) == ""

    def test_it_sees_that_nobody_claims(self) -> None:
        self.lane(wake_at=ago(100), woken_at=ago(10))

        assert cluster_sickness(LONG) == "work waits for 100 s"

    def test_it_takes_much_work_for_no_stall(self) -> None:
        """While lanes are claimed and let go the cluster works, however long the queue is."""
        self.lane(wake_at=ago(100))
        self.lane(1, lease_until=ago(-25))

        assert cluster_sickness(LONG) == ""

    def test_it_gives_a_cluster_time_to_begin(self) -> None:
        """Until it takes its first task it may still be starting."""
        self.lane(wake_at=ago(500))
        self.lane(1, lease_until=ago(470))  # claimed 500 s ago, by the cluster before

        assert cluster_sickness(110) == ""
        assert cluster_sickness(125) == "work waits for 65 s"

    def test_it_waits_while_every_worker_is_busy(self) -> None:
        self.lane(wake_at=ago(100))
        Heartbeat.objects.update(at=ago(1_000))
        for thread in range(1, settings.NAHIDA.workers.count + 1):
            self.lane(thread, token=uuid.uuid4(), lease_until=ago(-30))

        assert busy_workers() == settings.NAHIDA.workers.count
        assert cluster_sickness(LONG) == ""

    def test_it_counts_no_lease_that_has_ended(self) -> None:
        self.lane(token=uuid.uuid4(), lease_until=ago(1))

        assert busy_workers() == 0

    def test_it_misses_the_heartbeat(self) -> None:
        Heartbeat.objects.update(at=ago(130))

        assert cluster_sickness(LONG) == "no heartbeat for 130 s"

    @override_settings(REDIS_URL="")
    def test_it_sees_that_nothing_is_acknowledged(self) -> None:
        """Of the queue in the database; in Redis a task that is taken is gone."""
        retry = settings.Q_CLUSTER["retry"]
        for _ in range(21):
            OrmQ.objects.create(key="nahida", payload="", lock=ago(500 - retry))

        assert "21 finished tasks" in cluster_sickness(LONG)
        assert cluster_sickness(400) == ""  # the cluster before took them

    def test_it_looks_at_the_server_by_its_heartbeat_alone(self) -> None:
        self.lane(wake_at=ago(100))
        heartbeat.beat("serve")

        assert serve_sickness(LONG) == ""

        Heartbeat.objects.filter(name="serve").update(at=ago(130))

        assert serve_sickness(LONG) == "no heartbeat for 130 s"

    def test_it_wakes_again_what_a_dead_cluster_was_woken_for(self) -> None:
        lane = self.lane(wake_at=ago(1), woken_at=ago(1))

        forget_wake_ups()

        lane.refresh_from_db()
        assert lane.woken_at is None
