"""The partitions that a capture touches, and which of them the consumer has not seen before.

A partition is new only if that is proven: no live file of it at the checkpoint, and no live file of another partition
spec, whose rows could belong to it. A new partition can be inserted; only a re-opened one needs a merge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dalsegno.iceberg.entries import FileEntry
from dalsegno.iceberg.layout import Layout, UnreadableBound
from dalsegno.iceberg.manifests import Manifest

PartitionKey = tuple[int, tuple[Any, ...]]
EntriesOf = Callable[[Manifest], Iterable[FileEntry]]


class Novelty(StrEnum):
    NEW = "new"
    REOPENED = "reopened"
    #: The checkpoint's snapshot has expired, so nobody can tell.
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Partition:
    """One touched partition."""

    spec_id: int
    values: dict[str, Any]
    files: int
    rows: int
    bytes: int
    novelty: Novelty

    def __str__(self) -> str:
        return "/".join(f"{name}={value}" for name, value in self.values.items()) or "(not partitioned)"


def touched_partitions(
    layout: Layout, entries: Iterable[FileEntry], before: Sequence[Manifest] | None, entries_of: EntriesOf
) -> list[Partition]:
    """The partitions of the entries; ``before`` is what was live at the checkpoint, None if that is not known."""
    totals: dict[PartitionKey, list[int]] = {}
    for entry in entries:
        total = totals.setdefault((entry.spec_id, entry.partition), [0, 0, 0])
        for index, amount in enumerate((1, entry.rows, entry.size)):
            total[index] += amount
    seen = None if before is None else _seen_before(layout, set(totals), before, entries_of)

    def novelty(key: PartitionKey) -> Novelty:
        if seen is None:
            return Novelty.UNKNOWN
        return Novelty.REOPENED if key in seen else Novelty.NEW

    found = [
        Partition(key[0], layout.partition(*key), files, rows, size, novelty(key))
        for key, (files, rows, size) in totals.items()
    ]
    return sorted(found, key=str)


def _seen_before(
    layout: Layout, keys: set[PartitionKey], before: Sequence[Manifest], entries_of: EntriesOf
) -> set[PartitionKey]:
    live = [manifest for manifest in before if manifest.is_data and manifest.live_files != 0]
    specs = {manifest.spec_id for manifest in live}
    seen = {key for key in keys if specs - {key[0]}}
    for manifest in live:
        candidates = {key for key in keys - seen if key[0] == manifest.spec_id and _may_hold(layout, manifest, key[1])}
        if not candidates:
            continue
        for entry in entries_of(manifest):
            if entry.partition in {values for _, values in candidates}:
                seen.add((entry.spec_id, entry.partition))
                candidates.discard((entry.spec_id, entry.partition))
                if not candidates:
                    break
    return seen


def _may_hold(layout: Layout, manifest: Manifest, values: Sequence[Any]) -> bool:
    """Whether the bounds in the manifest list leave room for a partition."""
    for position, (summary, value) in enumerate(zip(manifest.partitions or (), values, strict=False)):
        if value is None:
            if not summary["contains_null"]:
                return False
            continue
        if value is math.nan:
            # Bounds leave it out, and not every writer says whether there is one.
            continue
        try:
            low = layout.partition_bound(manifest.spec_id, position, summary["lower_bound"])
            high = layout.partition_bound(manifest.spec_id, position, summary["upper_bound"])
        except UnreadableBound:
            continue
        if low is not None and high is not None and type(low) is type(value) and not low <= value <= high:
            return False
    return True
