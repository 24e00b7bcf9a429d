"""One change table, read by every engine there is: the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dalsegno import Changes
from tests.iceberg.support import (
    MERGE_MANIFESTS,
    MERGE_ON_READ,
    Place,
    Rows,
    Source,
    arrow_rows,
    duckdb_rows,
    plain,
    rows,
)

pytestmark = [
    pytest.mark.spark,
    # Engines' own habits, none of which is ours to mend.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:Iceberg scan planning with the polars_iceberg plugin"),
]


def metadata_location(place: Place, changes: Changes) -> str:
    return place.pyiceberg(changes.identifier).metadata_location


def by_spark(place: Place, changes: Changes) -> Rows:
    return place.spark_rows(f"select * from {changes.table}")


def by_pyiceberg(place: Place, changes: Changes) -> Rows:
    return arrow_rows(place.pyiceberg(changes.identifier).scan().to_arrow())


def by_polars(place: Place, changes: Changes) -> Rows:
    import polars

    frame = polars.scan_iceberg(place.pyiceberg(changes.identifier)).collect()
    return Counter(plain(row) for row in frame.rows())


def by_daft(place: Place, changes: Changes) -> Rows:
    import daft

    return arrow_rows(daft.read_iceberg(place.pyiceberg(changes.identifier)).to_arrow())


def by_duckdb(place: Place, changes: Changes) -> Rows:
    return duckdb_rows("select * from iceberg_scan(?)", [metadata_location(place, changes)])


ENGINES: dict[str, Callable[[Place, Changes], Rows]] = {
    "spark": by_spark,
    "pyiceberg": by_pyiceberg,
    "polars": by_polars,
    "daft": by_daft,
    "duckdb": by_duckdb,
}
COLUMNS = (
    "id bigint, day date, at timestamp, ntz timestamp_ntz, amount decimal(9, 2), name string, "
    "ratio double, small float, yes boolean, raw binary"
)


def row(id_: int, day: str = "date '2026-11-15'", name: str = "'a'") -> str:
    return (
        f"{id_}, {day}, timestamp '2026-11-15 23:59:59.999999', timestamp_ntz '1969-07-20 20:17:00', {id_}.25, {name}, "
        f"{id_} / 8, {id_} / 4, true, X'00FF'"
    )


@pytest.fixture(scope="module")
def appended(place: Place) -> tuple[Source, Changes]:
    """Rows of many types and none, over two partition specs, with columns renamed and added on the way."""
    source = place.table(COLUMNS, partitioned="day", properties=MERGE_MANIFESTS)
    source.insert(row(1))
    source.taken("engines")
    source.insert(row(2), row(3, "date '2026-11-16'", "null"))
    source.sql("alter table {t} add partition field bucket(2, name)")
    source.insert(row(4, "null", "'äöü/=%'"), ", ".join(["5", *["null"] * 9]))
    source.sql("alter table {t} rename column name to title", "alter table {t} add column extra string")
    source.insert(f"{row(6)}, 'extra'")
    return source, source.capture("engines")


@pytest.mark.parametrize("engine", ENGINES)
def test_appended_rows(place: Place, appended: tuple[Source, Changes], engine: str) -> None:
    source, changes = appended
    expected = source.rows("select * from {t} where id > 1")
    assert expected.total() == 5
    assert ENGINES[engine](place, changes) == expected


@pytest.fixture(scope="module")
def evolved(place: Place) -> Changes:
    source = place.table("a int, b int, c int")
    source.insert("1, 10, 100")
    source.taken("engines")
    source.insert("2, 20, 200")
    source.sql("alter table {t} drop column b", "alter table {t} add column b int first")
    source.insert("30, 3, 300")
    return source.capture("engines")


#: Daft 0.7 fails on every table from whose files a column was dropped, the source included.
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "daft"])
def test_a_column_dropped_and_added_again(place: Place, evolved: Changes, engine: str) -> None:
    assert ENGINES[engine](place, evolved) == rows((None, 2, 200), (30, 3, 300))


@pytest.fixture(scope="module")
def whole(place: Place) -> Changes:
    source = place.table("id int, part string", partitioned="part", properties=MERGE_ON_READ)
    source.sql("insert into {t} select /*+ coalesce(1) */ * from values (1, 'a'), (2, 'a'), (3, 'b'), (4, 'b')")
    source.sql("delete from {t} where id in (1, 4)")
    return source.capture("engines", start="full")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_whole_table_with_deleted_rows(place: Place, whole: Changes, engine: str) -> None:
    assert ENGINES[engine](place, whole) == rows((2, "a"), (3, "b"))


def test_counts_leave_out_deleted_rows(place: Place, whole: Changes) -> None:
    """Engines may answer from metadata alone."""
    import polars

    table = place.pyiceberg(whole.identifier)
    counted: dict[str, Any] = {
        "spark": place.sql(f"select count(*) from {whole.table}")[0][0],
        "pyiceberg": table.scan().count(),
        "polars": polars.scan_iceberg(table).select(polars.len()).collect().item(),
    }
    assert counted == dict.fromkeys(counted, 2)


@pytest.fixture(scope="module")
def of_version_3(place: Place) -> Changes:
    source = place.table("id int, v string", version=3, properties=MERGE_MANIFESTS)
    source.insert("1, 'a'")
    source.taken("engines")
    source.insert("2, 'b'")
    source.insert("3, null")
    return source.capture("engines")


@pytest.mark.parametrize("engine", ENGINES)
def test_version_3(place: Place, of_version_3: Changes, engine: str) -> None:
    assert ENGINES[engine](place, of_version_3) == rows((2, "b"), (3, None))


@pytest.fixture(scope="module")
def empty(place: Place) -> Changes:
    """The change table of a table that was not written to, while another was."""
    busy, quiet = place.table(), place.table("id int, v string", partitioned="v")
    busy.insert("1")
    changes = place.lake.capture(busy.name, quiet.name, consumer="engines")
    assert changes.capture is not None
    only = tuple(captured for captured in changes.capture.tables if captured.table == place.lake.name(quiet.name))
    return replace(changes, capture=replace(changes.capture, tables=only))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_empty_change_table(place: Place, empty: Changes, engine: str) -> None:
    assert ENGINES[engine](place, empty) == rows()
