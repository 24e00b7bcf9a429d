"""Equality deletes reach every older file of their partition, or of the table: captures of both ends stay exact."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from dalsegno.plan.forecast import Cost
from tests.iceberg.row_deltas import changed_rows, row_delta
from tests.iceberg.support import COPY_ON_WRITE, MERGE_ON_READ, Place, Source, rows

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("version", [2, 3])]


def begun(place: Place, version: int, *, partitioned: str = "", modes: dict[str, str] = MERGE_ON_READ) -> Source:
    """Six rows of two days in two files or more, and a consumer that has processed them."""
    source = place.table("id bigint, day string, v int", partitioned=partitioned, version=version, properties=modes)
    source.insert("1, 'd0', 1", "2, 'd1', 2", "3, 'd0', 3")
    source.insert("4, 'd1', 4", "5, 'd0', 5", "6, 'd1', 6")
    source.capture(start="latest", changes="before_after", keys=["id"])
    return source


def test_they_reach_older_files_only(place: Place, version: int) -> None:
    source = begun(place, version)
    row_delta(source, deletes=[(1,), (4,), (9,)])
    source.insert("4, 'd0', 40", "9, 'd0', 90")
    assert changed_rows(source) == {
        "delete": rows((1, "d0", 1)),
        "update_before": rows((4, "d1", 4)),
        "update_after": rows((4, "d0", 40)),
        "insert": rows((9, "d0", 90)),
    }


def test_an_upsert_deletes_and_inserts_in_one_commit(place: Place, version: int) -> None:
    source = begun(place, version)
    row_delta(source, deletes=[(2,), (3,), (7,)], inserts=[(2, "d1", 20), (3, "d0", 3), (7, "d0", 7)])
    # The third row was written again as it was.
    assert changed_rows(source) == {
        "update_before": rows((2, "d1", 2)),
        "update_after": rows((2, "d1", 20)),
        "insert": rows((7, "d0", 7)),
    }
    row_delta(source, deletes=[(2,)], inserts=[(2, "d1", 21)])
    row_delta(source, deletes=[(2,)], inserts=[(2, "d1", 22)])
    assert changed_rows(source) == {"update_before": rows((2, "d1", 20)), "update_after": rows((2, "d1", 22))}


def test_they_reach_their_own_partition_only(place: Place, version: int) -> None:
    source = begun(place, version, partitioned="day")
    row_delta(source, deletes=[(1,), (2,)], partition="day=d1")
    assert changed_rows(source) == {"delete": rows((2, "d1", 2))}


def test_without_a_partition_they_reach_every_one(place: Place, version: int) -> None:
    """A table that became partitioned: deletes of the old spec are for the whole table."""
    source = begun(place, version)
    source.sql("alter table {t} add partition field day")
    source.insert("7, 'd0', 7", "8, 'd1', 8")
    assert changed_rows(source) == {"insert": rows((7, "d0", 7), (8, "d1", 8))}
    row_delta(source, deletes=[(1,), (8,)], spec_id=0)
    assert changed_rows(source) == {"delete": rows((1, "d0", 1), (8, "d1", 8))}


def test_several_columns_and_values_that_are_missing(place: Place, version: int) -> None:
    source = begun(place, version)
    source.insert("null, 'd0', 7", "null, 'd1', 8")
    changed_rows(source)
    row_delta(source, deletes=[(None, "d0"), (4, "d0"), (5, "d0")], by=["id", "day"])
    assert changed_rows(source) == {"delete": rows((None, "d0", 7), (5, "d0", 5))}


@pytest.mark.parametrize("modes", [COPY_ON_WRITE, MERGE_ON_READ], ids=["copy-on-write", "merge-on-read"])
def test_those_from_before_the_range_apply_at_both_ends(place: Place, version: int, modes: dict[str, str]) -> None:
    source = begun(place, version, modes=modes)
    row_delta(source, deletes=[(1,), (4,)])
    assert changed_rows(source) == {"delete": rows((1, "d0", 1), (4, "d1", 4))}
    source.sql("update {t} set v = 30 where id = 3")
    source.insert("4, 'd1', 44")
    assert changed_rows(source) == {
        "update_before": rows((3, "d0", 3)),
        "update_after": rows((3, "d0", 30)),
        "insert": rows((4, "d1", 44)),
    }


def test_compaction_applies_and_removes_them(place: Place, version: int) -> None:
    source = begun(place, version, partitioned="day")
    row_delta(source, deletes=[(1,)], partition="day=d0")
    compact = f"rewrite_data_files(table => '{source.name}', options => map('rewrite-all', 'true'))"
    place.call(compact)
    assert changed_rows(source) == {"delete": rows((1, "d0", 1))}
    row_delta(source, deletes=[(3,)], inserts=[(3, "d0", 33)], partition="day=d0")
    assert changed_rows(source) == {"update_before": rows((3, "d0", 3)), "update_after": rows((3, "d0", 33))}
    place.call(compact)
    assert changed_rows(source) == {}


def test_the_keys_they_name_are_a_table_of_their_own(place: Place, version: int) -> None:
    """It refers to the delete files themselves, also to those that compaction has applied and removed since."""
    source = begun(place, version, partitioned="day")
    row_delta(source, deletes=[(1,), (9,)], partition="day=d0")
    row_delta(source, deletes=[(4,)], inserts=[(4, "d1", 40)], partition="day=d1")
    place.call(f"rewrite_data_files(table => '{source.name}', options => map('rewrite-all', 'true'))")
    changes = source.capture(changes="before_after", keys=["id"])
    assert place.rows_in(tuple(str(changes.deleted_keys).split(".")[1:])) == rows((1, "d0"), (9, "d0"), (4, "d1"))
    sizes = dict(place.sql(f"select file_path, file_size_in_bytes from {source.full}.all_delete_files"))
    expected = {"columns": [["id"]], "files": 2, "rows": 3, "bytes": sum(sizes.values())}
    assert changes.details["deleted_keys"] == expected
    assert changes.commit().left_over == ()
    assert not any(name.name.endswith("deleted_keys") for name in place.change_tables())
    source.insert("7, 'd0', 7")
    assert source.capture(changes="before_after", keys=["id"]).deleted_keys is None


def test_a_plan_counts_the_two_ends_and_a_view_tells_their_difference(place: Place, version: int) -> None:
    source = begun(place, version, partitioned="day")
    row_delta(source, deletes=[(1,), (9,)], partition="day=d0")
    source.insert("9, 'd0', 90")
    wishes: dict[str, Any] = {"changes": "before_after", "keys": ["id"]}
    (plan,) = place.lake.plan(source.name, consumer="c", **wishes)
    changes = source.capture(**wishes)
    assert plan.before is not None
    assert asdict(plan.before) == changes.details["before"]
    assert plan.to_read == Cost.total([Cost(changes.files, changes.rows, changes.bytes), plan.before])
    expected = rows((1, "d0", 1, "delete"), (9, "d0", 90, "insert"))
    assert place.spark_rows(f"select * from {changes.changes_view}") == expected
    assert place.spark_rows(changes.query()) == expected
    told_later = source.capture(**wishes, ranges=["id", "v"], partitions=True)
    assert {name: (found["min"], found["max"]) for name, found in told_later.ranges.items()} == {
        "id": (1, 9),
        "v": (1, 90),
    }
    assert [part["values"] for part in told_later.partitions or ()] == [{"day": "d0"}]


def test_keys_of_several_kinds_and_of_required_columns(place: Place, version: int) -> None:
    source = place.table("id bigint not null, day string, v int not null", version=version)
    source.insert("1, 'd0', 1", "2, 'd1', 2")
    source.capture(start="latest", changes="before_after")
    row_delta(source, deletes=[(1,)])
    row_delta(source, deletes=[(2, "d1")], by=["id", "day"])
    changes = source.capture(changes="before_after")
    assert place.spark_rows(f"select * from {changes.deleted_keys}") == rows((1, None), (2, "d1"))
    assert changes.details["deleted_keys"]["columns"] == [["id"], ["id", "day"]]
