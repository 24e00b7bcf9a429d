"""What the store promises, on each database."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import pytest

from dalsegno import errors
from dalsegno.errors import CapturePending, CaptureSettled, CheckpointMoved, UnknownName, UserError
from dalsegno.model.captures import Capture, CaptureSpec, CaptureState, ChangeKind, Mode
from dalsegno.model.snapshots import Operation, Position
from dalsegno.model.tables import TableName
from dalsegno.store import Store, run_queries
from tests.store.examples import LARGE, MEMBERS, NOW, PLAYBACK, at, capture, make_ready, process

LATER = NOW + timedelta(hours=1)


# Recording.


def test_a_recorded_capture_reads_back_as_it_was(store: Store) -> None:
    new = capture(upto=LARGE, tables=(PLAYBACK, MEMBERS))
    store.record_capture(new)
    assert store.capture("c1") == new
    assert store.pending("daily", PLAYBACK) == new
    assert store.pending("daily", MEMBERS) == new
    assert store.captures() == [new]


@pytest.mark.parametrize(
    "spec",
    [
        CaptureSpec(mode=Mode.VIEW),
        CaptureSpec(ChangeKind.KEYS, frozenset(Operation) - {Operation.REPLACE}, ("id", "day"), True),
    ],
)
def test_how_a_table_is_captured_reads_back_as_it_was(store: Store, spec: CaptureSpec) -> None:
    new = capture()
    new = replace(new, tables=(replace(new.tables[0], spec=spec),))
    store.record_capture(new)
    assert store.capture("c1") == new


def test_times_keep_their_microseconds_and_come_back_in_utc(store: Store) -> None:
    elsewhere = datetime(2026, 3, 29, 1, 30, 0, 999999, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    store.record_capture(capture(created_at=elsewhere))
    found = store.capture("c1").created_at
    assert found == elsewhere
    assert found.tzinfo is UTC


def test_times_before_1970_and_far_ahead_are_kept(store: Store) -> None:
    for number, year in enumerate((1582, 1969, 9000)):
        moment = datetime(year, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
        new = capture(f"c{number}", consumer=f"consumer{number}", created_at=moment)
        store.record_capture(new)
        assert store.capture(new.id).created_at == moment


def test_a_time_without_zone_is_refused(store: Store) -> None:
    with pytest.raises(Exception, match="no time zone"):
        store.record_capture(replace(capture(), created_at=datetime(2026, 1, 1)))  # noqa: DTZ001
    assert store.captures() == []


def test_names_and_details_may_hold_anything(store: Store) -> None:
    odd = replace(capture("c'1%_\\", consumer="tägliche 'Ü' -- ; %s :x"), created_by="☃ \n\t")
    details = {"partitions": ["\x00", "\ud800", "é"], "rows": LARGE, "ranges": {"z": None, "a": [1.5, True]}}
    store.record_capture(odd)
    ready = store.mark_ready(odd.id, {PLAYBACK: details})
    assert ready.tables[0].details == details
    assert list(ready.tables[0].details) == list(details)
    assert store.capture(odd.id) == ready
    assert store.pending(odd.consumer, PLAYBACK) == ready


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_what_no_column_of_text_can_hold_is_the_callers_mistake(store: Store, name: str) -> None:
    acts: list[Callable[[], object]] = [
        lambda: store.record_capture(capture(name)),
        lambda: store.record_capture(capture(consumer=name)),
        lambda: store.capture(name),
        lambda: store.pending(name, PLAYBACK),
    ]
    for act in acts:
        with pytest.raises(UserError, match="cannot be stored or looked up: it holds"):
            act()
    assert store.captures() == []


def test_numbers_of_more_than_64_bits_are_the_callers_mistake(store: Store) -> None:
    with pytest.raises(UserError, match="more than 64 bits"), store.database.reading() as connection:
        run_queries.numbered(connection, "w", 2**63)


def test_what_an_index_cannot_hold_is_the_callers_mistake(store: Store) -> None:
    """SQLite's holds anything."""
    # Random, as PostgreSQL compresses what it can.
    long = "".join(random.Random(1).choices(string.ascii_letters, k=20_000))
    if store.database.is_sqlite:
        store.record_capture(capture(long))
    else:
        with pytest.raises(UserError, match="The store cannot hold this: index row ") as refused:
            store.record_capture(capture(long))
        assert str(store.database.place) not in str(refused.value)


