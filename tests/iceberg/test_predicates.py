"""The predicates that a capture tells: Spark finds the rows that they are about with them, and reads little else."""

from __future__ import annotations

import pytest

from tests.iceberg.support import Place, Source

pytestmark = pytest.mark.spark

COLUMNS = (
    "id int, big bigint, flag boolean, amount decimal(9, 2), name string, day date, at timestamp, "
    "local timestamp_ntz, place struct<land: string>, number double, raw binary"
)
OLD = (
    "1, 9223372036854775807, true, 12.50, 'plain', date '2026-11-14', timestamp '2026-11-14 23:59:59.999999Z', "
    "timestamp_ntz '2026-11-14 23:59:59.999999', named_struct('land', 'at'), 0.1d, X'00'"
)
ODD = (
    r"2, -9223372036854775808, false, -0.01, 'it\'s \"odd\" \\\\ `a` \${day} $1 \n', date '1969-12-31', "
    "timestamp '1969-12-31 23:00:00Z', timestamp_ntz '1969-12-31 00:00:00', named_struct('land', '`x'), -0.0d, X'27'"
)
NONE = ", ".join(["3", *["null"] * 10])
NEXT = OLD.replace("11-14", "11-15").replace("plain", "next").replace("12.50", "100.00").replace("'at'", "'de'")

EXACT = [
    "big, flag, amount, name",
    "day, at, local, place.land",
    "days(at), hours(local), months(day)",
    "hours(at), days(local), years(day)",
]


def with_rows(place: Place, partitioned: str) -> Source:
    source = place.table(COLUMNS, partitioned=partitioned)
    source.insert(OLD)
    return source


def numbers(source: Source, predicate: str) -> set[int]:
    return {row[0] for row in source.rows(f"select id from {{t}} where {predicate}")}


@pytest.mark.parametrize("partitioned", EXACT)
def test_partitions_of_every_kind(place: Place, partitioned: str) -> None:
    source = with_rows(place, partitioned)
    source.capture().commit()
    source.insert(ODD, NONE)
    changes = source.capture(partitions=True)
    details = changes.details
    assert details["partition_filter"] != "true"
    assert numbers(source, details["partition_filter"]) == {2, 3}
    assert (details["reopened_partition_filter"], details["new_partition_filter"]) == (
        "false",
        details["partition_filter"],
    )
    changes.commit()
    # One partition that was there, and one that was not, unless both are in the same.
    source.insert(OLD.replace("1,", "4,", 1), NEXT.replace("1,", "5,", 1))
    details = source.capture(partitions=True).details
    found = {name: numbers(source, details[f"{name}partition_filter"]) for name in ("", "new_", "reopened_")}
    assert found[""] == {1, 4, 5}
    assert found["reopened_"] >= {1, 4}
    assert found["new_"] == {1, 4, 5} - found["reopened_"]


def test_what_cannot_be_written_is_left_out(place: Place) -> None:
    source = with_rows(place, "bucket(7, id), truncate(2, name), number, raw")
    assert source.capture(partitions=True).details["partition_filter"] == "true"


def test_partitions_after_the_spec_changed(place: Place) -> None:
    source = with_rows(place, "day")
    source.capture().commit()
    source.sql("alter table {t} add partition field name", "alter table {t} rename column day to event_day")
    source.insert(NEXT, ODD)
    details = source.capture(partitions=True).details
    assert details["new_partition_filter"] == "false"
    assert (
        numbers(source, details["reopened_partition_filter"]) == {1, 2} == numbers(source, details["partition_filter"])
    )
    assert "`event_day`" in details["partition_filter"]


def test_ranges(place: Place) -> None:
    source = with_rows(place, "")
    source.capture().commit()
    columns = ["big", "flag", "amount", "name", "day", "at", "local", "place.land"]
    source.insert(ODD)
    changes = source.capture(ranges=[*columns, "number", "raw"])
    for column in columns:
        assert numbers(source, changes.ranges[column]["filter"]) == {2}, column
        assert "IS NULL" not in changes.ranges[column]["filter"]
    assert [changes.ranges[column]["filter"] for column in ("number", "raw")] == ["true", "true"]
    changes.commit()
    source.insert(NONE, ODD.replace("1969-12-31", "2020-02-29"))
    changes = source.capture(ranges=["day"])
    assert changes.ranges["day"]["filter"] == "(`day` = DATE'2020-02-29' OR `day` IS NULL)"
    changes.commit()
    source.insert(NONE)
    assert source.capture(ranges=["day"]).ranges["day"]["filter"] == "`day` IS NULL"


def test_a_merge_reads_only_what_can_be_concerned(place: Place) -> None:
    source = place.table("id int, day date", partitioned="day")
    target = place.table("id int, day date, n int", partitioned="day")
    days = [f"date '2026-11-{number:02}'" for number in range(1, 21)]
    source.insert(*(f"{number}, {day}" for number, day in enumerate(days)))
    target.sql(f"insert into {{t}} select *, 1 from {source.full}")
    source.capture().commit()
    source.insert(f"3, {days[3]}", f"100, {days[17]}")
    changes = source.capture(partitions=True)
    prefixed = changes.details["partition_filter"].replace("`day`", "t.`day`")
    assert prefixed == "t.`day` IN (DATE'2026-11-04', DATE'2026-11-18')"
    merge = (
        f"merge into {{t}} t using {changes.table} s on t.day = s.day and t.id = s.id and {prefixed} "
        "when matched then update set n = t.n + 1 when not matched then insert (id, day, n) values (s.id, s.day, 1)"
    )
    plan = "\n".join(row[0] for row in place.sql(f"explain formatted {merge}".replace("{t}", target.full)))
    assert "day IN (20761, 20775)" in plan
    target.sql(merge)
    summary = next(raw for raw in target.metadata["snapshots"] if raw["snapshot-id"] == target.head)["summary"]
    assert (summary["changed-partition-count"], summary["deleted-data-files"]) == ("2", "1")
    assert target.rows("select count(*), sum(n) from {t}") == {(21, 22): 1}
