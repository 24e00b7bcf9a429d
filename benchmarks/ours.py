"""dalsegno: a capture with all that belongs to it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from itertools import count

from benchmarks.tables import BenchTable
from dalsegno import Lake
from dalsegno.iceberg.manifests import read_list
from dalsegno.operations.changes import Changes

_consumers = (f"bench{number}" for number in count())


def seconds_to_capture(lake: Lake, table: BenchTable, *, start: str | None = None) -> float:
    """How long one capture takes: from its checkpoint, or from a start without one.

    Each is a consumer's first capture of this range, so the range is recorded and pinned and the change table
    registered every time. Setting the checkpoint before and dropping the change table afterwards are not counted.
    """
    consumer = next(_consumers)
    if start is None:
        lake.set_checkpoint(table.name, consumer=consumer, to=str(table.after))
    # What was written before is not this capture's to wait for.
    os.sync()
    began = time.perf_counter()
    changes = lake.capture(table.name, consumer=consumer, start=start)
    seconds = time.perf_counter() - began
    _check(changes, table)
    changes.abandon()
    return seconds


def seconds_to_read_lists(lake: Lake, table: BenchTable, locations: Iterable[str]) -> float:
    """How long it takes to read manifest lists one after another."""
    files = lake.load(lake.name(table.name)).files
    began = time.perf_counter()
    for location in locations:
        read_list(files, location)
    return time.perf_counter() - began


def _check(changes: Changes, table: BenchTable) -> None:
    """A fast wrong answer is worth nothing."""
    assert changes.files >= table.files, f"{changes.files} of {table.files} files captured"
    assert changes.details["pinned"], changes.details["pin"]
