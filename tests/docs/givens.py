"""States of a lake that pages start from where a reader need not see how they are made, by the name a page calls them.

All work in the current folder with the embedded defaults, and count days from today, as the pages' own examples do:
how late a row is depends on when it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copy
from threading import Thread

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType

from dalsegno import Lake
from dalsegno.operations.facade import Operations
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


def a_consumer_that_has_processed_it() -> None:
    with Lake.open() as lake, lake.capture("media.playback", consumer="daily"):
        pass


def a_new_day_and_late_rows() -> None:
    with _playback() as table:
        _append(table, (0, "Ikiru"), (0, "Ran"), (1, "Rashomon"), (20, "Solaris"))


def a_server_that_has_seen_to_it() -> None:
    """One that ran until all runs that triggers began had ended."""
    with Operations.open() as operations:
        service = Service(operations.settings, operations.store)
        thread = Thread(target=service.run)
        thread.start()
        until(lambda: operations.runs.list(status=["SUCCEEDED"]))
        service.stop()
        thread.join()


def a_compiled_dbt_project() -> None:
    Path("target").mkdir()
    copy(Path(__file__).parents[1] / "operations" / "dbt" / "manifest.json", "target")


GIVENS: dict[str, Callable[[], None]] = {
    make.__name__.replace("_", " "): make
    for make in (
        a_playback_table,
        three_empty_targets,
        a_consumer_that_has_processed_it,
        a_new_day_and_late_rows,
        a_server_that_has_seen_to_it,
        a_compiled_dbt_project,
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
