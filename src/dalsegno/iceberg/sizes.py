"""How many bytes a table has in some of its partitions, from metadata.

A snapshot says how many bytes it has in all. Of single partitions only manifests know, which never change: what one
holds is remembered. Where many files would have to be looked at, the rest is estimated from those that were.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from pyiceberg.types import NestedField

from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.entries import read_entries, read_sizes
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.layout import Layout, UnreadableBound, read_bound
from dalsegno.iceberg.manifests import Manifest, ManifestList, read_list
from dalsegno.iceberg.values import said

#: How many files are looked at, of those that are not remembered: some tenths of a second.
_MOST_FILES = 5_000
_MOST_REMEMBERED = 2_000
#: How much of a moment such as ``2026-11-15-23`` a unit of time shows.
_UNIT_LENGTHS = {"year": 4, "month": 7, "day": 10, "hour": 13}

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d")

#: Values of some columns, each as ``Layout.partition`` writes it, and the transform that made it.
PartitionValue = tuple[Any, str]
Values = tuple[PartitionValue, ...]

_remembered: OrderedDict[str, Any] = OrderedDict()
_guard = threading.Lock()


class TableSizes:
    """The bytes of a table at one snapshot."""

    def __init__(self, table: LoadedTable, snapshot_id: int | None) -> None:
        self._table = table
        self._snapshot = None if snapshot_id is None else table.history().snapshots.get(snapshot_id)

    @cached_property
    def total(self) -> int:
        if self._snapshot is None:
            return 0
        counted = self._snapshot.count("total-files-size")
        return sum(self._bytes_of(each) for each in self._manifests) if counted is None else counted

    @cached_property
    def rows(self) -> int:
        if self._snapshot is None:
            return 0
        counted = self._snapshot.count("total-records")
        return sum(each.live_rows or 0 for each in self._manifests) if counted is None else counted

    def within(self, columns: Sequence[str], wanted: Collection[Values]) -> int:
        """The bytes in partitions that may hold any of these combinations of values of some columns."""
        if self._snapshot is None or not wanted:
            return 0
        found = looked_at = 0
        unseen: list[Manifest] = []
        budget = _MOST_FILES
        tests = {spec_id: self._test(spec_id, columns, wanted) for spec_id in self._specs}
        for manifest in self._manifests:
            test = tests[manifest.spec_id]
            if test is None:
                found += self._estimated(manifest)
                continue
            if (is_in := test.of_bounds(manifest)) is not None:
                found += self._estimated(manifest) if is_in else 0
                continue
            if not _is_remembered(manifest.path):
                budget -= manifest.live_files or 0
            if budget < 0 and looked_at:
                unseen.append(manifest)
                continue
            sizes = self._sizes(manifest)
            looked_at += sum(sizes.values())
            found += sum(size for partition, size in sizes.items() if test.of(partition))
        share = found / looked_at if looked_at else 1
        return min(found + int(share * sum(map(self._estimated, unseen))), self.total)

    def near(self, column: str, spans: Collection[tuple[Any, Any]]) -> int:
        """The bytes of files that may hold values of a column in one of these spans, each as people write it."""
        if self._snapshot is None:
            return 0
        field = next((each for each in self._layout.schema.fields if each.name.lower() == column.lower()), None)
        if field is None:
            return self.total
        found = seen = 0
        for manifest in self._manifests:
            for size, low, high in self._bounds(manifest, field):
                seen += size
                found += size * any(_may_overlap(low, high, *span) for span in spans)
        return min(self.total, self.total * found // seen if seen else 0)

    def largest(self, column: str, columns: Sequence[str] = (), wanted: Collection[Values] = ()) -> Any:
        """The largest value of a column, or more, as people write it; None if it is not known, or takes long to find.

        ``columns``, ``wanted``: only in partitions that may hold any of these combinations of values, if given.
        """
        field = next((each for each in self._layout.schema.fields if each.name.lower() == column.lower()), None)
        if self._snapshot is None or field is None:
            return None
        tests = {each: self._test(each, columns, wanted) if columns else None for each in self._specs}
        read = [
            each
            for each in self._manifests
            if (test := tests[each.spec_id]) is None or test.of_bounds(each) is not False
        ]
        files = [_MOST_FILES + 1 if each.live_files is None else each.live_files for each in read]
        unseen = [
            number
            for each, number in zip(read, files, strict=True)
            if not _is_remembered(f"{each.path}#{field.field_id}")
        ]
        if not read or max(files) > _MOST_FILES or sum(unseen) > _MOST_FILES:
            return None
        highest = [high for manifest in read for _, _, high in self._bounds(manifest, field)]
        return max(highest) if highest and all(_is_plain(each, highest[0]) for each in highest) else None

    @property
    def _specs(self) -> set[int]:
        return {each.spec_id for each in self._manifests}

    def _bounds(self, manifest: Manifest, field: NestedField) -> Sequence[tuple[int, Any, Any]]:
        """Each file's bytes, and the bounds of a column; None if they are not known."""

        def bound(value: bytes | None) -> Any:
            try:
                return None if value is None else said(field.field_type, read_bound(field.field_type, value))
            except UnreadableBound:
                return None

        found: Sequence[tuple[int, Any, Any]] = _remember(
            f"{manifest.path}#{field.field_id}",
            lambda: [
                (entry.size, bound(entry.lower.get(field.field_id)), bound(entry.upper.get(field.field_id)))
                for entry in islice(read_entries(self._table.files, manifest, (field.field_id,)), _MOST_FILES)
            ],
        )
        return found

    @cached_property
    def _layout(self) -> Layout:
        return Layout(self._table.metadata, self._table.metadata.get("current-schema-id", 0))

    @cached_property
    def _manifests(self) -> Sequence[Manifest]:
        location = self._snapshot.manifest_list if self._snapshot else ""
        listed: ManifestList = _remember(location, lambda: read_list(self._table.files, location))
        return [each for each in listed.manifests if each.is_data and each.live_files != 0]

    def _bytes_of(self, manifest: Manifest) -> int:
        return sum(self._sizes(manifest).values())

    def _estimated(self, manifest: Manifest) -> int:
        """By its rows, which the manifest list tells."""
        if manifest.live_rows is None:
            return self._bytes_of(manifest)
        return self.total * manifest.live_rows // self.rows if self.rows else 0

    def _sizes(self, manifest: Manifest) -> Mapping[tuple[Any, ...], int]:
        found: Mapping[tuple[Any, ...], int] = _remember(manifest.path, lambda: _sizes(self._table.files, manifest))
        return found

    def _test(self, spec_id: int, columns: Sequence[str], wanted: Collection[Values]) -> _Test | None:
        """Which partitions of a spec may hold the values; None: any of them."""
        places = []
        for at, column in enumerate(columns):
            transforms = {values[at][1] for values in wanted}
            for position, item in enumerate(self._layout.specs[spec_id]):
                path = self._layout.column_path(item.source_id) or ()
                is_it = [name.lower() for name in path] == [column.lower()]
                if is_it and all(_is_comparable(each, item.transform) for each in transforms):
                    places.append((at, position, item.transform))
                    break
        if not places:
            return None
        known = {tuple(_in_units_of(values[at][0], to) for at, _, to in places) for values in wanted}
        return _Test(self._layout, spec_id, [position for _, position, _ in places], known)