def test_details_that_are_no_json_are_refused_alike(store: Store) -> None:
    store.record_capture(capture())
    with pytest.raises(Exception, match="not JSON compliant"):
        store.mark_ready("c1", {PLAYBACK: {"lower": float("nan")}})
    assert store.capture("c1").state is CaptureState.PREPARING


def test_recording_the_same_capture_again_changes_nothing(store: Store) -> None:
    store.record_capture(capture())
    ready = store.mark_ready("c1", {PLAYBACK: {"files": 3}})
    store.record_capture(capture())
    assert store.captures() == [ready]


def test_recording_a_capture_again_after_it_was_settled_says_so(store: Store) -> None:
    store.record_capture(capture())
    store.abandon("c1", by="bob@server", now=LATER, reason="wrong table")
    with pytest.raises(CaptureSettled, match=r"c1 was abandoned by bob@server .*: wrong table"):
        store.record_capture(capture())


def test_a_second_capture_of_the_range_is_told_who_holds_it(store: Store) -> None:
    first = capture("c1", created_by="ada@laptop")
    store.record_capture(first)
    with pytest.raises(errors.CapturePending) as caught:
        store.record_capture(capture("c2", created_by="bob@server"))
    assert isinstance(caught.value, CapturePending)
    assert caught.value.capture_id == "c1"
    assert caught.value.capture_id == first.id
    assert caught.value.code == "CapturePending"
    assert str(caught.value) == (
        "daily has a pending capture of lake.db.playback: c1, preparing, made by ada@laptop at"
        " 2026-11-15 23:19:02 UTC. To abandon it, so that the next capture covers its rows: dalsegno abandon c1. "
        "Only if a job has processed its rows, to commit it: dalsegno commit c1"
    )
    assert store.captures() == [first]


def test_captures_that_share_one_table_of_several_exclude_each_other(store: Store) -> None:
    store.record_capture(capture("c1", tables=(MEMBERS, PLAYBACK)))
    with pytest.raises(errors.CapturePending, match="c1"):
        store.record_capture(capture("c2", tables=(PLAYBACK, TableName.of("lake.db.other"))))
    assert [c.id for c in store.captures()] == ["c1"]
    assert store.pending("daily", TableName.of("lake.db.other")) is None


def test_consumers_and_tables_do_not_disturb_each_other(store: Store) -> None:
    store.record_capture(capture("c1", consumer="daily", tables=(PLAYBACK,)))
    store.record_capture(capture("c2", consumer="daily", tables=(MEMBERS,)))
    store.record_capture(capture("c3", consumer="hourly", tables=(PLAYBACK,)))
    assert len(store.captures(pending_only=True)) == 3


def test_the_range_must_begin_at_the_checkpoint(store: Store) -> None:
    process(store, capture("c1", upto=10))
    with pytest.raises(CheckpointMoved) as caught:
        store.record_capture(capture("c2", after=7, upto=12))
    assert str(caught.value) == (
        "daily expected its checkpoint on lake.db.playback to be at snapshot 7, but it is at snapshot 10."
        " ada@laptop moved it with capture c1 at 2026-11-15 23:19:02 UTC (capture committed)."
        " Nothing was changed and nothing was lost."
        " Capture again: the next capture starts where the checkpoint is now."
    )
    assert store.pending("daily", PLAYBACK) is None
    store.record_capture(capture("c3", after=10, upto=12))


def test_a_schema_that_moved_on_does_not_move_the_checkpoint(store: Store) -> None:
    process(store, capture("c1", upto=10))
    new = capture("c2", after=10, upto=12)
    new = replace(new, tables=(replace(new.tables[0], after=at(10, schema_id=5)),))
    make_ready(store, new)
    assert store.commit("c2", by="ada", now=NOW).is_new


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (
            at(10, branch="audit"),
            "at snapshot 10 of branch audit, but it is at snapshot 10 of branch main",
        ),
        (
            at(10, uuid="uuid-2"),
            "with uuid uuid-2, but it is at snapshot 10 of the table with uuid uuid-1",
        ),
    ],
)
def test_the_same_snapshot_elsewhere_is_another_place(store: Store, after: Position, words: str) -> None:
    process(store, capture("c1", upto=10))
    new = capture("c2", after=10, upto=12)
    with pytest.raises(CheckpointMoved, match=words):
        store.record_capture(replace(new, tables=(replace(new.tables[0], after=after),)))


