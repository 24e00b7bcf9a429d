"""Tables for the measurements: real metadata and a real catalog entry, no data files.

files_N        a checkpoint's snapshot, then one append of N files in manifests of about 8 MB
appends        a checkpoint's snapshot, then 1,000 appends, each with a manifest of its own
rewritten      the same, and then a rewrite of all manifests into one: only each snapshot's own list still tells
               what it added
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from benchmarks.manifests import SCHEMA, SPEC, Line, Manifest, lines, rewrite, write_list, write_manifest

NAMESPACE = "bench"
#: So many entries make a manifest of about 8 MB, at which Iceberg begins the next one.
FILES_PER_MANIFEST = 50_000
SNAPSHOTS = 1_000
FILES_PER_SNAPSHOT = 10
FILES_AT_CHECKPOINT = 100
FILES_LATE = 100
#: The days that the files lie in, counted from 1970.
DAYS = range(20_000, 20_030)
_FIRST_ID = 7_000_000_000_000_000_000


@dataclass(frozen=True)
class BenchTable:
    """A table and the range to capture of it."""

    name: str
    #: The checkpoint's snapshot.
    after: int
    upto: int
    #: How many files the range adds.
    files: int


@dataclass
class Builder:
    """Writes one table, snapshot by snapshot."""

    folder: Path
    #: Where readers find that folder.
    location: str = ""
    raw_snapshots: list[dict[str, Any]] = field(default_factory=list)
    #: The manifests of the newest snapshot, as the lines of its list.
    lines: list[bytes] = field(default_factory=list)
    started_ms: int = field(default_factory=lambda: int(time.time() * 1000) - 3_600_000)

    def __post_init__(self) -> None:
        (self.folder / "metadata").mkdir(parents=True)
        self.location = self.location or str(self.folder)

    @property
    def head(self) -> int:
        return _FIRST_ID + len(self.raw_snapshots)

    def append(self, files: int, days: Sequence[int] = DAYS) -> list[Manifest]:
        """A snapshot that adds so many files, which lie evenly in the days and are sorted by them."""
        number = len(self.raw_snapshots) + 1
        starts = range(0, files, FILES_PER_MANIFEST)
        parts = [
            Counter(days[i * len(days) // files] for i in range(s, min(s + FILES_PER_MANIFEST, files))) for s in starts
        ]
        write = partial(self._write_manifest, number)
        # Most of the time goes into compression, which threads do at the same time.
        with ThreadPoolExecutor() as pool:
            manifests = list(pool.map(write, range(len(parts)), parts))
        self.lines = [*(lines().encode(manifest.line) for manifest in manifests), *self.lines]
        summary = {
            "operation": "append",
            "added-data-files": files,
            "added-records": sum(manifest.rows for manifest in manifests),
            "added-files-size": sum(manifest.bytes for manifest in manifests),
        }
        self._add_snapshot(summary)
        return manifests

    def rewrite(self, manifests: list[Manifest]) -> None:
        """A snapshot that changes no file, and puts all entries into one manifest."""
        number = len(self.raw_snapshots) + 1
        path = self.folder / "metadata" / f"rewritten-{number}.avro"
        line: Line = rewrite(path, self.location, manifests, _FIRST_ID + number, number, DAYS)
        self.lines = [lines().encode(line)]
        self._add_snapshot({"operation": "replace", "manifests-created": 1, "manifests-replaced": len(manifests)})

    def register(self, catalog: Catalog, name: str) -> None:
        """Write the metadata file, and make the table appear."""
        empty = new_table_metadata(SCHEMA, SPEC, UNSORTED_SORT_ORDER, self.location)
        newest = self.raw_snapshots[-1]
        metadata = json.loads(empty.model_dump_json()) | {
            "last-sequence-number": newest["sequence-number"],
            "last-updated-ms": newest["timestamp-ms"],
            "current-snapshot-id": newest["snapshot-id"],
            "snapshots": self.raw_snapshots,
            "snapshot-log": [{key: raw[key] for key in ("snapshot-id", "timestamp-ms")} for raw in self.raw_snapshots],
            "refs": {"main": {"snapshot-id": newest["snapshot-id"], "type": "branch"}},
        }
        path = self.folder / "metadata" / f"00001-{uuid.uuid4()}.metadata.json"
        path.write_text(json.dumps(metadata))
        catalog.register_table((NAMESPACE, name), f"{self.location}/metadata/{path.name}")

    def _write_manifest(self, number: int, part: int, files_per_day: Mapping[int, int]) -> Manifest:
        path = self.folder / "metadata" / f"{uuid.UUID(int=number)}-m{part}.avro"
        return write_manifest(path, self.location, _FIRST_ID + number, number, files_per_day)

    def _add_snapshot(self, summary: dict[str, Any]) -> None:
        number = len(self.raw_snapshots) + 1
        snapshot_id, parent = _FIRST_ID + number, self.head if self.raw_snapshots else None
        path = self.folder / "metadata" / f"snap-{snapshot_id}-1-{uuid.UUID(int=number)}.avro"
        write_list(path, self.lines, snapshot_id, parent, number)
        snapshot = {
            "snapshot-id": snapshot_id,
            "sequence-number": number,
            "timestamp-ms": self.started_ms + number * 1000,
            "manifest-list": f"{self.location}/metadata/{path.name}",
            "schema-id": 0,
            "summary": {key: str(value) for key, value in summary.items()},
        }
        self.raw_snapshots.append(snapshot | ({"parent-snapshot-id": parent} if parent else {}))


def make_wide(catalog: Catalog, folder: Path, files: int) -> BenchTable:
    """A table whose range is one append of many files."""
    name = f"files_{files}"
    builder = Builder(folder / name)
    builder.append(FILES_AT_CHECKPOINT)
    after = builder.head
    builder.append(files)
    builder.register(catalog, name)
    return BenchTable(f"{NAMESPACE}.{name}", after, builder.head, files)


def make_late(catalog: Catalog, folder: Path, files: int) -> BenchTable:
    """A large table whose range is one small append, in days that it held already."""
    builder = Builder(folder / "late")
    builder.append(files)
    after = builder.head
    builder.append(FILES_LATE)
    builder.register(catalog, "late")
    return BenchTable(f"{NAMESPACE}.late", after, builder.head, FILES_LATE)


def make_long(
    catalog: Catalog,
    folder: Path,
    *,
    rewritten: bool,
    snapshots: int = SNAPSHOTS,
    files: int = FILES_PER_SNAPSHOT,
    location: str = "",
) -> BenchTable:
    """A table whose range is many appends."""
    name = f"{'rewritten' if rewritten else 'appends'}_{snapshots}"
    builder = Builder(folder / name, f"{location}/{name}" if location else "")
    manifests = builder.append(FILES_AT_CHECKPOINT)
    after = builder.head
    for number in range(snapshots):
        manifests += builder.append(files, [DAYS[number * len(DAYS) // snapshots]])
    if rewritten:
        builder.rewrite(manifests)
    builder.register(catalog, name)
    return BenchTable(f"{NAMESPACE}.{name}", after, builder.head, snapshots * files)


def manifest_lists(catalog: Catalog, table: BenchTable) -> Sequence[str]:
    """Where the lists of all snapshots in the range are."""
    metadata = catalog.load_table(table.name).metadata
    in_range: Iterable[Any] = (s for s in metadata.snapshots if table.after < s.snapshot_id <= table.upto)
    return [snapshot.manifest_list for snapshot in in_range]
