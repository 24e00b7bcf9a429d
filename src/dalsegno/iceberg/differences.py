"""Which files differ between two states of a table, whatever happened in between.

A data file is *touched* if it is live at one end only, or live at both with other delete files reaching it. The rows of
the touched files at the two ends, each with the delete files of that end, differ by exactly what changed in the table:
every other file holds the same rows on both sides. Only the two ends matter, so overwrites, deletes, compaction,
rollbacks and switched branches need no rules of their own.

Manifests never change, so one that both ends name is only looked into where a changed delete file may reach its files.
What compaction only swapped (see ``swaps``) holds the same rows on both sides as well, and is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dalsegno.iceberg.entries import partition_reader
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.layout import Layout
from dalsegno.iceberg.manifests import (
    ADDED,
    EXISTING,
    EntryField,
    ListField,
    Manifest,
    Take,
    data_file_names,
    opened,
    prefetch,
)
from dalsegno.iceberg.partitions import PartitionKey, may_hold
from dalsegno.plan.forecast import Cost

_LOWER, _UPPER = 125, 128
_REFERENCED_DATA_FILE, _CONTENT_OFFSET = 143, 144
EQUALITY_DELETES = 2
#: Iceberg's id of the column of a position delete file that names the data file.
_FILE_PATH_COLUMN = 2147483546


@dataclass(frozen=True)
class Side:
    """The touched files at one end, and the delete manifests that may reach them."""

    data: tuple[Take, ...]
    deletes: tuple[Manifest, ...]


#: A file as it was added, once: its path, its place in that file, and its age.
Identity = tuple[str, int | None, int]


@dataclass(frozen=True)
class Swap:
    """Files that held the same rows when the ones took the place of the others."""

    removed: frozenset[Identity]
    added: frozenset[Identity]


@dataclass(frozen=True)
class Entry:
    """A file: as much of it as decides whether it is touched, or what it reaches."""

    #: Its place among the manifest's entries.
    place: int
    status: int
    path: str
    key: PartitionKey
    sequence_number: int
    rows: int
    size: int
    content: int
    #: The columns by which an equality delete file tells rows.
    equality_ids: tuple[int, ...]
    #: Deletion vectors share a file, and are told apart by their place in it.
    offset: int | None
    #: The only data file that a delete file reaches, if there is but one.
    target: str | None
    #: Otherwise: between which paths lie the data files that position deletes name, if that is known.
    between: tuple[str, str] | None

    @property
    def identity(self) -> Identity:
        """Equal where a file is the same at both ends; one that was removed and added anew is another.

        Version 1 has no sequence numbers: there a file that was added twice is the same one, twice.
        """
        return self.path, self.offset, self.sequence_number

    @property
    def cost(self) -> Cost:
        return Cost(1, self.rows, self.size)

    def reaches(self, data: Entry, *, everywhere: bool) -> bool:
        """Whether this delete file applies to a data file, by the rules of the format."""
        if self.target is not None:
            return data.path == self.target
        if not everywhere and data.key != self.key:
            return False
        if self.content == EQUALITY_DELETES:
            return data.sequence_number < self.sequence_number
        named = self.between is None or self.between[0] <= data.path <= self.between[1]
        return named and data.sequence_number <= self.sequence_number


def added_since(
    files: Files, layout: Layout, before: Sequence[Manifest], after: Sequence[Manifest], swaps: Sequence[Swap] = ()
) -> Side:
    """The files that are live at the second state and were not at the first, with the delete files that reach them."""
    shared = _paths(before) & _paths(after)
    prefetch(files, (m for end in (before, after) for m in end if m.is_data and m.path not in shared))
    ends = [[(m, list(_live(files, m))) for m in end if m.is_data and m.path not in shared] for end in (before, after)]
    known = [Counter(entry.identity for _, entries in end for entry in entries) for end in ends]
    _, left_out = _left_out(swaps, *known)
    stays = _Stays(known[0], left_out)
    takes: list[Take] = []
    keys: set[PartitionKey] = set()
    for manifest, entries in ends[1]:
        kept = [entry for entry in entries if not stays.takes(entry)]
        if kept:
            takes.append(_take(manifest, kept, len(kept) == len(entries)))
            keys |= {entry.key for entry in kept}
    return Side(tuple(takes), tuple(m for m in after if not m.is_data and _applies(layout, m, keys)))


def _paths(manifests: Iterable[Manifest]) -> set[str]:
    return {manifest.path for manifest in manifests}


def touched(
    files: Files, layout: Layout, before: Sequence[Manifest], after: Sequence[Manifest], swaps: Sequence[Swap] = ()
) -> tuple[Side, Side]:
    """The two sides of what changed between two states, each given by the manifests that its list names."""
    shared = _paths(before) & _paths(after)
    prefetch(files, (m for end in (before, after) for m in end if m.path not in shared))
    ends = [[(m, list(_live(files, m))) for m in end if m.path not in shared] for end in (before, after)]
    reach = _Reach.of(layout, *([e for m, entries in end if not m.is_data for e in entries] for end in ends))
    data = [[(m, entries) for m, entries in end if m.is_data] for end in ends]
    in_reach = [m for m in after if m.path in shared and m.is_data and reach.may_hit(m)]
    prefetch(files, in_reach)
    common = [(m, [entry for entry in _live(files, m) if reach.hits(entry)]) for m in in_reach]
    known = [Counter(entry.identity for _, entries in side for entry in entries) for side in data]
    # Swaps are of a range that kept its delete files: if it did not after all, nothing is left out.
    swapped = _left_out(() if reach.keys else swaps, *known)
    sides = []
    for own, others, same, end in zip(data, reversed(known), swapped, (before, after), strict=True):
        stays = _Stays(others, same)
        hit = [(m, entries, [e for e in entries if reach.hits(e) or not stays.takes(e)]) for m, entries in own]
        takes = [_take(m, kept, len(kept) == len(entries)) for m, entries, kept in hit if kept]
        takes += [_take(m, kept, whole=False) for m, kept in common if kept]
        keys = {entry.key for _, _, kept in hit for entry in kept} | {e.key for _, kept in common for e in kept}
        sides.append(Side(tuple(takes), tuple(m for m in end if not m.is_data and _applies(layout, m, keys))))
    return sides[0], sides[1]


def _left_out(
    swaps: Iterable[Swap], before: Counter[Identity], after: Counter[Identity]
) -> tuple[set[Identity], set[Identity]]:
    """What is live at each end and was swapped as a whole: all that was removed was there, all that was added is."""
    whole = [
        swap
        for swap in swaps
        if all((before[each], after[each]) == (1, 0) for each in swap.removed)
        and all((before[each], after[each]) == (0, 1) for each in swap.added)
    ]
    return {each for swap in whole for each in swap.removed}, {each for swap in whole for each in swap.added}


class _Stays:
    """The files of one end that the other has as well, each as often as the other has it, or that were swapped."""

    def __init__(self, others: Mapping[Identity, int], swapped: Collection[Identity]) -> None:
        self._left, self._swapped = Counter(others), swapped

    def takes(self, entry: Entry) -> bool:
        if entry.identity in self._swapped:
            return True
        self._left[entry.identity] -= 1
        return self._left[entry.identity] >= 0


def _take(manifest: Manifest, kept: Sequence[Entry], whole: bool) -> Take:
    counted = Cost.total(entry.cost for entry in kept)
    return Take(manifest, None if whole else frozenset(entry.place for entry in kept), counted=counted)


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
    wide: tuple[tuple[Entry, bool], ...]
    keys: frozenset[PartitionKey]

    @classmethod
    def of(cls, layout: Layout, before: Iterable[Entry], after: Iterable[Entry]) -> _Reach:
        ends = [{entry.identity: entry for entry in end} for end in (before, after)]
        changed = [ends[0].get(key) or ends[1][key] for key in ends[0].keys() ^ ends[1].keys()]
        wide = tuple((entry, cls._is_global(layout, entry)) for entry in changed if entry.target is None)
        targets = frozenset(entry.target for entry in changed if entry.target is not None)
        return cls(layout, targets, wide, frozenset(entry.key for entry in changed))

    @staticmethod
    def _is_global(layout: Layout, entry: Entry) -> bool:
        return entry.content == EQUALITY_DELETES and layout.is_unpartitioned(entry.key[0])

    def hits(self, data: Entry) -> bool:
        return data.path in self.targets or any(e.reaches(data, everywhere=everywhere) for e, everywhere in self.wide)

    def may_hit(self, manifest: Manifest) -> bool:
        if any(everywhere for _, everywhere in self.wide):
            return True
        return any(spec == manifest.spec_id and may_hold(self.layout, manifest, values) for spec, values in self.keys)


def _live(files: Files, manifest: Manifest) -> Iterator[Entry]:
    return (entry for entry in read_files(files, manifest) if entry.status in (EXISTING, ADDED))


def read_files(files: Files, manifest: Manifest) -> Iterator[Entry]:
    """Every file that a manifest names, removed ones too."""
    with opened(files, manifest.path, length=manifest.length) as (format_, records):
        names, inner = format_.names(), data_file_names(format_)
        partition_of = partition_reader(format_)
        for place, record in enumerate(records):
            file = record[names[EntryField.DATA_FILE]]
            sequence = record.get(names.get(EntryField.SEQUENCE_NUMBER, ""))
            if sequence is None:
                sequence = manifest.values.get(ListField.SEQUENCE_NUMBER) or 0
            between = None if manifest.is_data else _named_between(file, inner)
            target = file.get(inner.get(_REFERENCED_DATA_FILE, ""))
            if target is None and between is not None and between[0] == between[1]:
                target = between[0]
            yield Entry(
                place=place,
                status=record[names[EntryField.STATUS]],
                path=file[inner[EntryField.PATH]],
                key=(manifest.spec_id, partition_of(file)),
                sequence_number=sequence,
                rows=file[inner[EntryField.RECORD_COUNT]],
                size=file[inner[EntryField.SIZE]],
                content=file.get(inner.get(EntryField.CONTENT, ""), 0),
                equality_ids=tuple(file.get(inner.get(EntryField.EQUALITY_IDS, "")) or ()),
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