def test_a_first_capture_needs_that_there_is_no_checkpoint(store: Store) -> None:
    process(store, capture("c1", upto=10))
    with pytest.raises(CheckpointMoved, match="to be not set, but it is at snapshot 10"):
        store.record_capture(capture("c2", upto=12))


def test_a_later_capture_needs_that_there_is_one(store: Store) -> None:
    with pytest.raises(CheckpointMoved, match="to be at snapshot 10, but it is not set"):
        store.record_capture(capture("c1", after=10, upto=12))


def test_a_checkpoint_at_the_beginning_is_a_checkpoint(store: Store) -> None:
    store.move_checkpoint("daily", {PLAYBACK: (None, at(None))}, by="ada", now=NOW, reason="new table")
    assert store.position("daily", PLAYBACK) == at(None)
    with pytest.raises(CheckpointMoved, match="to be not set, but it is at the beginning"):
        store.record_capture(capture("c1", after=None, is_first=True))
    process(store, capture("c2", after=None, upto=10, is_first=False))
    assert store.position("daily", PLAYBACK) == at(10)


def test_one_table_out_of_place_keeps_the_whole_capture_out(store: Store) -> None:
    process(store, capture("c1", upto=10, tables=(MEMBERS,)))
    with pytest.raises(CheckpointMoved, match=r"lake\.db\.members"):
        store.record_capture(capture("c2", upto=12, tables=(PLAYBACK, MEMBERS)))
    assert store.pending("daily", PLAYBACK) is None
    assert [c.id for c in store.captures()] == ["c1"]


def test_a_change_table_belongs_to_one_capture_until_it_is_dropped(store: Store) -> None:
    def into(target: str, new: Capture) -> Capture:
        return replace(new, tables=(replace(new.tables[0], change_table=TableName.of(target)),))

    process(store, into("lake.icdc.m01", capture("c1", upto=10)))
    second = into("lake.icdc.m01", capture("c2", after=10, upto=12))
    other = into("lake.icdc.m01", capture("c3", consumer="hourly"))
    for clashing in (second, other):
        with pytest.raises(UserError, match=r"lake\.icdc\.m01 belongs to capture c1 of daily"):
            store.record_capture(clashing)
    store.mark_dropped("c1", LATER)
    store.record_capture(second)


@pytest.mark.parametrize("spoil", [lambda c: replace(c, tables=()), lambda c: replace(c, state=CaptureState.COMMITTED)])
def test_what_cannot_be_a_new_capture_is_refused(store: Store, spoil: Callable[[Capture], Capture]) -> None:
    with pytest.raises(ValueError, match="Only a pending capture of at least one table"):
        store.record_capture(spoil(capture()))


def test_a_capture_that_names_a_table_twice_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="clashes with itself"):
        store.record_capture(capture(tables=(PLAYBACK, PLAYBACK)))
    assert store.captures() == []


# Becoming ready.


def test_ready_keeps_the_first_details(store: Store) -> None:
    store.record_capture(capture(tables=(PLAYBACK, MEMBERS)))
    first = store.mark_ready("c1", {PLAYBACK: {"files": 1}, MEMBERS: {"files": 2}})
    assert first.state is CaptureState.READY
    assert [captured.details for captured in first.tables] == [{"files": 1}, {"files": 2}]
    assert store.mark_ready("c1", {PLAYBACK: {"files": 9}}) == first
    assert store.capture("c1") == first


def test_a_table_without_details_has_none(store: Store) -> None:
    store.record_capture(capture(tables=(PLAYBACK, MEMBERS)))
    ready = store.mark_ready("c1", {MEMBERS: {"files": 2}})
    assert [captured.details for captured in ready.tables] == [{}, {"files": 2}]
    store.record_capture(capture("c2", consumer="hourly"))
    assert store.mark_ready("c2", {}).state is CaptureState.READY


def test_details_of_a_table_that_is_not_captured_are_refused(store: Store) -> None:
    store.record_capture(capture())
    with pytest.raises(ValueError, match="members"):
        store.mark_ready("c1", {MEMBERS: {"files": 2}})


def test_a_settled_capture_does_not_become_ready(store: Store) -> None:
    store.record_capture(capture("c1"))
    store.abandon("c1", by="bob", now=LATER, reason="too large")
    with pytest.raises(CaptureSettled, match="abandoned by bob"):
        store.mark_ready("c1", {})
    process(store, capture("c2"))
    with pytest.raises(CaptureSettled, match="committed by ada@laptop"):
        store.mark_ready("c2", {})


