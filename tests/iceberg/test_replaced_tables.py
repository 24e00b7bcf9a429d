"""``CREATE OR REPLACE TABLE``: the same table with another history, and perhaps with other columns of the same ids."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from dalsegno.errors import UnsupportedChange
from tests.iceberg.support import COPY_ON_WRITE, Place, Source, rows
from tests.iceberg.test_changes import Told

pytestmark = pytest.mark.spark

_ROWS = ("1, 'd1', 10", "2, 'd2', 20", "3, null, null")
_HELD = rows((1, "d1", 10), (2, "d2", 20), (3, None, None))


def begun(place: Place, version: int, columns: str = "id int, day string, v int", *values: str) -> Source:
    source = place.table(columns, partitioned="day", version=version, properties=COPY_ON_WRITE)
    source.insert(*(values or _ROWS))
    for consumer, wishes in KINDS.items():
        assert not source.capture(consumer, start="latest", **(wishes | {"ranges": ()}))
    return source


KINDS: dict[str, dict[str, Any]] = {
    "both": {"changes": "before_after"},
    "keyed": {"changes": "keys", "keys": ["id"]},
    "range": {"changes": "range", "ranges": ["v"], "partitions": True},
    "upserts": {"changes": "upserts", "keys": ["id"]},
}


def replaced(source: Source, version: int, what: str) -> None:
    source.sql(f"create or replace table {{t}} {what.format(v=f'''tblproperties ('format-version' = '{version}')''')}")


@pytest.mark.parametrize("version", [1, 3])
def test_a_table_that_is_emptied_by_a_replacement(place: Place, version: int) -> None:
    source = begun(place, version)
    replaced(source, version, "(id int, day string, v int) using iceberg partitioned by (day) {v}")
    assert source.rows() == rows()
    told = Told.by(place, both := source.capture("both", **KINDS["both"]))
    assert (told.added, told.removed) == (rows(), _HELD)
    assert both.details["exact"]
    keys = place.spark_rows(source.capture("keyed", **KINDS["keyed"]).query())
    assert keys == rows((1,), (2,), (3,))
    ranged = source.capture("range", **KINDS["range"])
    assert (ranged.ranges["v"]["min"], ranged.ranges["v"]["max"]) == (10, 20)
    assert {each["values"]["day"] for each in ranged.partitions or ()} == {"d1", "d2", None}
    # Those who take the whole table must learn that it is empty now.
    whole = source.capture("upserts", start="full")
    assert whole and place.rows_of(whole) == rows()
    both.commit()
    assert not source.capture("both", **KINDS["both"])
    source.insert("4, 'd4', 40")
    assert Told.by(place, source.capture("both", **KINDS["both"])).by_type == {"insert": rows((4, "d4", 40))}


READABLE = {
    "as it was": ("id int, day string, v int", _HELD),
    "wider": ("id bigint, day string, v bigint", _HELD),
    "newly required": ("id int not null, day string, v int not null", _HELD),
    "with a required column more": ("id int, day string, v int, w int not null", rows(*((*r, None) for r in _HELD))),
    "without a column": ("id int, day string", rows(*(r[:2] for r in _HELD))),
}


@pytest.mark.parametrize(("version", "columns"), [(1, "newly required"), *((3, columns) for columns in READABLE)])
def test_old_rows_are_read_as_they_were(place: Place, version: int, columns: str) -> None:
    source = begun(place, version)
    new, before = READABLE[columns]
    replaced(source, version, f"({new}) using iceberg partitioned by (day) {{v}}")
    source.insert(", ".join(["7", "'d7'", "0", "0"][: new.count(",") + 1]))
    told = Told.by(place, source.capture("both", **KINDS["both"]))
    assert (told.added, told.removed) == (source.rows(), before)


UNREADABLE = {
    "another scale": ("id int, day string, v decimal(9, 2)", "id int, day string, v decimal(9, 3)"),
    "a number that was a date": ("id int, day string, v date", "id int, day string, v int"),
    "in a map": ("id int, day string, v map<string, int>", "id int, day string, v map<string, date>"),
    "of a partition": ("id int, day string, v int", "id int, day int, v int"),
}


@pytest.mark.parametrize("columns", UNREADABLE)
def test_another_type_is_refused(place: Place, columns: str) -> None:
    old, new = UNREADABLE[columns]
    source = begun(place, 2, old, "1, 'd1', null")
    replaced(source, 2, f"({new}) using iceberg {{v}}")
    for consumer, wishes in KINDS.items():
        with pytest.raises(UnsupportedChange, match=r"(v|v.value|day)' was .* and is "):
            source.capture(consumer, **(wishes | {"ranges": ()}))
        (plan,) = place.lake.plan(source.name, consumer=consumer, **{k: w for k, w in wishes.items() if k in _PLANNED})
        assert plan.refusal and plan.refusal["code"] == "UnsupportedChange"
        assert place.lake.checkpoint(source.name, consumer=consumer).position.snapshot_id == source.snapshots[0]
    assert place.rows_of(source.capture("both", start="full")) == Counter()


_PLANNED = ("changes", "keys")


def test_nested_columns_that_are_newly_required(place: Place) -> None:
    source = begun(
        place,
        2,
        "id int, day string, v struct<a: int, l: array<int>>",
        "1, 'd', struct(null, array(null))",
        "2, 'd', null",
    )
    replaced(
        source, 2, "(id int, day string, v struct<a: int not null, l: array<int> not null> not null) using iceberg {v}"
    )
    told = Told.by(place, source.capture("both", **KINDS["both"]))
    assert (told.added, told.removed) == (rows(), rows((1, "d", (None, (None,))), (2, "d", None)))


@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_stay_the_same_cancel_out(place: Place, version: int) -> None:
    source = begun(place, version)
    replaced(
        source, version, "using iceberg {v} as select id, day, v from {{t}} where id < 3".replace("{{t}}", source.full)
    )
    assert Told.by(place, source.capture("both", **KINDS["both"])).by_type == {"delete": rows((3, None, None))}
