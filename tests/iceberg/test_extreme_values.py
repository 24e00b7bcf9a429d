"""The largest and the smallest values that Iceberg holds: captures tell them as they are, and predicates find them."""

from __future__ import annotations

import pytest

from tests.iceberg.support import Place, Source

pytestmark = pytest.mark.spark

#: Column, its type, a partitioning by it, and values that are each in a partition of their own.
_FAR = ["+10000-01-01", "+100000-06-30", "0001-01-01", "0000-02-29", "-0001-12-31", "1969-12-31"]
_TYPES = {
    "decimal(38, 10)": ["9999999999999999999999999999.9999999999BD", "-0.0000000001BD", "1E+20BD", "0BD"],
    "decimal(38, 38)": ["0.99999999999999999999999999999999999999BD", "-0.00000000000000000000000000000000000001BD"],
    "decimal(38, 0)": ["99999999999999999999999999999999999999BD", "-12345678901234567890123456789012345678BD"],
    "date": [*(f"date'{day}'" for day in _FAR), "date'+5881580-07-11'", "date'-5877641-06-23'"],
    "timestamp": [*(f"timestamp'{day} 23:59:59.999999Z'" for day in _FAR), "timestamp'+190000-01-10 04:00:54.775807Z'"],
    "timestamp_ntz": [f"timestamp_ntz'{day} 00:00:00'" for day in _FAR],
    "bigint": ["9223372036854775807", "-9223372036854775808"],
    "string": ["''", "'None'", "'null'", "'__HIVE_DEFAULT_PARTITION__'", "'a/b=c%'", "'😀\\n'"],
    "double": ["double('nan')", "double('infinity')", "-0.0D", "double('-infinity')"],
}
_UNITS = {
    "date": ["years", "months", "days"],
    "timestamp": ["hours", "days", "months"],
    "timestamp_ntz": ["years", "hours"],
}


def numbers(source: Source, predicate: str) -> set[int]:
    return {row[0] for row in source.rows(f"select id from {{t}} where {predicate}")}


@pytest.mark.parametrize("kind", _TYPES)
def test_partitions_and_ranges(place: Place, kind: str) -> None:
    values = ["null", *_TYPES[kind]]
    for transform in ["", *_UNITS.get(kind, [])]:
        source = place.table(f"id int, v {kind}", partitioned=f"{transform}(v)" if transform else "v")
        source.insert(*(f"{number}, cast({value} as {kind})" for number, value in enumerate(values)))
        changes = source.capture(partitions=True, ranges=["v"])
        every = set(range(len(values)))
        partitions = changes.partitions or []
        assert len({str(each["values"]) for each in partitions}) == len(partitions) > 1
        assert numbers(source, changes.details["partition_filter"]) == every
        assert numbers(source, changes.ranges["v"]["filter"]) == every
        split = [numbers(source, changes.details[f"{each}_partition_filter"]) for each in ("new", "reopened")]
        assert split[0] | split[1] == every and not split[0] & split[1]
        if kind != "double":
            assert changes.details["partition_filter"] != "true" or transform
        place.lake.plan(source.name, consumer="c", event_time="v" if "time" in kind or kind == "date" else None)
        changes.commit()


def test_ranges_of_numbers_that_are_none(place: Place) -> None:
    source = place.table("id int, plain double, odd double, part float", partitioned="part")
    source.insert("1, 1.5, double('nan'), float('nan')", "2, -0.0, 2.5, 1")
    ranges = source.capture(ranges=["plain", "odd", "part"], partitions=True).ranges
    assert (ranges["plain"]["min"], ranges["plain"]["max"]) == (0, 1.5)
    assert all("NaN" in ranges[column]["unknown_because"] for column in ("odd", "part"))
    assert ranges["odd"]["filter"] == ranges["part"]["filter"] == "true"
