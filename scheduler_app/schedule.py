"""When does a job run next? Pure: rules and `now` in, an instant out. Source: DESIGN 7."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

ONCE: Final = "once"
INTERVAL: Final = "interval"
CRON: Final = "cron"

FIELDS: Final = 5  # minute, hour, day of month, month, day of week; 0 and 7 are Sunday


class ScheduleError(ValueError):
    """Rules that name no instant; the message says what is wrong with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """When a job is to run. `mode` says which of the others count.

    An interval counts from `anchor`, any instant of its grid. A cron expression means the clocks of `time_zone`: a run whose
    local time is skipped when they go forward is made up for right after, one whose local time comes twice happens once.
    """

    mode: str
    run_at: datetime | None = None
    interval_seconds: int | None = None
    anchor: datetime | None = None
    cron_expression: str = ""
    time_zone: str = "UTC"


def next_fire(now: datetime, *, rhythm: Rhythm) -> datetime | None:
    """Return the first instant after `now`, in UTC; None if there is none any more. Raises ScheduleError."""
    if now.tzinfo is None:
        raise ScheduleError(f"{now} has no time zone: give an aware time")
    found = _NEXT[_known(rhythm.mode)](now.astimezone(UTC), rhythm)
    return found.astimezone(UTC) if found else None


def _known(mode: str) -> str:
    if mode not in _NEXT:
        raise ScheduleError(f'"{mode}" is no mode of a job: use {", ".join(_NEXT)}')
    return mode


def _once(now: datetime, rhythm: Rhythm) -> datetime | None:
    if rhythm.run_at is None:
        raise ScheduleError("a job that runs once needs run_at")
    return rhythm.run_at if rhythm.run_at > now else None


def _interval(now: datetime, rhythm: Rhythm) -> datetime:
    if not rhythm.interval_seconds:
        raise ScheduleError("a job at intervals needs interval_seconds, at least 1")
    step = timedelta(seconds=rhythm.interval_seconds)
    # In UTC: an hour is 3,600 seconds, also on the night the clocks change.
    anchor = (rhythm.anchor or now).astimezone(UTC)
    if anchor > now:
        return anchor - (anchor - now - timedelta(microseconds=1)) // step * step
    return anchor + ((now - anchor) // step + 1) * step


def _cron(now: datetime, rhythm: Rhythm) -> datetime | None:
    return next(_instants(rhythm, now), None)


def _instants(rhythm: Rhythm, now: datetime) -> Iterator[datetime]:
    local = now.astimezone(_zone(rhythm.time_zone))
    expression = rhythm.cron_expression
    if len(expression.split()) != FIELDS:
        raise ScheduleError(
            f'"{expression}" is no cron expression: write five fields, for example 30 8 * * 1-5'
        )
    try:
        instants = CronSim(expression, local)
    except CronSimError as error:
        raise ScheduleError(f'"{expression}" is no cron expression: {error}') from error
    # The night the clocks go back, what is found from inside the second hour may lie before it.
    return (instant for instant in instants if instant > now)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(
            f'"{name}" is no time zone: write one as Asia/Shanghai or UTC'
        ) from error


_NEXT = {ONCE: _once, INTERVAL: _interval, CRON: _cron}
