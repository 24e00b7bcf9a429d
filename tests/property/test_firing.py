"""Every due time is started once or missed once, in order, however long nobody looked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from dalsegno.triggers.time_triggers.model import CatchUp, CatchUpRule, Schedule, Timetable, TimeTrigger
from dalsegno.triggers.time_triggers.plan.firing import ON_TIME, next_start, start_of, to_fire
from dalsegno.triggers.time_triggers.plan.schedule import due_times
from dalsegno.triggers.time_triggers.spec.schedules import schedule_of

BEGIN = datetime(2026, 3, 28, 12, tzinfo=UTC)
LINES = ["*/2 * * * *", "*/15 * * * *", "@hourly", "30 2 * * *", "1 2,3 * * *", "0 */6 * * *", "0 0 12 ? * SUN"]
TRIGGERS = st.builds(
    TimeTrigger,
    st.sampled_from(LINES),
    st.sampled_from(["UTC", "Europe/Berlin"]),
    st.sampled_from([None, "500ms", "90s", "10min", "2 days"]),
    st.one_of(
        st.sampled_from([CatchUp(CatchUpRule.NONE), CatchUp()]),
        st.builds(CatchUp, st.just(CatchUpRule.ALL), st.integers(1, 5)),
    ),
)
TIMETABLES = st.lists(TRIGGERS, min_size=1, max_size=3).map(
    lambda triggers: Timetable("some.workflow", tuple(map(schedule_of, triggers)))
)
#: How long it is until somebody looks again; a clock may also be set back.
PAUSES = st.lists(
    st.one_of(st.integers(0, 300), st.integers(-600, 7200), st.integers(0, 3 * 86400)).map(
        lambda s: timedelta(seconds=s)
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=60)
@given(TIMETABLES, PAUSES)
def test_every_due_time_is_told_once(timetable: Timetable, pauses: list[timedelta]) -> None:
    schedule = timetable.schedules[0]
    after = now = latest = BEGIN
    told: list[datetime] = []
    keys: list[str] = []
    for pause in pauses:
        now += pause
        latest = max(latest, now)
        firing = to_fire(timetable, schedule, after, now)
        missed = [] if firing.missed is None else list(range_of(schedule, firing.missed.first, firing.missed.last))
        told += missed + [each.at for each in firing.starts]
        keys += [each.key for each in firing.starts]
        assert all(each.start_at <= now for each in firing.starts)
        assert [each.at for each in firing.starts] == expected_starts(timetable, schedule, after, now)
        assert firing.upto == (told[-1] if told else BEGIN)
        after = firing.upto
        # To ask again changes nothing.
        assert to_fire(timetable, schedule, after, now).starts == ()
        wake = next_start(timetable, schedule, after)
        assert wake is not None
        assert wake > now or now < latest
    expected = [due for due in due_times(schedule, BEGIN, latest) if start_of(timetable, schedule, due) <= latest]
    assert told == expected
    assert len(set(keys)) == len(keys)


def range_of(schedule: Schedule, first: datetime, last: datetime) -> list[datetime]:
    found = list(due_times(schedule, first - timedelta(seconds=1), last))
    assert (found[0], found[-1]) == (first, last)
    return found


def expected_starts(timetable: Timetable, schedule: Schedule, after: datetime, now: datetime) -> list[datetime]:
    """The rules as they are written down."""
    ready = [due for due in due_times(schedule, after, now) if start_of(timetable, schedule, due) <= now]
    on_time = [due for due in ready if start_of(timetable, schedule, due) > now - ON_TIME]
    match schedule.catch_up.rule:
        case CatchUpRule.NONE:
            return on_time
        case CatchUpRule.LATEST:
            return on_time or ready[-1:]
        case CatchUpRule.ALL:
            return on_time if len(on_time) > schedule.catch_up.most else ready[-schedule.catch_up.most :]


@settings(deadline=None, max_examples=30)
@given(TIMETABLES)
def test_delays_are_bounded_and_keep_the_order(timetable: Timetable) -> None:
    found = []
    for schedule in timetable.schedules:
        for due in due_times(schedule, BEGIN, BEGIN + timedelta(hours=16)):
            start = start_of(timetable, schedule, due)
            assert due <= start <= due + schedule.longest_delay
            assert start == start_of(timetable, schedule, due)
            found.append((due, start))
    found.sort()
    for (due, start), (later, later_start) in pairwise(found):
        assert start < later_start or due == later
