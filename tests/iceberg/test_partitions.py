"""Partitions of every transform and of several specs: what is listed, and which of them are new."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from dalsegno import Changes
from tests.iceberg.support import Place, rows

pytestmark = pytest.mark.spark

COLUMNS = "id int, at timestamp, day date, name string, amount decimal(9, 2)"


def listed(changes: Changes) -> dict[tuple[Any, ...], str]:
    """Names and values of each partition → whether it is new."""
    assert changes.partitions is not None
    found = {(item["spec_id"], *item["values"].items()): item["novelty"] for item in changes.partitions}
    assert len(found) == len(changes.partitions)
    return found


def counted(changes: Changes) -> Counter[tuple[Any, ...]]:
    """Names and values of each partition → its rows."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for item in changes.partitions or ():
        counts[tuple(item["values"].items())] += item["rows"]
    return counts


TRANSFORMS = {
    "identity": ("day", [{"day": "2026-11-14"}, {"day": "2026-11-15"}]),
    "of a string": ("name", [{"name": "apple"}, {"name": "äpfel/=%"}]),
    "of a decimal": ("amount", [{"amount": "-1.25"}, {"amount": "12345.00"}]),
    "hours": ("hours(at)", [{"at_hour": "2026-11-14-23"}, {"at_hour": "2026-11-15-00"}]),
    "days": ("days(at)", [{"at_day": "2026-11-14"}, {"at_day": "2026-11-15"}]),
    "months": ("months(day)", [{"day_month": "2026-11"}]),
    "years": ("years(at)", [{"at_year": "2026"}]),
    "truncated": ("truncate(3, name)", [{"name_trunc": "app"}, {"name_trunc": "äpf"}]),
    "truncated decimal": ("truncate(100, amount)", [{"amount_trunc": "-2.00"}, {"amount_trunc": "12345.00"}]),
}
ROWS = [
    "1, timestamp '2026-11-14 23:59:59.999', date '2026-11-14', 'apple', -1.25",
    "2, timestamp '2026-11-15 00:00:00', date '2026-11-15', 'äpfel/=%', 12345.00",
]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_each_transform(place: Place, transform: str) -> None:
    clause, expected = TRANSFORMS[transform]
    source = place.table(COLUMNS, partitioned=clause)
    source.insert(*ROWS)
    changes = source.capture(partitions=True)
    assert {tuple(values.items()) for values in expected} == {key[1:] for key in listed(changes)}
    assert set(listed(changes).values()) == {"new"}
    assert place.rows_of(changes) == source.rows()
    changes.commit()
    source.insert(ROWS[0])
    changes = source.capture(partitions=True)
    assert listed(changes) == {(0, *expected[0].items()): "reopened"}
    assert place.rows_of(changes).total() == 1


def test_buckets(place: Place) -> None:
    source = place.table(COLUMNS, partitioned="bucket(100, id)")
    source.insert(ROWS[0])
    source.taken()
    source.insert(*ROWS)
    changes = source.capture(partitions=True)
    buckets = place.sql(f"select {place.catalog}.system.bucket(100, 1), {place.catalog}.system.bucket(100, 2)")
    assert len(set(buckets[0])) == 2
    assert listed(changes) == {
        (0, ("id_bucket", buckets[0][0])): "reopened",
        (0, ("id_bucket", buckets[0][1])): "new",
    }


def test_empty_values_have_a_partition(place: Place) -> None:
    source = place.table(COLUMNS, partitioned="days(at), name")
    source.insert("1, null, null, null, null")
    source.taken()
    source.insert(
        "2, null, null, null, null", "3, null, null, 'a', null", "4, timestamp '1969-12-31', null, null, null"
    )
    changes = source.capture(partitions=True)
    assert listed(changes) == {
        (0, ("at_day", None), ("name", None)): "reopened",
        (0, ("at_day", None), ("name", "a")): "new",
        (0, ("at_day", "1969-12-31"), ("name", None)): "new",
    }
    assert place.rows_of(changes) == source.rows("select * from {t} where id > 1")


def test_bytes_have_a_partition(place: Place) -> None:
    source = place.table("id int, code binary", partitioned="code")
    source.insert("1, X'00FF'")
    source.taken()
    source.insert("2, X'00FF'", "3, X'41'")
    changes = source.capture(partitions=True)
    assert listed(changes) == {(0, ("code", "AP8=")): "reopened", (0, ("code", "QQ==")): "new"}
    assert place.rows_of(changes) == rows((2, b"\x00\xff"), (3, b"A"))


