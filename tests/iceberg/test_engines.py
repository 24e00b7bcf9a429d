"""One change table, read by every engine there is: the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from dalsegno import Changes
from tests.iceberg.engine_tables import MAKERS, EngineTable
from tests.iceberg.support import Place, Rows, arrow_rows, duckdb_rows, plain

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
NO_EQUALITY_DELETES = "does not yet support equality deletes"
#: engine and table → the error that it gives instead of rows. Wrong rows would be worse.
UNREADABLE = {
    ("pyiceberg", "with_equality_deletes"): NO_EQUALITY_DELETES,
    ("polars", "with_equality_deletes"): NO_EQUALITY_DELETES,
    ("daft", "with_equality_deletes"): NO_EQUALITY_DELETES,
    ("daft", "with_vectors"): "Invalid Parquet file",
    # On every table from whose files a column was dropped, the source included.
    ("daft", "evolved"): ".",
}


@pytest.fixture(scope="module", params=MAKERS)
def table(place: Place, request: pytest.FixtureRequest) -> EngineTable:
    return EngineTable.make(request.param, place)


@pytest.mark.parametrize("engine", ENGINES)
def test_same_rows(place: Place, table: EngineTable, engine: str) -> None:
    if error := UNREADABLE.get((engine, table.name)):
        with pytest.raises(Exception, match=error):
            ENGINES[engine](place, table.changes)
    else:
        assert ENGINES[engine](place, table.changes) == table.expected


def test_counts_leave_out_deleted_rows(place: Place) -> None:
    """Engines may answer from metadata alone."""
    import polars

    changes = EngineTable.make("whole", place).changes
    table = place.pyiceberg(changes.identifier)
    counted: dict[str, Any] = {
        "spark": place.sql(f"select count(*) from {changes.table}")[0][0],
        "pyiceberg": table.scan().count(),
        "polars": polars.scan_iceberg(table).select(polars.len()).collect().item(),
    }
    assert counted == dict.fromkeys(counted, 2)
