"""What a capture holds: counted from metadata, and no more of it than was asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from typing import Any

from dalsegno.clock import from_millis
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.change_table import Contents
from dalsegno.iceberg.entries import read_entries
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.layout import Layout
from dalsegno.iceberg.manifests import Manifest, Selection, added_by, read_list
from dalsegno.iceberg.partitions import Partition, touched_partitions
from dalsegno.iceberg.pins import Pin
from dalsegno.iceberg.ranges import column_ranges
from dalsegno.model.snapshots import History, Snapshot
from dalsegno.plan.increments import Increment, Treatment

#: How many files a capture looks at in manifests without being asked, of what it takes and again of what was before:
#: a tenth of a second each.
FEW_FILES = 2_000


@dataclass(frozen=True)
class Wish:
    """What a user wants to know beyond the change table itself."""

    range_columns: tuple[str, ...] = ()
    #: List the touched partitions; None: if there are few files.
    partitions: bool | None = None


def check_columns(tables: Sequence[LoadedTable], wish: Wish) -> None:
    """Refuse a column that none of the tables has, before anything is done."""
    layouts = [Layout(table.metadata, table.metadata.get("current-schema-id", 0)) for table in tables]
    for name in wish.range_columns:
        if not any(layout.has_column(name) for layout in layouts):
            layouts[0].column(name)


def contents_of(table: LoadedTable, history: History, increment: Increment, threads: int) -> Contents:
    """The manifests of an increment and what they add up to."""
    if increment.upto.snapshot_id is None:
        return Contents(None, (), is_whole=False, files=0, rows=0, bytes=0)
    upto = history.snapshots[increment.upto.snapshot_id]
    if increment.is_full:
        listed = read_list(table.files, upto.manifest_list)
        data = [manifest for manifest in listed.manifests if manifest.is_data]
        return Contents(
            listed.format,
            listed.manifests,
            is_whole=True,
            files=sum(manifest.live_files or 0 for manifest in data),
            rows=sum(manifest.live_rows or 0 for manifest in data),
            bytes=upto.count("total-files-size"),
        )
    selection = added_by(table.files, increment.taken, upto, threads=threads)
    return Contents(
        selection.format,
        selection.manifests,
        is_whole=False,
        files=_total(increment.taken, selection, "added-data-files", "added_files") or 0,
        rows=_total(increment.taken, selection, "added-records", "added_rows") or 0,
        bytes=_sum(snapshot.count("added-files-size") for snapshot in increment.taken),
    )


def describe(
    table: LoadedTable, history: History, increment: Increment, published: Contents, pin: Pin, wish: Wish
) -> dict[str, Any]:
    """What is printed and remembered of a captured table."""
    data = [manifest for manifest in published.manifests if manifest.is_data]
    looked = look_into(table, history, increment, data, published.files, wish)
    return {
        "snapshots": [
            {
                "id": str(snapshot.id),
                "operation": snapshot.operation.value if snapshot.operation else None,
                "committed_at": from_millis(snapshot.timestamp_ms).isoformat(),
                "treatment": treatment.value,
            }
            for snapshot, treatment in increment.snapshots
        ],
        "captured_snapshots": len(increment.taken),
        "skipped_snapshots": sum(treatment is not Treatment.TAKE for _, treatment in increment.snapshots),
        "files": published.files,
        "rows": published.rows,
        "bytes": published.bytes,
        "schema_changed": increment.schema_changed,
        **looked,
        "pinned": pin.is_held,
        "pin": pin.note,
        # A whole table is what it holds now; added files are what was added, even if rows were removed since.
        "exact": True,
    }


def look_into(
    table: LoadedTable,
    history: History,
    increment: Increment,
    manifests: Sequence[Manifest],
    files: int,
    wish: Wish,
) -> dict[str, Any]:
    """Ranges and partitions: what can only be told by looking into manifests."""
    layout = Layout(table.metadata, increment.upto.schema_id)
    columns = [name for name in wish.range_columns if layout.has_column(name)]
    ids = {layout.column(name).field_id for name in columns}
    ranges = column_ranges(layout, columns, manifests, partial(read_entries, table.files, columns=ids))
    if files <= FEW_FILES if wish.partitions is None else wish.partitions:
        most = FEW_FILES if wish.partitions is None else sys.maxsize
        partitions = list_partitions(table.files, layout, history, increment, manifests, most_entries=most)
    else:
        partitions = None
    return {
        "partitions": None if partitions is None else [asdict(partition) for partition in partitions],
        "ranges": {item.column: asdict(item) for item in ranges},
    }


def list_partitions(
    files: Files,
    layout: Layout,
    history: History,
    increment: Increment,
    manifests: Sequence[Manifest],
    *,
    most_entries: int,
) -> list[Partition]:
    """The partitions that an increment touches, each told new from re-opened."""
    entries = partial(read_entries, files)
    before = manifests_before(files, history, increment)
    touched = chain.from_iterable(map(entries, manifests))
    return touched_partitions(layout, touched, before, entries, most_entries=most_entries)


def manifests_before(files: Files, history: History, increment: Increment) -> Sequence[Manifest] | None:
    """What was live at the checkpoint; None if its snapshot is gone."""
    if increment.after.snapshot_id is None or (increment.is_full and increment.is_first):
        return ()
    snapshot = history.snapshots.get(increment.after.snapshot_id)
    return None if snapshot is None else read_list(files, snapshot.manifest_list).manifests


def _total(snapshots: Sequence[Snapshot], selection: Selection, key: str, attribute: str) -> int | None:
    """Counts of the manifests, or of the snapshots' summaries where an old writer left the former out."""
    counts = [getattr(manifest, attribute) for manifest in selection.manifests]
    return _sum(counts) if None not in counts else _sum(snapshot.count(key) for snapshot in snapshots)


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
