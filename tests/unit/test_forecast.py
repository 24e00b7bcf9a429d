"""Lateness and expiry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from dalsegno.clock import to_millis
from dalsegno.model.snapshots import Operation, Snapshot
from dalsegno.plan.forecast import expiry, lateness, lookback_start_ms

DAY = 86_400_000
NOON = to_millis(datetime(2026, 11, 15, 12, tzinfo=UTC))


def test_bars_count_days_between_dates() -> None:
    files = [(NOON, NOON - days * DAY, 10 + days) for days in (0, 1, 5, 14, 15, 40)]
    bars, missed = lateness(files, 14)
    assert {bar.label: bar.rows for bar in bars if bar.rows} == {
        "same day": 10,
        "1 day": 11,
        "4 to 7 days": 15,
        "8 to 14 days": 24,
        "15 to 30 days": 25,
        "31 days or more": 50,
    }
    assert missed == 25 + 50


@given(
    st.lists(st.tuples(st.integers(0, 4000), st.integers(-50, 4000), st.integers(0, 10_000))),
    st.integers(1, 400),
)
def test_no_row_is_lost_in_the_bars(files: list[tuple[int, int, int]], lookback: int) -> None:
    placed = [(commit * DAY, max(commit - late, 0) * DAY, rows) for commit, late, rows in files]
    bars, missed = lateness(placed, lookback)
    assert sum(bar.rows for bar in bars) == sum(rows for *_, rows in files)
    assert missed == sum(rows for commit, event, rows in placed if (commit - event) // DAY > lookback)


def test_a_lookback_begins_at_midnight() -> None:
    now = datetime(2026, 11, 15, 12, tzinfo=UTC)
    assert lookback_start_ms(now, 14) == to_millis(datetime(2026, 11, 1, tzinfo=UTC))


def test_what_expires_when() -> None:
    line = [Snapshot(n, n - 1, n, NOON + n * DAY, Operation.APPEND, 0, "", {}) for n in (1, 2, 3)]
    found = expiry(line, {}, {1}, NOON)
    assert found.table_keeps_days == 5
    assert found.first_may_expire_at == datetime(2026, 11, 16, 12, tzinfo=UTC) + timedelta(days=5)
    # The head is always kept, so the last that can go is the one before it.
    assert found.last_may_expire_at == datetime(2026, 11, 17, 12, tzinfo=UTC) + timedelta(days=5)
    assert found.pinned_snapshots == 1
    kept = expiry(line, {"history.expire.min-snapshots-to-keep": "3"}, (), None)
    assert kept.first_may_expire_at is None
