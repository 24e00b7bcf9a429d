"""The partitions that a capture touches, and which of them the consumer has not seen before.

A partition is new only if that is proven: no live file of it at the checkpoint, and no live file of another partition
spec, whose rows could belong to it. A new partition can be inserted; only a re-opened one needs a merge.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from dalsegno.iceberg.entries import FileEntry
from dalsegno.iceberg.layout import Layout, UnreadableBound
from dalsegno.iceberg.manifests import Manifest
from dalsegno.iceberg.values import partition_path

PartitionKey = tuple[int, tuple[Any, ...]]
EntriesOf = Callable[[Manifest], Iterable[FileEntry]]
#: Is given manifests that are looked into next.
Soon = Callable[[Sequence[Manifest]], None]
#: How many manifests are asked for at once; the first of them may answer for the rest.
_WAVE = 32


class Novelty(StrEnum):
    NEW = "new"
    REOPENED = "reopened"
    #: The checkpoint's snapshot has expired, so nobody can tell; or too many files would have to be looked at.
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
        return partition_path(self.values) or "(not partitioned)"


def touched_partitions(
    layout: Layout,
    entries: Iterable[FileEntry],
    before: Sequence[Manifest] | None,
    entries_of: EntriesOf,
    *,
    most_entries: int = sys.maxsize,
    soon: Soon = lambda _: None,
) -> list[Partition]:
    """The partitions of the entries; ``before`` is what was live at the checkpoint, None if that is not known.

    To tell new from re-opened, no more than ``most_entries`` of what was live before are looked at.
    """
    totals: dict[PartitionKey, list[int]] = {}
    for entry in entries:
        total = totals.setdefault((entry.spec_id, entry.partition), [0, 0, 0])
        for index, amount in enumerate((1, entry.rows, entry.size)):
            total[index] += amount
    if before is None:
        novelties = dict.fromkeys(totals, Novelty.UNKNOWN)
    else:
        novelties = _novelties(layout, list(totals), before, entries_of, most_entries, soon)
    found = [
        Partition(key[0], layout.partition(*key), files, rows, size, novelties[key])
        for key, (files, rows, size) in totals.items()
    ]
    return sorted(found, key=str)


def _novelties(
    layout: Layout,
    keys: Sequence[PartitionKey],
    before: Sequence[Manifest],
    entries_of: EntriesOf,
    most: int,
    soon: Soon,
) -> dict[PartitionKey, Novelty]:
    live = [
        (manifest, _spans(layout, manifest)) for manifest in before if manifest.is_data and manifest.live_files != 0
    ]
    specs = {manifest.spec_id for manifest, _ in live}
    found = {key: Novelty.REOPENED if specs - {key[0]} else Novelty.NEW for key in keys}
    for manifest, spans in live:
        if manifest.only_live:
            touched = (key for key in keys if key[0] == manifest.spec_id and _is_at_end(spans, key[1]))
            found |= dict.fromkeys(touched, Novelty.REOPENED)
    for number, (manifest, spans) in enumerate(live):
        if most and number % _WAVE == 0:
            soon([each for each, its_spans in live[number : number + _WAVE] if _doubtful(found, each, its_spans)])
        doubtful = _doubtful(found, manifest, spans)
        for entry in islice(entries_of(manifest), most) if doubtful else ():
            most -= 1
            key = (entry.spec_id, entry.partition)
            if key in doubtful:
                found[key] = Novelty.REOPENED
                doubtful.discard(key)
                if not doubtful:
                    break
        if not most:
            found |= dict.fromkeys(doubtful, Novelty.UNKNOWN)
    return found


def _doubtful(found: Mapping[PartitionKey, Novelty], manifest: Manifest, spans: Sequence[_Span]) -> set[PartitionKey]:
    """The partitions not known to be re-opened that a manifest may hold files of."""
    return {
        key
        for key, novelty in found.items()
        if novelty is not Novelty.REOPENED and key[0] == manifest.spec_id and _may_hold(spans, key[1])
    }


def may_hold(layout: Layout, manifest: Manifest, values: Sequence[Any]) -> bool:
    """Whether the bounds in the manifest list leave room for a partition of the manifest's spec."""
    return _may_hold(_spans(layout, manifest), values)


@dataclass(frozen=True)
class _Span:
    """What a manifest list says about one partition field of a manifest; low and high are None if unknown."""

    low: Any
    high: Any
    has_null: bool

    def may_hold(self, value: Any) -> bool:
        if value is None:
            return self.has_null
        # Bounds leave "not a number" out, and not every writer says whether there is one.
        is_nan = isinstance(value, float) and math.isnan(value)
        if is_nan or self.low is None or self.high is None or type(self.low) is not type(value):
            return True
        return bool(self.low <= value <= self.high)

    def is_all(self, value: Any) -> bool:
        return bool(self.low == value == self.high) and value is not None and not self.has_null

    def is_end(self, value: Any) -> bool:
        return self.has_null if value is None else value in (self.low, self.high)


def _spans(layout: Layout, manifest: Manifest) -> list[_Span]:
    spans = []
    for position, summary in enumerate(manifest.partitions or ()):
        try:
            low = layout.partition_bound(manifest.spec_id, position, summary["lower_bound"])
            high = layout.partition_bound(manifest.spec_id, position, summary["upper_bound"])
        except UnreadableBound:
            low = high = None
        spans.append(_Span(low, high, summary["contains_null"]))
    return spans


def _may_hold(spans: Sequence[_Span], values: Sequence[Any]) -> bool:
    """Whether the bounds leave room for a partition."""
    return all(span.may_hold(value) for span, value in zip(spans, values, strict=False))


def _is_at_end(spans: Sequence[_Span], values: Sequence[Any]) -> bool:
    """Whether only a file of this partition can be why a bound is where it is: then the manifest need not be read.

    A writer may have set its bounds wider than it had to; then a new partition is taken for a re-opened one, which
    costs a merge and nothing else.
    """
    if not spans or len(spans) != len(values):
        return False
    varying = [(span, value) for span, value in zip(spans, values, strict=True) if not span.is_all(value)]
    return not varying or (len(varying) == 1 and varying[0][0].is_end(varying[0][1]))