class _Test:
    """Whether partitions of one spec are among the wanted ones."""

    def __init__(self, layout: Layout, spec_id: int, positions: Sequence[int], wanted: set[tuple[Any, ...]]) -> None:
        self._layout, self._spec_id, self._positions, self._wanted = layout, spec_id, positions, wanted
        self._known: dict[tuple[Any, ...], bool] = {}

    def of(self, partition: tuple[Any, ...]) -> bool:
        if partition not in self._known:
            self._known[partition] = self._said(partition) in self._wanted
        return self._known[partition]

    def of_bounds(self, manifest: Manifest) -> bool | None:
        """What the bounds in the manifest list tell: all of its files, none of them, or None."""
        summaries = manifest.partitions
        if not summaries or any(each["contains_null"] for each in summaries):
            return None
        try:
            ends = [
                tuple(self._layout.partition_bound(self._spec_id, at, each[end]) for at, each in enumerate(summaries))
                for end in ("lower_bound", "upper_bound")
            ]
        except UnreadableBound:
            return None
        low, high = (self._said(end) for end in ends)
        if low == high and None not in low:
            return low in self._wanted
        for at, (least, most) in enumerate(zip(low, high, strict=True)):
            values = [each[at] for each in self._wanted]
            if _are_ordered(least, most, values) and not any(least <= value <= most for value in values):
                return False
        return None

    def _said(self, partition: Sequence[Any]) -> tuple[Any, ...]:
        said = list(self._layout.partition(self._spec_id, partition).values())
        return tuple(said[position] for position in self._positions)


def is_larger(value: Any, than: Any) -> bool:
    """Whether a value is larger than another one, both as people write them; False if that is not known."""
    return _is_plain(value, than) and bool(value > than)


def _is_plain(value: Any, other: Any) -> bool:
    """Whether both are numbers, or moments of years with four digits, which compare as texts do."""
    if type(value) is int and type(other) is int:
        return True
    return all(isinstance(each, str) and _MOMENT.match(each) for each in (value, other))


def _may_overlap(low: Any, high: Any, least: Any, most: Any) -> bool:
    return not _are_ordered(low, high, [least, most]) or bool(low <= most and least <= high)


def _are_ordered(least: Any, most: Any, values: Sequence[Any]) -> bool:
    """Whether values as people write them compare as the values do: numbers do, and texts such as dates."""
    return any(all(type(each) is kind for each in (least, most, *values)) for kind in (int, str))


def _is_comparable(made: str, by: str) -> bool:
    """Whether the value of one transform says which value another one has."""
    if made == by:
        return True
    lengths = [_UNIT_LENGTHS.get(each, 99 if each == "identity" else 0) for each in (made, by)]
    return by in _UNIT_LENGTHS and lengths[0] >= lengths[1]


def _in_units_of(value: Any, transform: str) -> Any:
    if transform not in _UNIT_LENGTHS or not isinstance(value, str):
        return value
    return value.replace("T", "-")[: _UNIT_LENGTHS[transform]]


def _sizes(files: Files, manifest: Manifest) -> Mapping[tuple[Any, ...], int]:
    """The bytes of each partition; of a manifest of very many files, as its first ones have it."""
    found: Counter[tuple[Any, ...]] = Counter()
    seen = 0
    for partition, size in islice(read_sizes(files, manifest), _MOST_FILES):
        found[partition] += size
        seen += 1
    live = manifest.live_files or seen
    return found if live <= seen else {partition: size * live // seen for partition, size in found.items()}


def _is_remembered(location: str) -> bool:
    with _guard:
        return location in _remembered


def _remember(location: str, make: Callable[[], Any]) -> Any:
    """What a file that never changes holds."""
    with _guard:
        if location in _remembered:
            _remembered.move_to_end(location)
            return _remembered[location]
    made = make()
    with _guard:
        _remembered[location] = made
        while len(_remembered) > _MOST_REMEMBERED:
            _remembered.popitem(last=False)
    return made
