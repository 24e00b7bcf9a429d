"""A predicate of partitions holds for their rows, and for no others where all of a partition can be written down."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from dalsegno.iceberg.layout import Layout
from dalsegno.iceberg.partitions import Novelty, Partition
from dalsegno.iceberg.predicates import partition_filters

#: Day, country and bucket; of the last nothing can be said about the column.
Row = tuple[int | None, str | None, int]
ROWS: list[Row] = list(product([None, 1, 2, 3], [None, "at", "de", ""], [0, 1]))
WHOLE, BY_DAY, WITH_BUCKETS = range(3)
LAYOUT = Layout(
    {
        "schemas": [
            {
                "schema-id": 0,
                "type": "struct",
                "fields": [
                    {"id": 1, "name": "day", "required": False, "type": "int"},
                    {"id": 2, "name": "country", "required": False, "type": "string"},
                    {"id": 3, "name": "id", "required": False, "type": "long"},
                ],
            }
        ],
        "partition-specs": [
            {
                "spec-id": spec_id,
                "fields": [
                    {"name": name, "transform": transform, "source-id": source, "field-id": 1000 + source}
                    for name, transform, source in fields
                ],
            }
            for spec_id, fields in {
                WHOLE: [("day", "identity", 1), ("country", "identity", 2)],
                BY_DAY: [("day", "identity", 1)],
                WITH_BUCKETS: [("day", "identity", 1), ("id_bucket", "bucket[2]", 3)],
            }.items()
        ],
    },
    0,
)


def values(spec_id: int, row: Row) -> dict[str, object]:
    day, country, bucket = row
    of_specs: dict[int, dict[str, object]] = {
        WHOLE: {"day": day, "country": country},
        BY_DAY: {"day": day},
        WITH_BUCKETS: {"day": day, "id_bucket": bucket},
    }
    return of_specs[spec_id]


def partition(spec_id: int, row: Row, novelty: Novelty) -> Partition:
    return Partition(spec_id, values(spec_id, row), 1, 1, 1, novelty)


def matching(predicate: str) -> set[Row]:
    """The rows for which a predicate holds; SQLite reads it as Spark does, as long as no value is odd."""
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (day INT, country TEXT, id INT)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
        return set(database.execute(f"SELECT * FROM t WHERE {predicate}").fetchall())


def rows_of(partitions: Collection[Partition]) -> set[Row]:
    return {row for row in ROWS for each in partitions if values(each.spec_id, row) == each.values}


def some(spec_ids: st.SearchStrategy[int]) -> st.SearchStrategy[list[Partition]]:
    made = st.builds(partition, spec_ids, st.sampled_from(ROWS), st.sampled_from(Novelty))
    return st.lists(made, max_size=20, unique_by=lambda each: (each.spec_id, *each.values.items()))


@given(some(st.just(WHOLE)))
def test_what_can_be_written_down_is_exact(partitions: list[Partition]) -> None:
    filters = partition_filters(LAYOUT, partitions)
    new = [each for each in partitions if each.novelty is Novelty.NEW]
    assert matching(filters.every) == rows_of(partitions)
    assert matching(filters.new) == rows_of(new)
    assert matching(filters.reopened) == rows_of([each for each in partitions if each not in new])


@given(some(st.integers(WHOLE, WITH_BUCKETS)))
def test_nothing_is_left_out_and_nothing_is_told_twice(partitions: list[Partition]) -> None:
    filters = partition_filters(LAYOUT, partitions)
    new, reopened = matching(filters.new), matching(filters.reopened)
    assert matching(filters.every) >= rows_of(partitions)
    assert new | reopened == matching(filters.every)
    assert reopened >= rows_of([each for each in partitions if each.novelty is not Novelty.NEW])
    if reopened:
        assert not new & reopened


def test_how_they_read() -> None:
    days = [partition(WHOLE, (day, country, 0), Novelty.NEW) for day in (1, 2) for country in ("at", "de")]
    late = partition(WHOLE, (3, None, 0), Novelty.REOPENED)
    filters = partition_filters(LAYOUT, [*days, late])
    assert filters.new == "(`day` IN (1, 2) AND `country` IN ('at', 'de'))"
    assert filters.reopened == "(`day` = 3 AND `country` IS NULL)"
    assert filters.every == f"({filters.reopened} OR {filters.new})"
    assert partition_filters(LAYOUT, []).every == "false"
    odd = partition_filters(LAYOUT, [partition(WHOLE, (1, "a\0$'", 0), Novelty.NEW)])
    assert odd.every == r"(`day` = 1 AND `country` = 'a\u0000\u0024\'')"
    unknown = partition_filters(LAYOUT, None)
    assert (unknown.every, unknown.new, unknown.reopened) == ("true", "false", "true")
