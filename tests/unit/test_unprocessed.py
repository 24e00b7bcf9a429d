"""What a table has that a consumer has not processed; and when that would have started runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dalsegno.clock import from_millis
from dalsegno.model.captures import CaptureSpec, capture_spec_of
from dalsegno.model.snapshots import History, Snapshot
from dalsegno.model.starts import AfterSnapshot, Bound, Full, Latest, Start
from dalsegno.triggers.table_triggers.model import Rules, Unprocessed, Watch
from dalsegno.triggers.table_triggers.plan.simulation import Past, simulate
from dalsegno.triggers.table_triggers.plan.unprocessed import unprocessed
from tests.unit.test_increments import LINE, TABLE, at, history, snap

ADDED = Watch(TABLE, "c")
BOTH_ENDS = replace(ADDED, spec=capture_spec_of("before_after", None, ()))


def counted(id_: int, parent: int | None, rows: int, operation: str = "append") -> Snapshot:
    return snap(id_, parent, operation, added_data_files="2", added_records=str(rows), added_files_size="100")


def test_what_came_since_the_checkpoint() -> None:
    line = history(counted(1, None, 5), counted(2, 1, 7), snap(3, 2, "replace"), counted(4, 3, 9))
    assert unprocessed(ADDED, line, at(1)) == Unprocessed((2, 4), from_millis(2000), from_millis(4000), 2, 4, 16, 200)
    found = unprocessed(ADDED, line, None)
    assert found is not None
    assert (found.span, found.snapshots, found.rows) == ((1, 4), 3, 21)
    assert unprocessed(ADDED, line, at(4)) is None


def test_what_summaries_do_not_say_is_not_made_up() -> None:
    found = unprocessed(ADDED, history(*LINE), at(1))
    assert found is not None
    assert (found.snapshots, found.files, found.rows, found.bytes) == (2, 2, 10, None)


@pytest.mark.parametrize(
    "line",
    [
        history(snap(1, None), snap(2, 1, "replace")),
        history(snap(1, None), snap(2, 1, added_data_files="0")),
        history(snap(1, None), snap(2, 1, "delete", changed_partition_count="0")),
        # Nothing was ever written.
        history(),
    ],
)
@pytest.mark.parametrize("watch", [ADDED, BOTH_ENDS])
def test_what_changes_no_row_does_not_count(line: History, watch: Watch) -> None:
    assert unprocessed(watch, line, at(1) if line.snapshots else None) is None


def test_a_table_that_was_replaced_by_an_empty_one() -> None:
    empty = replace(history(snap(1, None), snap(2, 1)), head=None)
    assert unprocessed(ADDED, empty, at(2)) is None
    found = unprocessed(BOTH_ENDS, empty, at(2))
    assert found is not None
    assert (found.span[0], found.rows, found.refusal) == (2, None, None)
    assert unprocessed(BOTH_ENDS, empty, at(None)) is None
    only_appends = replace(BOTH_ENDS, spec=capture_spec_of("before_after", ["append"], ()))
    refused = unprocessed(only_appends, empty, at(2))
    assert refused is not None and refused.refusal


def test_a_rollback_to_what_was_processed() -> None:
    """It brings nothing new; but those who capture both ends have rows to take back."""
    back = history(snap(1, None), snap(2, 1), snap(3, 2), head=2)
    assert unprocessed(ADDED, back, at(3)) is None
    assert unprocessed(ADDED, back, at(2)) is None
    assert unprocessed(BOTH_ENDS, back, at(2)) is None
    found = unprocessed(BOTH_ENDS, back, at(3))
    assert found is not None
    assert (found.span, found.rows, found.refusal) == ((3, 2), None, None)
    # What is written then is on another line than the checkpoint.
    on = history(snap(1, None), snap(2, 1), snap(3, 2), snap(4, 2), head=4)
    refused = unprocessed(ADDED, on, at(3))
    assert refused is not None
    assert "was rolled back" in (refused.refusal or "")


def test_deletes_count_for_those_who_capture_them() -> None:
    gone = snap(2, 1, "delete", deleted_data_files="1", deleted_records="8", removed_files_size="50")
    found = unprocessed(BOTH_ENDS, history(snap(1, None), gone), at(1))
    assert found is not None
    assert (found.snapshots, found.files, found.rows, found.bytes) == (1, 1, 8, 50)


def test_a_refusal_stays_the_same_until_the_checkpoint_moves() -> None:
    line = (snap(1, None), snap(2, 1, "overwrite"), snap(3, 2))
    first, then = unprocessed(ADDED, history(*line[:2]), at(1)), unprocessed(ADDED, history(*line), at(1))
    assert first is not None
    assert then is not None
    assert "is of kind 'overwrite'" in (first.refusal or "")
    assert (first.span, first.is_urgent) == (then.span, True)
    further = unprocessed(ADDED, history(*line, snap(4, 3, "overwrite")), at(2))
    assert further is not None
    assert further.span != then.span
    # What comes before it is captured, where a step takes no more than that.
    bounded = unprocessed(
        replace(ADDED, bound=Bound(1)), history(snap(1, None), snap(2, 1), snap(3, 2, "delete")), at(1)
    )
    assert bounded is not None
    assert bounded.refusal is None


@pytest.mark.parametrize(
    ("start", "span", "is_beginning"),
    [(Latest(), (0, 4), True), (Full(), (0, 4), False), (AfterSnapshot(2), (4, 4), False)],
)
def test_where_a_consumer_begins(start: Start, span: tuple[int, int], is_beginning: bool) -> None:
    found = unprocessed(replace(ADDED, start=start), history(*LINE), None)
    assert found is not None
    assert (found.span, found.is_beginning, found.refusal) == (span, is_beginning, None)
    # Once it has a checkpoint, that counts.
    assert unprocessed(replace(ADDED, start=start), history(*LINE), at(4)) is None


def test_a_start_that_is_not_there_is_refused() -> None:
    found = unprocessed(replace(ADDED, start=AfterSnapshot(99)), history(*LINE), None)
    assert found is not None
    assert "Snapshot 99 is not in the history" in (found.refusal or "")


# The past.

SECOND = timedelta(seconds=1)
ZERO = datetime(1970, 1, 1, tzinfo=UTC)


def past(rules: Rules, *seconds: int, spec: CaptureSpec | None = None) -> Past:
    """Of a table with an append in each of these seconds."""
    line = [replace(counted(n, n - 1 or None, 10), timestamp_ms=1000 * s) for n, s in enumerate(seconds, 1)]
    watch = replace(ADDED, spec=spec or ADDED.spec)
    return simulate(rules, {watch: history(*line)}, ZERO + 10_000 * SECOND)


def at_seconds(found: Past) -> list[tuple[float, int]]:
    """When runs are started, and for how many snapshots."""
    return [((each.at - ZERO).total_seconds(), sum(t.snapshots for t in each.tables.values())) for each in found.starts]


def test_without_rules_every_commit_starts_a_run() -> None:
    found = past(Rules("t"), 10, 20, 300)
    assert at_seconds(found) == [(10, 1), (20, 1), (300, 1)]
    assert (found.commits, found.since) == (3, ZERO + 10 * SECOND)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules("t", quiet=30 * SECOND), [(50, 2), (330, 1)]),
        (Rules("t", quiet=15 * SECOND), [(35, 2), (315, 1)]),
        (Rules("t", min_interval=60 * SECOND), [(10, 1), (70, 1), (300, 1)]),
        (Rules("t", min_rows=20), [(20, 2)]),
        (Rules("t", min_rows=30), [(300, 3)]),
        (Rules("t", min_rows=30, max_wait=100 * SECOND), [(110, 2), (400, 1)]),
        (Rules("t", min_snapshots=2, min_bytes=300, quiet=5 * SECOND), [(25, 2)]),
    ],
)
def test_rules_coalesce(rules: Rules, expected: list[tuple[float, int]]) -> None:
    found = past(rules, 10, 20, 300)
    assert (at_seconds(found), found.commits) == (expected, 3)


def test_all_of_several_tables() -> None:
    other = replace(ADDED, table=replace(TABLE, name="other"))
    one = history(snap(10, None), snap(20, 10), snap(30, 20, "replace"))
    two = history(snap(25, None), snap(40, 25))
    found = simulate(Rules("t", needs_all=True), {ADDED: one, other: two}, ZERO + 100 * SECOND)
    assert at_seconds(found) == [(25, 3)]
    assert found.commits == 4
    assert at_seconds(simulate(Rules("t"), {ADDED: one, other: two}, ZERO + 100 * SECOND)) == [
        (10, 1),
        (20, 1),
        (25, 1),
        (40, 1),
    ]


def test_history_that_has_expired_and_what_is_refused() -> None:
    line = history(snap(5, 4), snap(6, 5, "overwrite"), snap(7, 6))
    found = simulate(Rules("t"), {ADDED: line}, ZERO + 100 * SECOND)
    assert [[bool(table.refusal) for table in each.tables.values()] for each in found.starts] == [
        [False],
        [True],
        [False],
    ]
    assert simulate(Rules("t"), {ADDED: history()}, ZERO) == Past(None, 0, ())


def test_what_a_step_leaves_for_later_does_not_start_it() -> None:
    """A step with ``upto`` captures nothing beyond it."""
    line = history(counted(1, None, 5), counted(2, 1, 7), counted(3, 2, 9))
    upto = replace(ADDED, end=AfterSnapshot(2))
    assert unprocessed(upto, line, at(1)) is not None
    assert unprocessed(upto, line, at(2)) is None
    gone = unprocessed(replace(ADDED, end=AfterSnapshot(9)), line, at(1))
    assert gone is not None and "is not in the history" in (gone.refusal or "")


def test_the_start_of_a_step_counts_once() -> None:
    step = replace(ADDED, start=AfterSnapshot(1), is_start_for_first=True)
    found = unprocessed(step, history(*LINE), at(2))
    assert found is not None
    assert (found.span, found.refusal) == ((4, 4), None)
