"""Where targets say that a consumer stands, and what is refused because they do not tell."""

from __future__ import annotations

import json

import pytest

from dalsegno.errors import DataError, HistoryLost
from dalsegno.iceberg.stamps import writes_of
from dalsegno.model.snapshots import History, Operation, Snapshot
from dalsegno.model.stamps import StampedRange, Write
from dalsegno.model.tables import TableName
from dalsegno.plan.recovery import is_ahead, recovered_position, written_by_source
from tests.unit.test_increments import at, history, snap

SOURCE = TableName.of("lake.db.plays")
COPIES, DAYS = TableName.of("lake.db.copies"), TableName.of("lake.db.days")
#: A consumer is no number.
ODD = '[{"capture": "a", "consumer": 1, "table": "a.b.c", "uuid": "u", "branch": "main", "after": null, "upto": "1"}]'
LINE = history(*(snap(number, number - 1 or None) for number in range(1, 7)))


def write(
    target: TableName,
    time: int,
    capture: str,
    after: int | None,
    upto: int,
    *,
    place: str = "write",
    statement: str = "1",
    uuid: str = "u",
) -> Write:
    told = StampedRange(capture, "daily", SOURCE, uuid, "main", after, upto)
    return Write(target, 100 + time, time, "w", place, statement, (told,))


def position(*writes: Write, source: History = LINE) -> int | None:
    [known] = written_by_source(writes).values()
    return recovered_position(source, known).snapshot_id


def refusal(*writes: Write, source: History = LINE) -> str:
    with pytest.raises(DataError) as caught:
        position(*writes, source=source)
    return str(caught.value)


def test_the_newest_range_counts() -> None:
    assert position(write(COPIES, 1, "a", None, 2), write(COPIES, 2, "b", 2, 3)) == 3
    # Of two targets, in whichever order they are named.
    second = [write(COPIES, 3, "b", 2, 3), write(COPIES, 1, "a", None, 2)][::-1]
    assert position(write(DAYS, 2, "a", None, 2), write(DAYS, 4, "b", 2, 3), *second) == 3


def test_clocks_of_writers_may_differ() -> None:
    assert position(write(COPIES, 10, "a", None, 2), write(COPIES, 9, "b", 2, 3)) == 3


def test_a_beginning_that_the_source_proves() -> None:
    """Between the two, the checkpoint was moved over snapshots that changed nothing."""
    writes = [write(COPIES, 1, "a", None, 2), write(COPIES, 2, "b", 4, 5)]
    assert position(*writes) == 5
    # Java keeps the id of a parent that has expired, which proves it as well.
    assert position(*writes, source=history(*(snap(number, number - 1) for number in (3, 4, 5)))) == 5


def test_a_beginning_that_nothing_proves() -> None:
    writes = [write(COPIES, 1, "a", None, 2), write(COPIES, 2, "b", 4, 5)]
    said = refusal(*writes, source=history(snap(4, 3), snap(5, 4)))
    assert "Capture b begins after snapshot 4, the one before it, a, ends with snapshot 2" in said
    assert "dalsegno checkpoints set lake.db.plays --consumer daily --to 5" in said


def test_a_range_that_was_processed_again_on_purpose() -> None:
    assert position(write(COPIES, 1, "a", None, 2), write(COPIES, 2, "b", 2, 5), write(COPIES, 3, "c", 2, 4)) == 4


def test_a_capture_that_is_not_in_every_target() -> None:
    first = [write(COPIES, 1, "a", None, 2), write(DAYS, 2, "a", None, 2)]
    said = refusal(*first, write(COPIES, 3, "b", 2, 3))
    assert (
        "wrote to lake.db.copies, but not what the captures before it wrote to lake.db.days (w write statement" in said
    )
    assert "roll back lake.db.copies to before snapshot 103, and rebuild again" in said
    assert position(*first, write(COPIES, 3, "b", 2, 3), write(DAYS, 4, "b", 2, 3)) == 3
    # What is not named cannot be looked at.
    assert position(first[0], write(COPIES, 3, "b", 2, 3)) == 3


def test_a_capture_of_which_a_statement_is_missing() -> None:
    first = [write(COPIES, 1, "a", None, 2), write(COPIES, 2, "a", None, 2, statement="2")]
    assert "lake.db.copies (w write statement 2)" in refusal(*first, write(COPIES, 3, "b", 2, 3))
    second = [write(COPIES, 3, "b", 2, 3), write(COPIES, 4, "b", 2, 3, statement="2")]
    assert position(*first, *second) == 3
    # A workflow that says less than it used to.
    assert position(*first, write(COPIES, 3, "b", 2, 3, statement="2"), write(COPIES, 4, "b", 2, 3)) == 3


def test_a_loop_may_not_be_at_its_end() -> None:
    every = [write(COPIES, 1, "a", None, 2, place="each/1/write"), write(COPIES, 2, "b", 2, 3, place="each/1/write")]
    assert "in a loop: its other iterations may have written more, or not yet" in refusal(*every)


def test_a_source_that_is_another_one() -> None:
    with pytest.raises(HistoryLost, match="was dropped and created anew"):
        position(write(COPIES, 1, "a", None, 2, uuid="other"))
    with pytest.raises(HistoryLost, match="no longer has snapshot 9"):
        position(write(COPIES, 1, "a", None, 9))


def test_what_the_store_has_counts_if_it_is_later() -> None:
    assert is_ahead(LINE, at(4), at(2))
    assert is_ahead(LINE, at(4), at(None))
    assert not is_ahead(LINE, at(4), at(4))
    assert not is_ahead(LINE, at(2), at(4))
    with pytest.raises(HistoryLost, match="which is later is unknown"):
        is_ahead(LINE, at(4), at(4, table_uuid="other"))


def test_only_the_line_of_a_target_counts() -> None:
    ranges = [{"capture": "a", "consumer": "c", "table": str(SOURCE), "uuid": "u", "branch": "main"}]
    told = {"dalsegno.ranges": json.dumps([{**ranges[0], "after": None, "upto": "7"}]), "dalsegno.place": "write"}
    stamped = Snapshot(2, 1, 2, 20, Operation.APPEND, 0, "", told)
    rolled_back = history(snap(1, None), stamped, snap(3, 1))
    assert writes_of(COPIES, rolled_back) == []
    [found] = writes_of(COPIES, history(snap(1, None), stamped))
    assert (found.snapshot_id, found.place, found.ranges[0].upto) == (2, "write", 7)


@pytest.mark.parametrize("said", ["{}?", "[1]", '[{"capture": "a"}]', "7", ODD])
def test_a_stamp_that_cannot_be_read(said: str) -> None:
    stamped = Snapshot(2, 1, 2, 20, Operation.APPEND, 0, "", {"dalsegno.ranges": said})
    with pytest.raises(DataError, match=r"Snapshot 2 of lake\.db\.copies has a property dalsegno\.ranges"):
        writes_of(COPIES, history(snap(1, None), stamped))