def test_not_a_number_has_a_partition(place: Place) -> None:
    source = place.table("id int, f double", partitioned="f")
    source.insert("1, double('NaN')", "2, 0.5")
    source.taken()
    source.insert("3, double('NaN')", "4, 1.5")
    changes = source.capture(partitions=True)
    assert listed(changes) == {(0, ("f", "NaN")): "reopened", (0, ("f", 1.5)): "new"}
    assert place.rows_of(changes) == rows((3, "NaN"), (4, 1.5))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_several_specs_in_one_range(place: Place, version: int) -> None:
    source = place.table(COLUMNS, partitioned="day", version=version)
    source.insert(*ROWS)
    after = source.head
    assert not source.capture(start="latest")
    source.insert(ROWS[0])
    source.sql("alter table {t} add partition field bucket(2, id)")
    source.insert(ROWS[0])
    source.sql("alter table {t} drop partition field day")
    source.insert(*ROWS)
    source.sql("alter table {t} add partition field truncate(2, name)")
    source.insert("3, null, null, null, null")
    changes = source.capture(partitions=True)
    assert place.rows_of(changes) == source.added(after, source.head)
    assert {key[0] for key in listed(changes)} == {0, 1, 2, 3}
    # Rows under another spec may belong to any of them, so none but an equal one can be told to be new.
    assert set(listed(changes).values()) == {"reopened"}
    assert sum(counted(changes).values()) == 5
    changes.commit()
    source.insert("4, null, null, 'zzz', null")
    assert set(listed(source.capture(partitions=True)).values()) == {"reopened"}


def test_a_dropped_field_of_version_1_stays_empty(place: Place) -> None:
    source = place.table("id int, a int, b int", partitioned="a, b", version=1)
    source.insert("1, 10, 100")
    source.taken()
    source.sql("alter table {t} drop partition field a")
    source.insert("2, 20, 200")
    changes = source.capture(partitions=True, ranges=["a", "b"])
    assert listed(changes) == {(1, ("a", None), ("b", 200)): "reopened"}
    assert place.rows_of(changes) == rows((2, 20, 200))
    assert {name: (item["min"], item["max"]) for name, item in changes.ranges.items()} == {
        "a": (20, 20),
        "b": (200, 200),
    }


def test_a_spec_by_a_column_that_was_dropped_since(place: Place) -> None:
    source = place.table("id int, a int, at timestamp", partitioned="a, days(at)")
    source.insert("1, 10, timestamp '2026-11-14'", "2, 20, timestamp '2026-11-15'")
    source.insert("3, 10, timestamp '2026-11-14'")
    first = source.snapshots[0]
    assert source.capture(start=str(first))
    source.capture().abandon()
    source.sql(
        "alter table {t} drop partition field a",
        "alter table {t} drop partition field at_day",
        "alter table {t} drop column a",
        "alter table {t} drop column at",
    )
    source.insert("4")
    changes = source.capture(start=str(first), partitions=True, ranges=["id"])
    assert place.rows_of(changes) == rows((3,), (4,))
    assert len(listed(changes)) == 2
    assert (changes.ranges["id"]["min"], changes.ranges["id"]["max"]) == (3, 4)


def test_a_renamed_partition_field_and_column(place: Place) -> None:
    source = place.table("id int, a int", partitioned="a")
    source.insert("1, 10")
    source.taken()
    source.sql("alter table {t} rename column a to z")
    source.insert("2, 10", "3, 30")
    changes = source.capture(partitions=True, ranges=["z"])
    assert sorted(listed(changes).values()) == ["new", "reopened"]
    assert place.rows_of(changes) == rows((2, 10), (3, 30))
    assert place.spark_rows(f"select * from {changes.table} where z = 30") == rows((3, 30))
    assert (changes.ranges["z"]["min"], changes.ranges["z"]["max"]) == (10, 30)


def test_a_promoted_partition_column(place: Place) -> None:
    """Bounds of older manifests are shorter than those of newer ones."""
    source = place.table("id int, a int", partitioned="a")
    source.insert("1, 10")
    source.insert("2, 20")
    source.taken()
    source.sql("alter table {t} alter column a type bigint")
    source.insert("3, 10", "4, 5000000000")
    changes = source.capture(partitions=True, ranges=["a"])
    assert listed(changes) == {(0, ("a", 10)): "reopened", (0, ("a", 5_000_000_000)): "new"}
    assert (changes.ranges["a"]["min"], changes.ranges["a"]["max"]) == (10, 5_000_000_000)


