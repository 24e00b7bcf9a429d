"""dalsegno: a capture with all that belongs to it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from itertools import count

from benchmarks.tables import FILES_AT_CHECKPOINT, BenchTable
from dalsegno import Changes, Lake
from dalsegno.iceberg.manifests import read_list

_consumers = (f"bench_{os.getpid()}_{number}" for number in count())


def timed_capture(lake: Lake, table: BenchTable, *, start: str | None = None) -> tuple[float, Changes]:
    """One capture and how long it took: from its checkpoint, or from a start without one.

    Each is a consumer's first capture of this range, so the range is recorded and pinned and the change table
    registered every time. Setting the checkpoint before is not counted.
    """
    consumer = next(_consumers)
    if start is None:
        lake.set_checkpoint(table.name, consumer=consumer, to=str(table.after), reprocess=True)
    # What was written before is not this capture's to wait for.
    os.sync()
    began = time.perf_counter()
    changes = lake.capture(table.name, consumer=consumer, start=start)
    seconds = time.perf_counter() - began
    # A fast wrong answer is worth nothing.
    expected = table.files + (FILES_AT_CHECKPOINT if start else 0)
    assert changes.files == expected, f"{changes.files} of {expected} files captured"
    assert changes.details["pinned"], changes.details["pin"]
    return seconds, changes


def seconds_to_read_lists(lake: Lake, table: BenchTable, locations: Iterable[str]) -> float:
    """How long it takes to read manifest lists one after another."""
    files = lake.load(lake.name(table.name)).files
    began = time.perf_counter()
    for location in locations:
        read_list(files, location)
    return time.perf_counter() - began
