"""PyIceberg: read the entries that the range's snapshots added, and append each file to a new table in one commit."""

from __future__ import annotations

import time

from pyiceberg.catalog import Catalog
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table.snapshots import Operation, ancestors_between_ids

from benchmarks.tables import NAMESPACE, BenchTable

_NAME = (NAMESPACE, "one_by_one")


def seconds_to_append(catalog: Catalog, table: BenchTable) -> float:
    began = time.perf_counter()
    source = catalog.load_table(table.name)
    taken = [
        snapshot
        for snapshot in ancestors_between_ids(table.after, table.upto, source.metadata)
        if snapshot.summary is not None and snapshot.summary.operation is Operation.APPEND
    ]
    target = catalog.create_table(_NAME, source.schema(), partition_spec=source.spec())
    files = 0
    with target.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for snapshot in taken:
            for manifest in snapshot.manifests(source.io):
                if manifest.added_snapshot_id != snapshot.snapshot_id:
                    continue
                for entry in manifest.fetch_manifest_entry(source.io):
                    if entry.status == ManifestEntryStatus.ADDED:
                        append.append_data_file(entry.data_file)
                        files += 1
    seconds = time.perf_counter() - began
    assert files == table.files, f"{files} of {table.files} files appended"
    # Not a purge: the data files are the source's.
    catalog.drop_table(_NAME)
    return seconds