# Committing.


def test_commit_moves_the_checkpoint_and_remembers_who_did_it(store: Store) -> None:
    make_ready(store, capture(upto=LARGE, tables=(PLAYBACK, MEMBERS)))
    commit = store.commit("c1", by="bob@server", now=LATER)
    assert commit.is_new
    checkpoint = commit.checkpoint
    assert (checkpoint.consumer, checkpoint.capture_id, checkpoint.moved_by) == ("daily", "c1", "bob@server")
    assert checkpoint.moved_at == LATER
    assert checkpoint.positions == {PLAYBACK: at(LARGE), MEMBERS: at(LARGE)}
    assert store.checkpoints("daily") == [checkpoint]
    assert store.position("daily", PLAYBACK) == store.position("daily", MEMBERS) == at(LARGE)
    settled = store.capture("c1")
    assert (settled.state, settled.settled_by, settled.settled_at) == (
        CaptureState.COMMITTED,
        "bob@server",
        LATER,
    )
    assert store.pending("daily", PLAYBACK) is None


def test_committing_again_returns_the_checkpoint_of_the_first_time(store: Store) -> None:
    make_ready(store, capture("c1"))
    first = store.commit("c1", by="ada", now=NOW)
    process(store, capture("c2", after=10, upto=20))
    again = store.commit("c1", by="bob", now=LATER)
    assert not again.is_new
    assert again.checkpoint == first.checkpoint
    assert store.position("daily", PLAYBACK) == at(20)
    assert len(store.checkpoints("daily")) == 2


def test_an_abandoned_capture_cannot_be_committed(store: Store) -> None:
    make_ready(store, capture())
    store.abandon("c1", by="bob@server", now=LATER, reason="wrong table")
    with pytest.raises(CaptureSettled) as caught:
        store.commit("c1", by="ada", now=LATER)
    assert str(caught.value) == (
        "Capture c1 was abandoned by bob@server at 2026-11-16 00:19:02 UTC: wrong table."
        " The checkpoint did not move. Capture again: the next capture takes the same range."
    )
    assert store.position("daily", PLAYBACK) is None
    assert store.checkpoints("daily") == []


def test_a_capture_that_is_not_ready_cannot_be_committed(store: Store) -> None:
    store.record_capture(capture())
    with pytest.raises(UserError, match=r"not ready.*Run capture again to finish it"):
        store.commit("c1", by="ada", now=NOW)
    assert store.capture("c1").state is CaptureState.PREPARING
    assert store.position("daily", PLAYBACK) is None


def test_a_checkpoint_that_moved_all_the_same_stops_the_commit(store: Store) -> None:
    """No operation moves it under a pending capture; a restored backup or a hand in the database may."""
    make_ready(store, capture("c1", tables=(MEMBERS, PLAYBACK)))
    make_ready(store, capture("c0", consumer="other", upto=5))
    store.commit("c0", by="bob", now=NOW)
    with store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE positions SET consumer = 'daily'")
    with pytest.raises(CheckpointMoved, match="to be not set, but it is at snapshot 5"):
        store.commit("c1", by="ada", now=LATER)
    assert store.capture("c1").state is CaptureState.READY
    assert store.pending("daily", MEMBERS) is not None
    assert store.position("daily", MEMBERS) is None
    assert store.checkpoints("daily") == []


def test_ranges_follow_each_other_without_gap(store: Store) -> None:
    after: int | None = None
    for upto in (3, 5, 8):
        process(store, capture(f"c{upto}", after=after, upto=upto))
        after = upto
    history = store.checkpoints("daily", PLAYBACK)
    assert [checkpoint.positions[PLAYBACK].snapshot_id for checkpoint in history] == [8, 5, 3]
    assert [c.tables[0].after.snapshot_id for c in store.captures()] == [5, 3, None]


# Abandoning and dropping.


