"""The next instant of a job, from its rules and a clock reading alone."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_app.schedule import Rhythm, ScheduleError, next_fire

NOW = datetime(2031, 5, 10, 12, 0, tzinfo=UTC)  # a Saturday
BERLIN = "Europe/Berlin"
times = st.datetimes(datetime(2026, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))


def cron(expression: str, *, zone: str = "UTC", now: datetime = NOW) -> datetime | None:
    rhythm = Rhythm(mode="cron", cron_expression=expression, time_zone=zone)
    return next_fire(now, rhythm=rhythm)


def local(*numbers: int, zone: str = BERLIN, fold: int = 0) -> datetime:
    return datetime(*numbers, tzinfo=ZoneInfo(zone), fold=fold)  # type: ignore[arg-type,misc]  # numbers


def every(seconds: int, *, anchor: datetime | None, now: datetime = NOW) -> datetime | None:
    rhythm = Rhythm(mode="interval", interval_seconds=seconds, anchor=anchor)
    return next_fire(now, rhythm=rhythm)


def test_it_runs_once_if_that_is_still_to_come():
    at = NOW + timedelta(seconds=1)

    assert next_fire(NOW, rhythm=Rhythm(mode="once", run_at=at)) == at
    assert next_fire(at, rhythm=Rhythm(mode="once", run_at=at)) is None


def test_it_answers_in_utc():
    at = datetime(2031, 5, 11, 8, 0, tzinfo=timezone(timedelta(hours=8)))

    found = next_fire(NOW, rhythm=Rhythm(mode="once", run_at=at))

    assert str(found) == "2031-05-11 00:00:00+00:00"


def test_it_keeps_the_grid_of_an_interval():
    """However long it has stood still, and also if the grid begins later."""
    for anchor in (NOW - timedelta(days=9, minutes=50), NOW + timedelta(days=9, minutes=10)):
        assert every(3600, anchor=anchor) == NOW + timedelta(minutes=10)


def test_it_takes_the_next_one_when_now_is_on_the_grid():
    for days in (-1, 0, 1):
        anchor = NOW + timedelta(days=days)

        assert every(86400, anchor=anchor) == NOW + timedelta(days=1)


@given(now=times, anchor=times, seconds=st.integers(60, 10**7))
def test_it_finds_the_first_instant_of_the_grid(now: datetime, anchor: datetime, seconds: int):
    found = every(seconds, anchor=anchor, now=now)

    assert found is not None
    assert timedelta(0) < found - now <= timedelta(seconds=seconds)
    assert (found - anchor) % timedelta(seconds=seconds) == timedelta(0)


def test_it_reads_cron_by_the_clocks_of_the_zone():
    assert cron("30 8 * * *", zone="Asia/Shanghai") == datetime(2031, 5, 11, 0, 30, tzinfo=UTC)


def test_it_never_answers_now():
    at = cron("0 12 * * *")

    assert at == NOW + timedelta(days=1)


@pytest.mark.parametrize("sunday", ["0", "7", "SUN", "sun"])
def test_it_takes_0_and_7_for_sunday(sunday: str):
    assert cron(f"0 0 * * {sunday}") == datetime(2031, 5, 11, tzinfo=UTC)
    assert cron("0 0 * * 6-7") == datetime(2031, 5, 11, tzinfo=UTC)


def test_it_makes_up_for_a_time_that_is_skipped():
    """On 2031-03-30 there is no half past two in Berlin."""
    now = local(2031, 3, 30, 1, 0)

    assert cron("30 2 * * *", zone=BERLIN, now=now) == local(2031, 3, 30, 3, 0)


def test_it_runs_once_at_a_time_that_comes_twice():
    """On 2031-10-26 half past two comes twice in Berlin."""
    first = local(2031, 10, 26, 2, 30).astimezone(UTC)
    between = local(2031, 10, 26, 2, 10, fold=1)

    assert cron("30 2 * * *", zone=BERLIN, now=local(2031, 10, 26, 1, 0)) == first
    for now in (first, between):
        assert cron("30 2 * * *", zone=BERLIN, now=now) == local(2031, 10, 27, 2, 30)


@given(now=times, zone=st.sampled_from([BERLIN, "America/New_York", "Asia/Shanghai", "UTC"]))
def test_it_always_goes_forward(now: datetime, zone: str):
    for expression in ("30 2 * * *", "*/20 * * * *", "0 1,2,3 * * 0"):
        found = cron(expression, zone=zone, now=now)

        assert found is not None
        assert now < found <= now + timedelta(days=8)


def test_it_keeps_the_local_time_over_the_year():
    at = local(2031, 1, 1, 7, 0)
    for _ in range(400):
        at = cron("0 7 * * *", zone=BERLIN, now=at) or at

        assert at.astimezone(ZoneInfo(BERLIN)).hour == 7


@pytest.mark.parametrize(
    "expression", ["", "* * * *", "* * * * * *", "61 * * * *", "a b c d e", "0 0 31 2 *"]
)
def test_it_says_that_an_expression_is_wrong(expression: str):
    with pytest.raises(ScheduleError, match="is no cron expression"):
        cron(expression)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "\0"])
def test_it_says_that_a_zone_is_wrong(zone: str):
    with pytest.raises(ScheduleError, match="is no time zone"):
        cron("0 0 * * *", zone=zone)


def test_it_says_what_is_missing():
    for rhythm, said in [
        (Rhythm(mode="once"), "needs run_at"),
        (Rhythm(mode="interval"), "needs interval_seconds"),
        (Rhythm(mode="often"), "no mode of a job"),
    ]:
        with pytest.raises(ScheduleError, match=said):
            next_fire(NOW, rhythm=rhythm)
    with pytest.raises(ScheduleError, match="no time zone"):
        next_fire(datetime(2031, 5, 10), rhythm=Rhythm(mode="once", run_at=NOW))
