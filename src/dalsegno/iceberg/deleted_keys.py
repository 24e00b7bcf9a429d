"""The keys that equality deletes name, as a table: it refers to the delete files themselves.

A writer such as Flink does not look up the rows it replaces: it writes their keys into a delete file, with the key's
columns alone. Read as data, such a file is the list of these keys, and nothing else need be read to know them. They are
more than the rows that went: a key may have matched nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dalsegno.errors import UnsupportedTable
from dalsegno.iceberg.differences import EQUALITY_DELETES, read_files
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.manifests import ADDED, Take, prefetch, read_list
from dalsegno.model.snapshots import Snapshot
from dalsegno.plan.forecast import Cost

_COUNT = "added-equality-delete-files"


@dataclass(frozen=True)
class DeletedKeys:
    """The equality delete files that a range added, whether they still are in use or not."""

    takes: tuple[Take, ...]
    #: Each set of columns, by their ids, that tells the rows of some file.
    keys: tuple[tuple[int, ...], ...]


def deleted_keys(files: Files, snapshots: Sequence[Snapshot]) -> DeletedKeys:
    """What each snapshot's own list names, which stays when compaction applies the deletes and removes the files."""
    takes: list[Take] = []
    keys: set[tuple[int, ...]] = set()
    deleting = [snapshot for snapshot in snapshots if snapshot.count(_COUNT)]
    files.prefetch((snapshot.manifest_list, None) for snapshot in deleting)
    own = {
        snapshot.id: [
            manifest
            for manifest in read_list(files, snapshot.manifest_list).manifests
            if not manifest.is_data and manifest.added_snapshot_id == snapshot.id
        ]
        for snapshot in deleting
    }
    prefetch(files, (manifest for manifests in own.values() for manifest in manifests))
    for snapshot in deleting:
        said, found = snapshot.count(_COUNT), 0
        for manifest in own[snapshot.id]:
            entries = [e for e in read_files(files, manifest) if (e.status, e.content) == (ADDED, EQUALITY_DELETES)]
            if entries:
                counted = Cost.total(entry.cost for entry in entries)
                only = frozenset(entry.place for entry in entries)
                takes.append(Take(manifest, only, as_data=True, counted=counted))
            keys |= {entry.equality_ids for entry in entries}
            found += len(entries)
        if found != said:
            raise UnsupportedTable(
                f"Snapshot {snapshot.id} says that it added {said} equality delete files, but the manifests it "
                f"wrote hold {found}.",
                hint="Check what wrote it; dalsegno does not capture a snapshot that contradicts itself.",
            )
    return DeletedKeys(tuple(takes), tuple(sorted(keys)))