def test_abandon_frees_the_range_and_leaves_the_checkpoint(store: Store) -> None:
    process(store, capture("c1", upto=10))
    make_ready(store, capture("c2", after=10, upto=20))
    abandoned = store.abandon("c2", by="bob", now=LATER, reason="wrong code")
    assert abandoned == store.capture("c2")
    assert (abandoned.state, abandoned.settled_by, abandoned.settled_at, abandoned.reason) == (
        CaptureState.ABANDONED,
        "bob",
        LATER,
        "wrong code",
    )
    assert store.position("daily", PLAYBACK) == at(10)
    process(store, capture("c3", after=10, upto=25))


def test_abandoning_again_keeps_what_was_said_first(store: Store) -> None:
    store.record_capture(capture())
    first = store.abandon("c1", by="bob", now=NOW, reason="first")
    assert store.abandon("c1", by="ada", now=LATER, reason="second") == first


def test_a_committed_capture_cannot_be_abandoned(store: Store) -> None:
    process(store, capture())
    with pytest.raises(CaptureSettled, match=r"c1 was committed by ada@laptop at 2026-11-15 23:19:02 UTC"):
        store.abandon("c1", by="bob", now=LATER, reason="late")
    assert store.capture("c1").state is CaptureState.COMMITTED
    assert store.capture("c1").reason is None


def test_dropping_is_remembered_once(store: Store) -> None:
    process(store, capture())
    assert store.mark_dropped("c1", NOW).dropped_at == NOW
    assert store.mark_dropped("c1", LATER).dropped_at == NOW
    assert store.captures(undropped_only=True) == []
    assert len(store.captures()) == 1


def test_a_pending_capture_cannot_be_dropped(store: Store) -> None:
    make_ready(store, capture())
    with pytest.raises(UserError, match=r"c1 of daily is still pending \(ready\)"):
        store.mark_dropped("c1", NOW)
    assert store.capture("c1").dropped_at is None


# Moving the checkpoint by hand.


def test_a_checkpoint_is_carried_over_to_another_name(store: Store) -> None:
    store.move_checkpoint("daily", {PLAYBACK: (None, at(1))}, by="ada", now=NOW, reason="set")
    assert store.last_position("daily", at(1).table_uuid) == (PLAYBACK, at(1))
    carry_over = partial(store.carry_over, "daily", PLAYBACK, MEMBERS, by="ada", now=LATER, reason="renamed")
    with pytest.raises(CheckpointMoved):
        carry_over(None, at(2))
    store.record_capture(pending := capture(after=1, upto=2))
    with pytest.raises(CapturePending):
        carry_over(None, at(1))
    store.abandon(pending.id, by="ada", now=NOW, reason="renamed")
    carry_over(None, at(1))
    assert (store.position("daily", PLAYBACK), store.position("daily", MEMBERS)) == (None, at(1))
    assert [moved.reason for moved in store.checkpoints("daily", MEMBERS)] == ["renamed"]
    assert store.last_position("daily", at(1).table_uuid) == (MEMBERS, at(1))
    assert store.last_position("other", at(1).table_uuid) is None


def test_a_checkpoint_can_be_set_and_set_back(store: Store) -> None:
    first = store.move_checkpoint(
        "daily", {PLAYBACK: (None, at(10)), MEMBERS: (None, at(4))}, by="ada", now=NOW, reason="from latest"
    )
    assert first.capture_id is None
    assert first.positions == {PLAYBACK: at(10), MEMBERS: at(4)}
    second = store.move_checkpoint(
        "daily", {PLAYBACK: (at(10), at(None))}, by="bob", now=LATER, reason="process all again"
    )
    assert store.position("daily", PLAYBACK) == at(None)
    assert store.position("daily", MEMBERS) == at(4)
    assert store.checkpoints("daily") == [second, first]
    assert store.checkpoints("daily", MEMBERS) == [first]
    assert store.checkpoints("hourly") == []


@pytest.mark.parametrize("expected", [None, at(9)])
def test_a_checkpoint_is_moved_only_from_where_it_is_expected(store: Store, expected: Position | None) -> None:
    store.move_checkpoint("daily", {PLAYBACK: (None, at(10))}, by="ada", now=NOW, reason="from latest")
    moves: dict[TableName, tuple[Position | None, Position]] = {
        MEMBERS: (None, at(1)),
        PLAYBACK: (expected, at(12)),
    }
    with pytest.raises(CheckpointMoved, match=r"ada moved it by hand at .* \(from latest\)"):
        store.move_checkpoint("daily", moves, by="bob", now=LATER, reason="skip")
    assert store.position("daily", PLAYBACK) == at(10)
    assert store.position("daily", MEMBERS) is None
    assert len(store.checkpoints("daily")) == 1


