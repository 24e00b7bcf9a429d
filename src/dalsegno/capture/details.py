"""What a capture holds: counted from metadata, and no more of it than was asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from typing import Any

from dalsegno.capture.queries import reserved_column
from dalsegno.clock import from_millis
from dalsegno.errors import UnsupportedChange, UnsupportedTable
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.change_table import NO_CONTENTS, Contents
from dalsegno.iceberg.deleted_keys import deleted_keys
from dalsegno.iceberg.differences import Side, added_since, touched
from dalsegno.iceberg.entries import FileEntry, read_entries, taken_entries
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.layout import Layout
from dalsegno.iceberg.manifests import Manifest, Take, added_by, prefetch, read_list
from dalsegno.iceberg.partitions import Partition, touched_partitions
from dalsegno.iceberg.pins import Pin
from dalsegno.iceberg.predicates import partition_filters
from dalsegno.iceberg.ranges import column_ranges
from dalsegno.iceberg.schemas import RawSchema, is_newly_required, schema_of, unreadable
from dalsegno.iceberg.swaps import swaps_between
from dalsegno.model.capture_requests import CaptureRequest, DetailOptions
from dalsegno.model.captures import ChangeKind, Role
from dalsegno.model.snapshots import History, Snapshot
from dalsegno.plan.forecast import Cost
from dalsegno.plan.increments import Increment, Treatment, has_changes_after, whole_table

#: How many files a capture looks at in manifests without being asked, of what it takes and again of what was before:
#: a tenth of a second each.
FEW_FILES = 2_000


def check_columns(tables: Sequence[LoadedTable], request: CaptureRequest) -> None:
    """Refuse a range of a column that none of the tables has, and a key that one has not, before anything is done."""
    layouts = [Layout(table.metadata, table.metadata.get("current-schema-id", 0)) for table in tables]
    for name in request.details.range_columns:
        if not any(layout.has_column(name) for layout in layouts):
            layouts[0].column(name)
    for asked, layout in zip(request.tables, layouts, strict=True):
        for key in asked.spec.keys:
            layout.column(key)
        if asked.spec.compares_ends and (reason := reserved_column(layout.top_columns(), asked.spec)):
            raise UnsupportedTable(
                f"The changed rows of {asked.table} cannot be queried: {reason}.",
                hint="Rename the column, or capture only what is added, or only the range ('changes' is 'range').",
            )


def refuse_unreadable(table: LoadedTable, history: History, increment: Increment, consumer: str) -> None:
    """Raise where files of the range would be read with types that are not theirs."""
    reading = schema_of(table.metadata, increment.upto.schema_id)
    for written in _written_with(table, history, increment):
        if reading is not None and (found := unreadable(written, reading)):
            raise UnsupportedChange(
                f"{table.name} was replaced by a table of other types since the checkpoint of {consumer!r}: {found}, "
                "so its old rows cannot be compared with the new ones.",
                actions=[whole_table(table.name, consumer)],
            )


def _written_with(table: LoadedTable, history: History, increment: Increment) -> list[RawSchema]:
    """Every schema with which a file of the range may have been written. A whole table is read as it reads itself."""
    if increment.is_full:
        return []
    known = {snapshot.schema_id for snapshot in increment.taken}
    if increment.spec.compares_ends:
        ends = [history.snapshots.get(end.snapshot_id or 0) for end in (increment.after, increment.upto)]
        known |= {snapshot.schema_id for end in ends for snapshot in history.ancestors(end)}
        known |= {increment.after.schema_id} if increment.after.snapshot_id is not None else set()
    found = (schema_of(table.metadata, schema_id) for schema_id in known if schema_id is not None)
    return [schema for schema in found if schema is not None]


def contents_of(table: LoadedTable, history: History, increment: Increment, threads: int) -> Mapping[Role, Contents]:
    """The manifests of an increment, for each table that is made of it."""
    contents, reading = (
        _contents(table, history, increment, threads),
        schema_of(table.metadata, increment.upto.schema_id),
    )
    if reading is None or not any(
        is_newly_required(each, reading) for each in _written_with(table, history, increment)
    ):
        return contents
    return {role: replace(each, all_optional=True) for role, each in contents.items()}


def _contents(table: LoadedTable, history: History, increment: Increment, threads: int) -> Mapping[Role, Contents]:
    if increment.upto.snapshot_id is None and (increment.is_full or increment.after.snapshot_id is None):
        return {Role.AFTER: NO_CONTENTS, Role.BEFORE: NO_CONTENTS}
    upto = history.snapshots.get(increment.upto.snapshot_id) if increment.upto.snapshot_id is not None else None
    if upto is None:
        return _both_ends(table, history, increment, None)
    if increment.is_full:
        listed = read_list(table.files, upto.manifest_list)
        takes = tuple(Take(manifest) for manifest in listed.manifests)
        whole = Contents(listed.format, takes, bytes=upto.count("total-files-size"))
        return {Role.AFTER: whole, Role.BEFORE: NO_CONTENTS}
    if increment.spec.compares_ends:
        return _both_ends(table, history, increment, upto)
    selection = added_by(table.files, increment.taken, upto, threads=threads)
    takes = tuple(Take(manifest, only_added=True) for manifest in selection.manifests)
    added = Cost.total(Cost(None, None, snapshot.count("added-files-size")) for snapshot in increment.taken)
    return {Role.AFTER: Contents(selection.format, takes, bytes=added.bytes)}


def _both_ends(
    table: LoadedTable, history: History, increment: Increment, upto: Snapshot | None
) -> Mapping[Role, Contents]:
    """What differs between the two; at either end the table may hold nothing, as after CREATE OR REPLACE TABLE."""
    layout = Layout(table.metadata, increment.upto.schema_id)
    after = history.snapshots.get(increment.after.snapshot_id) if increment.after.snapshot_id is not None else None
    table.files.prefetch((snapshot.manifest_list, None) for snapshot in (after, upto) if snapshot)
    last = None if upto is None else read_list(table.files, upto.manifest_list)
    first = None if after is None else read_list(table.files, after.manifest_list)
    known, found = (listed.manifests if listed else () for listed in (first, last))
    line = [snapshot for snapshot, _ in increment.snapshots]
    swaps = swaps_between(table.files, after, line) if after is not None and increment.is_line else ()
    if increment.spec.needs_only_after:
        sides = Side((), ()), added_since(table.files, layout, known, found, swaps)
    else:
        sides = touched(table.files, layout, known, found, swaps)
    formats = [listed.format if listed else None for listed in (first, last)]
    before_after = [
        Contents(
            format_,
            side.data + tuple(Take(manifest) for manifest in side.deletes),
            bytes=Cost.total(take.cost for take in side.data).bytes,
        )
        for format_, side in zip(formats, sides, strict=True)
    ]
    ends = {Role.BEFORE: before_after[0], Role.AFTER: before_after[1]}
    if not increment.spec.has_deleted_keys or last is None:
        return ends
    deleted = deleted_keys(table.files, line)
    size = Cost.total(take.cost for take in deleted.takes).bytes
    return ends | {Role.DELETED_KEYS: Contents(last.format, deleted.takes, size, deleted.keys)}


def describe(
    table: LoadedTable,
    history: History,
    increment: Increment,
    contents: Mapping[Role, Contents],
    pin: Pin,
    options: DetailOptions,
) -> dict[str, Any]:
    """What is printed and remembered of a captured table."""
    layout = Layout(table.metadata, increment.upto.schema_id)
    before, deleted = contents.get(Role.BEFORE), contents.get(Role.DELETED_KEYS)
    # What changed lies in what was there before as well: a partition may have lost all of its rows.
    takes = [take for role, each in contents.items() if role is not Role.DELETED_KEYS for take in each.data]
    looked = look_into(table, history, increment, takes, options)
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
        "is_refresh": options.is_refresh,
        "has_more": has_changes_after(history, increment.upto, increment.spec),
        "skipped_snapshots": sum(treatment is not Treatment.TAKE for _, treatment in increment.snapshots),
        **asdict(contents[Role.AFTER].cost),
        "before": None if before is None else asdict(before.cost),
        "deleted_keys": None if deleted is None else _keys(layout, deleted),
        "schema_changed": increment.schema_changed,
        "columns": layout.top_columns(),
        "incomparable": layout.incomparable_columns(),
        **looked,
        "pinned": pin.is_held,
        "pin": pin.note,
        **exactness(increment),
    }


def _keys(layout: Layout, deleted: Contents) -> dict[str, Any]:
    columns = [[layout.column_name(field_id) for field_id in key] for key in deleted.keys]
    return {"columns": columns, **asdict(deleted.cost)}


def exactness(increment: Increment) -> dict[str, Any]:
    """Whether the rows handed over are the ones that changed, and if not, what they may be more or less."""
    if increment.spec.compares_ends or not increment.removing:
        return {"exact": True, "inexact_because": None, "may_be_more": _over_delivered(increment)}
    return {
        "exact": False,
        "inexact_because": f"{len(increment.removing)} of the snapshots also removed rows: rows that they only carried "
        "over are handed over again, and those that they removed are missing; ask for before_after to be exact",
        "may_be_more": None,
    }


def _over_delivered(increment: Increment) -> str | None:
    """Which unchanged rows may be reported as changed, and why; None if none."""
    spec = increment.spec
    if increment.is_line and not increment.removing:
        return None
    if spec.changes is ChangeKind.RANGE:
        return "partitions and ranges are those of whole files, of which only some rows may have changed"
    if spec.needs_only_after:
        return "rows rewritten with identical values are also reported: row ids only show when a row was written"
    if spec.by_row_id and not spec.keys:
        return "rows rewritten with identical values have new row ids: in Spark, each is a delete and an insert"
    return None


def look_into(
    table: LoadedTable,
    history: History,
    increment: Increment,
    takes: Sequence[Take],
    options: DetailOptions,
) -> dict[str, Any]:
    """Ranges and partitions: what only the manifests show."""
    layout = Layout(table.metadata, increment.upto.schema_id)
    columns = [name for name in options.range_columns if layout.has_column(name)]
    ids = {layout.column(name).field_id for name in columns}
    by_path = {take.manifest.path: take for take in takes}

    def taken(manifest: Manifest) -> Iterable[FileEntry]:
        return taken_entries(table.files, by_path[manifest.path], ids)

    if columns:
        prefetch(table.files, (take.manifest for take in takes))
    ranges = column_ranges(layout, columns, [take.bounded for take in takes], taken)
    files = sum(take.cost.files or 0 for take in takes)
    if files <= FEW_FILES if options.partitions is None else options.partitions:
        most = FEW_FILES if options.partitions is None else sys.maxsize
        partitions = list_partitions(table.files, layout, history, increment, takes, most_entries=most)
    else:
        partitions = None
    filters = partition_filters(layout, partitions)
    return {
        "partitions": None if partitions is None else [asdict(partition) for partition in partitions],
        "partition_filter": filters.every,
        "new_partition_filter": filters.new,
        "reopened_partition_filter": filters.reopened,
        "ranges": {item.column: asdict(item) for item in ranges},
    }


def list_partitions(
    files: Files,
    layout: Layout,
    history: History,
    increment: Increment,
    takes: Sequence[Take],
    *,
    most_entries: int,
) -> list[Partition]:
    """The partitions that an increment touches, each new or re-opened."""
    prefetch(files, (take.manifest for take in takes))
    before = manifests_before(files, history, increment)
    touched = chain.from_iterable(taken_entries(files, take) for take in takes)
    return touched_partitions(
        layout,
        touched,
        before,
        partial(read_entries, files),
        most_entries=most_entries,
        soon=partial(prefetch, files),
    )


def prefetch_before(files: Files, history: History, increment: Increment) -> None:
    """Begin to read what tells new partitions from re-opened ones."""
    snapshot = history.snapshots.get(increment.after.snapshot_id or 0)
    if snapshot is not None and not (increment.is_full and increment.is_first):
        files.prefetch([(snapshot.manifest_list, None)])


def manifests_before(files: Files, history: History, increment: Increment) -> Sequence[Manifest] | None:
    """What was live at the checkpoint; None if its snapshot is gone."""
    if increment.after.snapshot_id is None or (increment.is_full and increment.is_first):
        return ()
    snapshot = history.snapshots.get(increment.after.snapshot_id)
    return None if snapshot is None else read_list(files, snapshot.manifest_list).manifests
