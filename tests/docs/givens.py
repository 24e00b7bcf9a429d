"""States of a lake that pages start from, by the name a page calls them.

All work in the current folder with the embedded defaults, and count days from today, as the pages' own examples do:
how late a row is depends on when it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType

from dalsegno import Lake
from dalsegno.operations.orchestrator import Orchestrator
from dalsegno.operations.service import Service
from tests.steps.support import until

SCHEMA = Schema(
    NestedField(1, "event_day", DateType()),
    NestedField(2, "title", StringType()),
    NestedField(3, "seconds", LongType()),
)
BY_DAY = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "event_day"))


def a_playback_table() -> None:
    with _catalog() as catalog:
        catalog.create_namespace_if_not_exists("media")
        _append(
            catalog.create_table("media.playback", SCHEMA, partition_spec=BY_DAY),
            (2, "Solaris"),
            (1, "Stalker"),
            (1, "Mirror"),
        )


def three_empty_targets() -> None:
    by_title = Schema(NestedField(1, "title", StringType()), NestedField(2, "seconds", LongType()))
    by_day = Schema(NestedField(1, "event_day", DateType()), NestedField(2, "seconds", LongType()))
    with _catalog() as catalog:
        catalog.create_table("media.playback_daily", SCHEMA, partition_spec=BY_DAY)
        catalog.create_table("media.playback_by_title", by_title)
        catalog.create_table("media.playback_by_day", by_day, partition_spec=BY_DAY)


def targets_that_are_up_to_date() -> None:
    three_empty_targets()
    with _catalog() as catalog:
        rows = catalog.load_table("media.playback").scan().to_arrow()
        catalog.load_table("media.playback_daily").append(rows)
        for name, key in (("playback_by_title", "title"), ("playback_by_day", "event_day")):
            target = catalog.load_table(f"media.{name}")
            sums = rows.group_by(key).aggregate([("seconds", "sum")]).rename_columns([key, "seconds"])
            target.append(sums.cast(target.schema().as_arrow()))


def a_consumer_that_has_processed_it() -> None:
    with Lake.open() as lake, lake.capture("media.playback", consumer="daily"):
        pass


def a_new_day_and_late_rows() -> None:
    with _playback() as table:
        _append(table, (0, "Ikiru"), (0, "Ran"), (1, "Rashomon"), (20, "Solaris"))


def a_deleted_row() -> None:
    with _playback() as table:
        table.delete("title = 'Solaris'")


def a_corrected_row() -> None:
    with _playback() as table:
        stalker = table.scan("title = 'Stalker'").to_arrow()
        table.overwrite(stalker.set_column(2, SCHEMA.as_arrow().field("seconds"), [[90]]), "title = 'Stalker'")


def an_expiry_that_went_too_far() -> None:
    a_new_day_and_late_rows()
    with _playback() as table:
        _append(table, (0, "Ikiru"))
        # PyIceberg takes a local time without a zone.
        table.maintenance.expire_snapshots().older_than(datetime.now() + timedelta(minutes=1)).commit()  # noqa: DTZ005


def a_table_made_anew() -> None:
    with _catalog() as catalog:
        catalog.drop_table("media.playback")
    a_playback_table()


def orders_and_payments() -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", DateType()))
    with _catalog() as catalog:
        catalog.create_namespace_if_not_exists("shop")
        for name, rows in (("orders", 3), ("payments", 2)):
            table = catalog.create_table_if_not_exists(f"shop.{name}", schema)
            values = {"id": list(range(rows)), "day": [datetime.now(UTC).date()] * rows}
            table.append(pa.table(values, schema=schema.as_arrow()))


def a_server_that_has_seen_to_it() -> None:
    """One that ran until all runs that triggers began had ended."""
    with Orchestrator.open() as orchestrator:
        service = Service(orchestrator.settings, orchestrator.store)
        thread = Thread(target=service.run)
        thread.start()
        until(lambda: orchestrator.list_runs(status=["SUCCEEDED"]))
        service.stop()
        thread.join()


def an_empty_lake() -> None:
    """The next example starts from nothing: what the last one left is moved out of the way."""
    home = Path(".dalsegno")
    home.rename(f"before-{len(list(Path().glob('before-*')))}")


GIVENS: dict[str, Callable[[], None]] = {
    make.__name__.replace("_", " "): make
    for make in (
        a_playback_table,
        three_empty_targets,
        targets_that_are_up_to_date,
        a_consumer_that_has_processed_it,
        a_new_day_and_late_rows,
        a_deleted_row,
        a_corrected_row,
        an_expiry_that_went_too_far,
        a_table_made_anew,
        orders_and_payments,
        a_server_that_has_seen_to_it,
        an_empty_lake,
    )
}


@contextmanager
def _catalog() -> Iterator[Catalog]:
    with Lake.open() as lake:
        yield lake.catalog("lake").pyiceberg


@contextmanager
def _playback() -> Iterator[Table]:
    with _catalog() as catalog:
        yield catalog.load_table("media.playback")


def _append(table: Table, *rows: tuple[int, str]) -> None:
    """Rows by how many days ago, and title."""
    today = datetime.now(UTC).date()
    values = {
        "event_day": [today - timedelta(days=days) for days, _ in rows],
        "title": [title for _, title in rows],
        "seconds": [600 * (number + 1) for number in range(len(rows))],
    }
    table.append(pa.table(values, schema=SCHEMA.as_arrow()))
