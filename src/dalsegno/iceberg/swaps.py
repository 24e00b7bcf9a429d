"""What compaction only swapped for other files, so that it need not be read to know that nothing changed in it.

A ``replace`` snapshot changes no row: the files it removed and those it added hold the same rows. Where both are of one
partition spec, that is so in each partition, since a row belongs to one alone. What the files held at that moment they
held at the ends of the range too, if the delete files were the same all along; if there is any doubt of that, nothing
is left out, and the rows are read and cancel out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from dalsegno.iceberg.differences import Entry, Swap, read_files
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.manifests import ADDED, DELETED, prefetch, read_list
from dalsegno.iceberg.partitions import PartitionKey
from dalsegno.model.snapshots import Operation, Snapshot


def swaps_between(files: Files, after: Snapshot, line: Sequence[Snapshot]) -> tuple[Swap, ...]:
    """What was swapped by the snapshots that lead from one state to another, each the next one's parent."""
    if not _keeps_deletes(after, line):
        return ()
    replacing = [snapshot for snapshot in line if snapshot.operation is Operation.REPLACE]
    files.prefetch((snapshot.manifest_list, None) for snapshot in replacing)
    return tuple(swap for snapshot in replacing for swap in _by(files, snapshot))


def _keeps_deletes(after: Snapshot, line: Sequence[Snapshot]) -> bool:
    """Whether every snapshot says that it neither added nor removed a delete file."""
    total = after.count("total-delete-files")
    return total is not None and all(
        snapshot.count("total-delete-files") == total
        and not snapshot.count("added-delete-files")
        and not snapshot.count("removed-delete-files")
        for snapshot in line
    )


def _by(files: Files, snapshot: Snapshot) -> Iterator[Swap]:
    own = [m for m in read_list(files, snapshot.manifest_list).manifests if m.added_snapshot_id == snapshot.id]
    prefetch(files, (manifest for manifest in own if manifest.is_data))
    entries = [entry for manifest in own if manifest.is_data for entry in read_files(files, manifest)]
    removed = [entry for entry in entries if entry.status == DELETED]
    added = [entry for entry in entries if entry.status == ADDED]
    said = snapshot.count("deleted-data-files"), snapshot.count("added-data-files")
    if said != (len(removed), len(added)):
        return
    is_one_spec = len({entry.key[0] for entry in removed + added}) == 1
    groups: dict[PartitionKey | None, tuple[list[Entry], list[Entry]]] = defaultdict(lambda: ([], []))
    for side, of_side in enumerate((removed, added)):
        for entry in of_side:
            groups[entry.key if is_one_spec else None][side].append(entry)
    for gone, come in groups.values():
        # Where delete files took rows away, the counts differ; and a writer may call "replace" what is not.
        swap = Swap(frozenset(entry.identity for entry in gone), frozenset(entry.identity for entry in come))
        is_once = (len(swap.removed), len(swap.added)) == (len(gone), len(come))
        if is_once and sum(entry.rows for entry in gone) == sum(entry.rows for entry in come):
            yield swap