def test_novelty_is_unknown_without_the_checkpoints_snapshot(unpinned: Place) -> None:
    source = unpinned.table("id int, a int", partitioned="a")
    source.insert("1, 10")
    source.taken()
    source.insert("2, 20")
    unpinned.call(f"expire_snapshots(table => '{source.name}', retain_last => 1, older_than => now())")
    assert source.snapshots == [source.head]
    changes = source.capture(partitions=True)
    assert listed(changes) == {(0, ("a", 20)): "unknown"}
    assert unpinned.rows_of(changes) == rows((2, 20))


def test_ranges_of_every_type(place: Place) -> None:
    source = place.table(
        "n int, at timestamp, ntz timestamp_ntz, day date, name string, amount decimal(9, 2), f double, b boolean"
    )
    source.insert(
        "1, timestamp '2026-11-14 23:59:59.999999', timestamp_ntz '2026-11-14 01:00:00', date '2026-11-14', "
        "'a', -1.25, 0.5, true",
        "null, null, null, null, null, null, null, null",
    )
    source.insert(
        "-5, timestamp '1969-07-20 20:17:00', timestamp_ntz '1969-07-20 20:17:00', date '1969-07-20', "
        "'é', 7, -2.5, false",
    )
    names = ["n", "at", "ntz", "day", "name", "amount", "f", "b"]
    changes = source.capture(ranges=names)
    assert {name: (item["min"], item["max"]) for name, item in changes.ranges.items()} == {
        "n": (-5, 1),
        "at": ("1969-07-20T20:17:00+00:00", "2026-11-14T23:59:59.999999+00:00"),
        "ntz": ("1969-07-20T20:17:00", "2026-11-14T01:00:00"),
        "day": ("1969-07-20", "2026-11-14"),
        "name": ("a", "é"),
        "amount": ("-1.25", "7.00"),
        "f": (-2.5, 0.5),
        "b": (False, True),
    }


def test_a_range_may_be_wider_than_the_values_never_narrower(place: Place) -> None:
    """Writers shorten the bounds of long strings."""
    source = place.table("name string")
    long = "x" * 40
    source.insert(f"'{long}a'", f"'{long}b'")
    changes = source.capture(ranges=["name"])
    found = changes.ranges["name"]
    assert found["min"] <= f"{long}a"
    assert found["max"] >= f"{long}b"


def test_a_range_of_nothing_but_empty_values(place: Place) -> None:
    source = place.table("id int, n int")
    source.insert("1, null")
    found = source.capture(ranges=["n"]).ranges["n"]
    assert (found["min"], found["max"], found["unknown_because"]) == (None, None, None)


@pytest.mark.parametrize("partitioned", ["", "n"], ids=["by files", "by partitions"])
def test_a_range_without_bounds_is_unknown(place: Place, partitioned: str) -> None:
    """Partition values are known from the manifest list, whatever the writer keeps of columns."""
    no_metrics = {"write.metadata.metrics.default": "none"}
    source = place.table("id int, n int", partitioned=partitioned, properties=no_metrics)
    source.insert("1, 10")
    source.insert("2, 20")
    found = source.capture(ranges=["n"]).ranges["n"]
    if partitioned:
        assert (found["min"], found["max"], found["unknown_because"]) == (10, 20, None)
    else:
        assert (found["min"], found["max"]) == (None, None)
        assert "no bounds" in found["unknown_because"]


def test_values_in_partitions_are_the_tables(place: Place) -> None:
    """What is listed can be put into a WHERE clause."""
    source = place.table(COLUMNS, partitioned="day, name, amount")
    source.insert(*ROWS)
    changes = source.capture(partitions=True)
    for item in changes.partitions or ():
        values = item["values"]
        found = place.spark_rows(
            f"select id, at, day, name, amount from {changes.table} where day = date '{values['day']}' "
            f"and name = '{values['name']}' and amount = {values['amount']}"
        )
        assert found.total() == item["rows"] == 1
    assert place.rows_of(changes) == rows(
        (1, datetime(2026, 11, 14, 23, 59, 59, 999000), date(2026, 11, 14), "apple", Decimal("-1.25")),  # noqa: DTZ001
        (2, datetime(2026, 11, 15), date(2026, 11, 15), "äpfel/=%", Decimal("12345.00")),  # noqa: DTZ001
    )
