"""How far consumers are behind, measured on real tables, and told when it is too much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField
from sqlalchemy import select

from dalsegno.capture.lake import Lake
from dalsegno.clock import utc_now
from dalsegno.model.captures import actor_of_run
from dalsegno.operations.lateness import Lateness
from dalsegno.store import lags, service_tables
from dalsegno.store.row_queries import rows
from tests.engine.support import Place, noop

SCHEMA = Schema(NestedField(1, "id", LongType()))
KEY = ("w", "lake.db.t")


class Lag:
    """A workflow ``w``, whose consumer has processed the first append to a table."""

    def __init__(self, folder: Path) -> None:
        self.place = Place.at(folder)
        self.settings, self.store = self.place.operations.settings, self.place.operations.store
        self.now = utc_now()
        self.late = Lateness(self.settings, self.store, lambda: self.now)
        self.lake = Lake(self.settings, self.store)
        catalog = self.lake.catalog("lake").pyiceberg
        catalog.create_namespace("db")
        self.table: Table = catalog.create_table("db.t", SCHEMA)
        self.append()
        made = self.lake.capture("db.t", consumer="w")
        assert made.capture is not None
        self.store.commit(made.capture.id, by=actor_of_run("w", 1), now=utc_now())

    def append(self) -> datetime:
        self.table.refresh()
        self.table.append(pa.table({"id": [1]}, schema=SCHEMA.as_arrow()))
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        return datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)

    def push(self, **alerting: Any) -> None:
        self.place.push("w", noop("a"), properties={"alerting": alerting})

    def measured(self, **later: float) -> Any:
        self.now = utc_now() + timedelta(**later)
        self.late.measure()
        with self.store.database.reading() as connection:
            [row] = lags.all_lags(connection)
        return row

    def told(self) -> list[Any]:
        with self.store.database.reading() as connection:
            return [row["message"] for row in rows(connection, select(service_tables.outbox))]


@pytest.fixture
def lag(tmp_path: Path) -> Iterator[Lag]:
    made = Lag(tmp_path)
    yield made
    made.lake.close()


def test_nothing_waits(lag: Lag) -> None:
    found = lag.measured()
    assert (found["consumer"], found["table_name"]) == KEY
    assert (found["snapshots"], found["oldest_at"], found["problem"]) == (0, None, None)


def test_what_waits_counts_from_the_oldest(lag: Lag) -> None:
    first = lag.append()
    lag.append()
    found = lag.measured()
    assert (found["snapshots"], found["oldest_at"]) == (2, first)


def test_a_table_that_is_gone_or_another_cannot_be_told(lag: Lag) -> None:
    catalog = lag.lake.catalog("lake").pyiceberg
    catalog.drop_table("db.t")
    assert "db.t" in lag.measured()["problem"]
    catalog.create_table("db.t", SCHEMA)
    found = lag.measured()
    assert (found["snapshots"], found["problem"]) == (None, "The table was dropped and created anew.")


def test_too_much_is_told_once_each_time(lag: Lag) -> None:
    lag.push(on_lag=["ops"], max_lag="1h")
    lag.append()
    lag.measured(minutes=59)
    assert lag.told() == []
    for minutes in (61, 62):
        lag.measured(minutes=minutes)
    [told] = lag.told()
    assert told["title"] == "w is more than 1:00:00 behind lake.db.t"
    assert (told["kind"], told["workflow"], told["table"]) == ("lag", "w", "lake.db.t")
    with lag.lake.capture("db.t", consumer="w") as made:
        assert made.capture is not None
    # Its last move was made by hand, and so it is nobody's: nothing is told.
    lag.append()
    lag.measured(minutes=200)
    assert len(lag.told()) == 1


def test_it_may_become_too_much_again(lag: Lag) -> None:
    lag.push(on_lag=["ops"], max_lag="1h")
    for _ in range(2):
        lag.append()
        lag.measured(minutes=61)
        made = lag.lake.capture("db.t", consumer="w").capture
        assert made is not None
        lag.store.commit(made.id, by=actor_of_run("w", 2), now=utc_now())
        lag.measured(minutes=61)
    assert len(lag.told()) == 2


def test_what_has_not_changed_is_not_loaded_again(lag: Lag) -> None:
    lag.append()
    first = lag.measured()
    lag.lake.catalog("lake").pyiceberg.load_table("db.t").refresh()
    metadata = Path(lag.table.refresh().metadata_location.removeprefix("file://"))
    kept = metadata.read_bytes()
    metadata.write_text("it is read by nobody")
    again = lag.measured(minutes=1)
    assert (again["snapshots"], again["oldest_at"], again["problem"]) == (1, first["oldest_at"], None)
    metadata.write_bytes(kept)
    lag.append()
    assert lag.measured()["snapshots"] == 2


def test_a_consumer_that_is_gone_is_forgotten(lag: Lag) -> None:
    lag.measured()
    nobody = replace(lag.settings)
    Lateness(nobody, lag.store, utc_now).measure(lambda: False)
    with lag.store.database.writing() as connection:
        lags.forget_others(connection, [])
        assert lags.all_lags(connection) == []
