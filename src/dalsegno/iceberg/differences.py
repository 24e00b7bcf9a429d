"""Which files differ between two states of a table, whatever happened in between.

A data file is *touched* if it is live at one end only, or live at both with other delete files reaching it. The rows of
the touched files at the two ends, each with the delete files of that end, differ by exactly what changed in the table:
every other file holds the same rows on both sides. Only the two ends matter, so overwrites, deletes, compaction,
rollbacks and switched branches need no rules of their own.

Manifests never change, so one that both ends name is only looked into where a changed delete file may reach its files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dalsegno.iceberg.files import Files
from dalsegno.iceberg.layout import Layout
from dalsegno.iceberg.manifests import DELETED, EntryField, ListField, Manifest, Take, data_file_names, opened
from dalsegno.iceberg.partitions import PartitionKey, may_hold

_SEQUENCE_NUMBER = 3
_CONTENT, _PATH, _PARTITION, _LOWER, _UPPER = 134, 100, 102, 125, 128
_REFERENCED_DATA_FILE, _CONTENT_OFFSET = 143, 144
_EQUALITY_DELETES = 2
#: Iceberg's id of the column of a position delete file that names the data file.
_FILE_PATH_COLUMN = 2147483546


@dataclass(frozen=True)
class Side:
    """The touched files at one end, and the delete manifests that may reach them."""

    data: tuple[Take, ...]
    deletes: tuple[Manifest, ...]


@dataclass(frozen=True)
class _Entry:
    """A live file: as much of it as decides whether it is touched, or what it reaches."""

    path: str
    key: PartitionKey
    sequence_number: int
    content: int
    #: Deletion vectors share a file, and are told apart by their place in it.
    offset: int | None
    #: The only data file that a delete file reaches, if there is but one.
    target: str | None
    #: Otherwise: between which paths lie the data files that position deletes name, if that is known.
    between: tuple[str, str] | None

    def reaches(self, data: _Entry, *, everywhere: bool) -> bool:
        """Whether this delete file applies to a data file, by the rules of the format."""
        if self.target is not None:
            return data.path == self.target
        if not everywhere and data.key != self.key:
            return False
        if self.content == _EQUALITY_DELETES:
            return data.sequence_number < self.sequence_number
        named = self.between is None or self.between[0] <= data.path <= self.between[1]
        return named and data.sequence_number <= self.sequence_number


def added_since(files: Files, layout: Layout, before: Sequence[Manifest], after: Sequence[Manifest]) -> Side:
    """The files that are live at the second state and were not at the first, with the delete files that reach them."""
    shared = _paths(before) & _paths(after)
    old = {entry.path for m in before if m.is_data and m.path not in shared for entry in _live(files, m)}
    takes: list[Take] = []
    keys: set[PartitionKey] = set()
    for manifest in after:
        if not manifest.is_data or manifest.path in shared:
            continue
        entries = list(_live(files, manifest))
        kept = [entry for entry in entries if entry.path not in old]
        if kept:
            takes.append(_take(manifest, kept, len(kept) == len(entries)))
            keys |= {entry.key for entry in kept}
    return Side(tuple(takes), tuple(m for m in after if not m.is_data and _applies(layout, m, keys)))


def _paths(manifests: Iterable[Manifest]) -> set[str]:
    return {manifest.path for manifest in manifests}


def touched(files: Files, layout: Layout, before: Sequence[Manifest], after: Sequence[Manifest]) -> tuple[Side, Side]:
    """The two sides of what changed between two states, each given by the manifests that its list names."""
    shared = _paths(before) & _paths(after)
    ends = [[(m, list(_live(files, m))) for m in end if m.path not in shared] for end in (before, after)]
    reach = _Reach.of(layout, *([e for m, entries in end if not m.is_data for e in entries] for end in ends))
    data = [[(m, entries) for m, entries in end if m.is_data] for end in ends]
    common = [
        (manifest, [entry for entry in _live(files, manifest) if reach.hits(entry)])
        for manifest in after
        if manifest.path in shared and manifest.is_data and reach.may_hit(manifest)
    ]
    paths = [{entry.path for _, entries in side for entry in entries} for side in data]
    sides = []
    for own, others, end in zip(data, reversed(paths), (before, after), strict=True):
        hit = [(m, entries, [e for e in entries if e.path not in others or reach.hits(e)]) for m, entries in own]
        takes = [_take(m, kept, len(kept) == len(entries)) for m, entries, kept in hit if kept]
        takes += [_take(m, kept, whole=False) for m, kept in common if kept]
        keys = {entry.key for _, _, kept in hit for entry in kept} | {e.key for _, kept in common for e in kept}
        sides.append(Side(tuple(takes), tuple(m for m in end if not m.is_data and _applies(layout, m, keys))))
    return sides[0], sides[1]


def _take(manifest: Manifest, kept: Sequence[_Entry], whole: bool) -> Take:
    return Take(manifest, None if whole else frozenset(entry.path for entry in kept))


def _applies(layout: Layout, deletes: Manifest, keys: set[PartitionKey]) -> bool:
    """Whether a delete manifest may name a file that reaches one of these partitions."""
    if deletes.live_files == 0 or not keys:
        return False
    if layout.is_unpartitioned(deletes.spec_id):
        return True
    return any(spec == deletes.spec_id and may_hold(layout, deletes, values) for spec, values in keys)


@dataclass(frozen=True)
class _Reach:
    """The delete files that are live at one end only: what they may reach has changed."""

    layout: Layout
    targets: frozenset[str]
    #: Delete files that reach more than one data file, each with whether it does so in every partition.
    wide: tuple[tuple[_Entry, bool], ...]
    keys: frozenset[PartitionKey]

    @classmethod
    def of(cls, layout: Layout, before: Iterable[_Entry], after: Iterable[_Entry]) -> _Reach:
        ends = [{(entry.path, entry.offset): entry for entry in end} for end in (before, after)]
        changed = [ends[0].get(key) or ends[1][key] for key in ends[0].keys() ^ ends[1].keys()]
        wide = tuple((entry, cls._is_global(layout, entry)) for entry in changed if entry.target is None)
        targets = frozenset(entry.target for entry in changed if entry.target is not None)
        return cls(layout, targets, wide, frozenset(entry.key for entry in changed))

    @staticmethod
    def _is_global(layout: Layout, entry: _Entry) -> bool:
        return entry.content == _EQUALITY_DELETES and layout.is_unpartitioned(entry.key[0])

    def hits(self, data: _Entry) -> bool:
        return data.path in self.targets or any(e.reaches(data, everywhere=everywhere) for e, everywhere in self.wide)

    def may_hit(self, manifest: Manifest) -> bool:
        if any(everywhere for _, everywhere in self.wide):
            return True
        return any(spec == manifest.spec_id and may_hold(self.layout, manifest, values) for spec, values in self.keys)


def _live(files: Files, manifest: Manifest) -> Iterator[_Entry]:
    with opened(files, manifest.path) as (format_, records):
        names, inner = format_.names(), data_file_names(format_)
        for record in records:
            if record[names[EntryField.STATUS]] == DELETED:
                continue
            file = record[names[EntryField.DATA_FILE]]
            sequence = record.get(names.get(_SEQUENCE_NUMBER, ""))
            if sequence is None:
                sequence = manifest.values.get(ListField.SEQUENCE_NUMBER) or 0
            between = None if manifest.is_data else _named_between(file, inner)
            target = file.get(inner.get(_REFERENCED_DATA_FILE, ""))
            if target is None and between is not None and between[0] == between[1]:
                target = between[0]
            yield _Entry(
                path=file[inner[_PATH]],
                key=(manifest.spec_id, tuple(file[inner[_PARTITION]].values())),
                sequence_number=sequence,
                content=file.get(inner.get(_CONTENT, ""), 0),
                offset=file.get(inner.get(_CONTENT_OFFSET, "")),
                target=target,
                between=between,
            )


def _named_between(file: dict[str, Any], names: dict[int, str]) -> tuple[str, str] | None:
    bounds = [
        next((pair["value"] for pair in file.get(names.get(field, "")) or () if pair["key"] == _FILE_PATH_COLUMN), None)
        for field in (_LOWER, _UPPER)
    ]
    if bounds[0] is None or bounds[1] is None:
        return None
    try:
        return bounds[0].decode(), bounds[1].decode()
    except UnicodeDecodeError:
        # A bound that was cut inside of a letter.
        return None
