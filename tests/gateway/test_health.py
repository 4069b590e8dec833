import tomllib
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from django.conf import settings
from django.db import OperationalError
from django.utils import timezone

import nahida
from channels_app.models import ChannelState, Delivery, DeliveryState
from nahida.ops import health
from nahida.ops.models import Heartbeat
from sessions_app.models import Lane
from tests.gateway.cast import ALICE, GROUP, GatewayTestCase, lane_of

TOKEN = "00000000-0000-0000-0000-000000000001"


def ago(seconds: float):
    return timezone.now() - timedelta(seconds=seconds)


def beat(name: str, *, age: float = 1) -> None:
    Heartbeat.objects.update_or_create(name=name, defaults={"at": ago(age)})


class ProbesTest(GatewayTestCase):
    def test_it_lives_without_a_database(self) -> None:
        with self.assertNumQueries(0):
            response = self.client.get("/healthz")

        assert response.status_code == 200

    def test_it_is_ready_when_ticker_and_cluster_live(self) -> None:
        for name in health.NEEDED:
            beat(name)

        response = self.client.get("/readyz")

        assert (response.status_code, response.json()["reasons"]) == (200, [])

    def test_it_is_not_ready_without_signs_of_life(self) -> None:
        beat("ticker", age=121)

        response = self.client.get("/readyz")

        assert response.status_code == 503
        silent, missing = response.json()["reasons"]
        assert silent.startswith("ticker was last heard of 12")
        assert missing == "qcluster has given no sign of life yet"

    def test_it_is_not_ready_without_a_database_and_shows_no_secret(self) -> None:
        error = OperationalError("connection to db.internal failed for user nahida")

        with patch("nahida.ops.health.connection.cursor", side_effect=error):
            response = self.client.get("/readyz")

        assert response.status_code == 503
        assert response.json()["reasons"] == ["the database is unreachable (OperationalError)"]


class ReportTest(GatewayTestCase):
    def report(self) -> Any:
        response = self.get("/api/health", key=self.key("health"))
        assert response.status_code == 200, response.content
        return response.json()

    def test_it_needs_a_scope(self) -> None:
        assert self.get("/api/health", key=self.key("chat")).status_code == 403

    def test_it_tells_how_everything_fares(self) -> None:
        for name in health.NEEDED:
            beat(name, age=5)
        ChannelState.objects.create(channel="fake", status="broken", error="no route to host")

        report = self.report()

        assert report["ok"] is True
        assert report["version"] == nahida.__version__
        assert report["database"]["ok"] is True
        assert report["queue"]["reachable"] is True
        assert {beat["name"] for beat in report["heartbeats"]} == set(health.NEEDED)
        assert 4 < report["heartbeats"][0]["age_s"] < 20
        channels = {row["name"]: row for row in report["channels"]}
        assert channels["fake"]["error"] == "no route to host"
        assert set(channels) == set(settings.CHANNELS)

    def test_it_names_the_channels_open_to_strangers(self) -> None:
        """B069."""
        assert self.report()["open_channels"] == ["fake", "fake-alt"]

    def test_it_has_the_version_of_the_project(self) -> None:
        project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]

        assert nahida.__version__ == project["version"]


class StalledTest(GatewayTestCase):
    def test_it_is_nothing_when_nothing_is_due(self) -> None:
        lane = lane_of(ALICE)
        Lane.objects.filter(pk=lane.pk).update(wake_at=timezone.now() + timedelta(seconds=60))

        assert health.stalled_for() == 0

    def test_it_counts_from_when_a_lane_was_due(self) -> None:
        lane_of(GROUP)
        lane = lane_of(ALICE)
        Lane.objects.filter(pk=lane.pk).update(wake_at=ago(90))

        assert 89 < health.stalled_for() < 120

    def test_it_leaves_out_a_lane_that_is_being_worked_on(self) -> None:
        lane = lane_of(ALICE)
        lease = timezone.now() + timedelta(seconds=20)
        Lane.objects.filter(pk=lane.pk).update(wake_at=ago(90), token=TOKEN, lease_until=lease)

        assert health.stalled_for() == 0

    def test_it_counts_from_the_end_of_a_dead_holders_lease(self) -> None:
        lane = lane_of(ALICE)
        Lane.objects.filter(pk=lane.pk).update(wake_at=ago(90), token=TOKEN, lease_until=ago(5))

        assert 4 < health.stalled_for() < 30

    def test_it_counts_the_heads_of_deliveries_only(self) -> None:
        """What waits behind another one is not stalled; a claimed one is when its lease is over."""
        first = Delivery.objects.create(address=GROUP, parts=[], next_attempt_at=ago(30))
        Delivery.objects.create(address=GROUP, parts=[], next_attempt_at=ago(300))

        assert 29 < health.delivery_stalled_for() < 60
        Delivery.objects.filter(pk=first.pk).update(
            state=DeliveryState.SENDING, lease_until=timezone.now() + timedelta(seconds=60)
        )
        assert health.delivery_stalled_for() == 0
        Delivery.objects.filter(pk=first.pk).update(lease_until=ago(10))
        assert 9 < health.delivery_stalled_for() < 30