def test_a_checkpoint_is_not_moved_under_a_pending_capture(store: Store) -> None:
    process(store, capture("c1", upto=10))
    make_ready(store, capture("c2", after=10, upto=20))
    with pytest.raises(CapturePending) as caught:
        store.move_checkpoint("daily", {PLAYBACK: (at(10), at(30))}, by="bob", now=LATER, reason="skip")
    assert caught.value.capture_id == "c2"
    assert store.position("daily", PLAYBACK) == at(10)


def test_moving_nothing_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="nothing to move"):
        store.move_checkpoint("daily", {}, by="bob", now=LATER, reason="none")


# Looking things up.


def test_positions_tell_who_put_each_mark_there(store: Store) -> None:
    process(store, capture("c1", upto=10, tables=(PLAYBACK, MEMBERS)))
    store.move_checkpoint("hourly", {PLAYBACK: (None, at(3))}, by="bob", now=LATER, reason="from latest")
    marks = store.positions()
    assert [(m.consumer, m.table, m.position) for m in marks] == [
        ("daily", MEMBERS, at(10)),
        ("daily", PLAYBACK, at(10)),
        ("hourly", PLAYBACK, at(3)),
    ]
    assert [(m.moved_by, m.capture_id, m.reason) for m in marks[1:]] == [
        ("ada@laptop", "c1", "capture committed"),
        ("bob", None, "from latest"),
    ]
    assert store.positions("hourly") == marks[2:]
    assert store.positions("nobody") == []
    assert store.position("nobody", PLAYBACK) is None


def test_captures_come_newest_first_and_can_be_narrowed(store: Store) -> None:
    process(store, capture("c1", created_at=NOW))
    store.record_capture(capture("c2", after=10, upto=12, created_at=LATER))
    store.record_capture(capture("c0", consumer="hourly", created_at=NOW + timedelta(minutes=1)))
    assert [c.id for c in store.captures()] == ["c2", "c0", "c1"]
    assert [c.id for c in store.captures("daily")] == ["c2", "c1"]
    assert [c.id for c in store.captures(pending_only=True)] == ["c2", "c0"]
    assert [c.id for c in store.captures("daily", pending_only=True)] == ["c2"]


def test_the_beginning_of_an_id_is_enough_if_it_is_unique(store: Store) -> None:
    for id in ("abc1", "abd2", "abd", "x_1", "xy1"):
        store.record_capture(capture(id, consumer=id))
    assert store.capture("abc").id == "abc1"
    assert store.capture("abd").id == "abd"
    assert store.capture("x_").id == "x_1"
    with pytest.raises(UnknownName, match="'ab' is the beginning of 3 captures: abc1, abd, abd2"):
        store.capture("ab")
    with pytest.raises(UnknownName, match=r"There is no capture 'ABC'"):
        store.capture("ABC")


@pytest.mark.parametrize("asked", ["", "%", "nothing like it"])
def test_a_capture_that_is_not_there_is_unknown(store: Store, asked: str) -> None:
    store.record_capture(capture("c1"))
    with pytest.raises(UnknownName, match="dalsegno captures"):
        store.capture(asked)


def test_close_matches_are_offered(store: Store) -> None:
    store.record_capture(capture("daily-20261115-7f3a"))
    with pytest.raises(UnknownName, match=r"Did you mean daily-20261115-7f3a\?"):
        store.capture("daily-20261115-7f4a")


def test_changes_want_the_whole_id(store: Store) -> None:
    store.record_capture(capture("abc1"))
    changes: list[Callable[[], object]] = [
        lambda: store.mark_ready("abc", {}),
        lambda: store.commit("abc", by="ada", now=NOW),
        lambda: store.abandon("abc", by="ada", now=NOW, reason=""),
        lambda: store.mark_dropped("abc", NOW),
    ]
    for change in changes:
        with pytest.raises(UnknownName, match=r"Did you mean abc1\?"):
            change()


def test_everything_is_still_there_after_opening_again(url: str) -> None:
    with Store.open(url) as store:
        process(store, capture("c1", upto=10))
        store.record_capture(capture("c2", after=10, upto=12))
        before = (store.captures(), store.positions(), store.checkpoints("daily"))
    with Store.open(url) as store:
        assert (store.captures(), store.positions(), store.checkpoints("daily")) == before
