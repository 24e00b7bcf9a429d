"""Which manifests hold what a range of snapshots added.

A snapshot's manifest list names every manifest of the table; the ones it added itself carry its id. Usually they are
all still there in the list of the range's last snapshot, so one list answers for the whole range: that is believed
only if the counts of files and rows equal those in the snapshot's own summary. Otherwise (manifests get merged,
rewritten, or lose files to a compaction) earlier lists are asked in the same way; the last word has the snapshot's own
list, which never changes.
"""

from __future__ import annotations

import copy
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import Any

from dalsegno.errors import DataError, UnsupportedChange, UnsupportedTable
from dalsegno.hints import Verb, action
from dalsegno.iceberg import avro
from dalsegno.iceberg.files import Files
from dalsegno.model.snapshots import Operation, Snapshot
from dalsegno.plan.forecast import Cost


class ListField(IntEnum):
    """Iceberg's ids of the fields of a manifest list."""

    PATH = 500
    LENGTH = 501
    SPEC_ID = 502
    ADDED_SNAPSHOT_ID = 503
    ADDED_FILES = 504
    EXISTING_FILES = 505
    DELETED_FILES = 506
    PARTITIONS = 507
    ADDED_ROWS = 512
    EXISTING_ROWS = 513
    DELETED_ROWS = 514
    SEQUENCE_NUMBER = 515
    MIN_SEQUENCE_NUMBER = 516
    CONTENT = 517
    KEY_METADATA = 519
    FIRST_ROW_ID = 520


class EntryField(IntEnum):
    """Iceberg's ids of the fields of a manifest that are looked at here."""

    STATUS = 0
    SNAPSHOT_ID = 1
    DATA_FILE = 2
    SEQUENCE_NUMBER = 3
    FILE_SEQUENCE_NUMBER = 4
    PATH = 100
    RECORD_COUNT = 103
    SIZE = 104
    CONTENT = 134
    EQUALITY_IDS = 135
    FIRST_ROW_ID = 142


EXISTING = 0
ADDED = 1
DELETED = 2
_DATA, _DELETES = 0, 1
#: No snapshot's id.
_UNKNOWN_SNAPSHOT = -1


@dataclass(frozen=True)
class Manifest:
    """One line of a manifest list."""

    values: Mapping[int, Any]

    @property
    def path(self) -> str:
        return str(self.values[ListField.PATH])

    @property
    def length(self) -> int | None:
        found: int | None = self.values.get(ListField.LENGTH)
        return found

    @property
    def spec_id(self) -> int:
        return int(self.values[ListField.SPEC_ID])

    @property
    def is_data(self) -> bool:
        """Whether it names data files; the others name delete files."""
        return not self.values.get(ListField.CONTENT)

    @property
    def added_snapshot_id(self) -> int:
        """The snapshot that wrote the manifest; format version 1 lets a writer leave it out."""
        found = self.values.get(ListField.ADDED_SNAPSHOT_ID)
        return _UNKNOWN_SNAPSHOT if found is None else int(found)

    @property
    def added_files(self) -> int | None:
        return self.values.get(ListField.ADDED_FILES)

    @property
    def added_rows(self) -> int | None:
        return self.values.get(ListField.ADDED_ROWS)

    @property
    def live_files(self) -> int | None:
        """Added and kept files; None where an old writer did not count them."""
        existing = self.values.get(ListField.EXISTING_FILES)
        return None if self.added_files is None or existing is None else self.added_files + existing

    @property
    def live_rows(self) -> int | None:
        existing = self.values.get(ListField.EXISTING_ROWS)
        return None if self.added_rows is None or existing is None else self.added_rows + existing

    @property
    def only_adds(self) -> bool:
        """Whether every entry is a file that this manifest's own snapshot added."""
        counts = (self.values.get(ListField.EXISTING_FILES), self.values.get(ListField.DELETED_FILES))
        return bool(self.added_files) and counts == (0, 0)

    @property
    def only_live(self) -> bool:
        """Whether no entry is of a file that was removed."""
        return self.values.get(ListField.DELETED_FILES) == 0

    def reduced(self, path: str, to: Rewritten) -> Manifest:
        """The line of a copy that holds only some of the files; the bounds of all of them would be too wide."""
        changed: dict[int, Any] = {
            ListField.CONTENT: to.content_kind,
            ListField.PARTITIONS: None,
            ListField.PATH: path,
            ListField.LENGTH: len(to.content),
            ListField.ADDED_FILES: to.added_files,
            ListField.ADDED_ROWS: to.added_rows,
            ListField.EXISTING_FILES: to.existing_files,
            ListField.EXISTING_ROWS: to.existing_rows,
            ListField.DELETED_FILES: 0,
            ListField.DELETED_ROWS: 0,
        }
        return Manifest({**self.values, **changed})

    @property
    def partitions(self) -> Sequence[Mapping[str, Any]] | None:
        """Per partition field: the bounds over all files, and whether one has no value."""
        return self.values.get(ListField.PARTITIONS)


@dataclass(frozen=True)
class ManifestList:
    """A manifest list and how it is written."""

    format: avro.Format
    manifests: tuple[Manifest, ...]


@dataclass(frozen=True)
class Take:
    """A manifest, and which of its live files count."""

    manifest: Manifest
    #: Their places among the manifest's entries: one file may be named twice. None: all of them.
    only: frozenset[int] | None = None
    #: Only those that the manifest's own snapshot added.
    only_added: bool = False
    #: Whether delete files are to be read as if they were data.
    as_data: bool = False
    #: What those files add up to, where they were looked at.
    counted: Cost | None = None

    @property
    def cost(self) -> Cost:
        """What those files add up to; without looking at them, the manifest's own line tells their number and rows."""
        if self.counted is not None:
            return self.counted
        if self.only_added:
            return Cost(self.manifest.added_files, self.manifest.added_rows, None)
        return Cost(self.manifest.live_files, self.manifest.live_rows, None)

    @property
    def bounded(self) -> Manifest:
        """The manifest with bounds that hold for those files: of some of them, none are known."""
        return self.manifest if self.is_whole else Manifest({**self.manifest.values, ListField.PARTITIONS: None})

    @property
    def is_whole(self) -> bool:
        """Whether the manifest can be copied as it is."""
        return self.only is None and not self.as_data and (not self.only_added or self.manifest.only_adds)

    def wants(self, status: int, snapshot_id: int, place: int) -> bool:
        if self.only_added:
            return status == ADDED and snapshot_id == self.manifest.added_snapshot_id
        return self.only is None or place in self.only


@dataclass(frozen=True)
class Selection:
    """The manifests to take."""

    #: How the list that names them is written.
    format: avro.Format
    #: Snapshot → the manifests that hold its added files.
    by_snapshot: Mapping[int, tuple[Manifest, ...]]

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        return tuple(manifest for group in self.by_snapshot.values() for manifest in group)


@contextmanager
def opened(
    files: Files, location: str, wanted: avro.Wanted | None = None, length: int | None = None
) -> Iterator[tuple[avro.Format, Iterator[avro.Record]]]:
    """A manifest list's or a manifest's format and records; a file that a table names but that is gone is refused."""
    try:
        with files.reading(location, length) as stream:
            yield avro.read(stream, wanted)
    except FileNotFoundError as error:
        raise DataError(
            f"{location} has vanished, though a table still names it.",
            hint="Its snapshot expired just now, or somebody deleted the file.",
            actions=[action("See what is left", Verb.PLAN)],
        ) from error


def prefetch(files: Files, manifests: Iterable[Manifest]) -> None:
    """Begin to read manifests that are looked into next."""
    files.prefetch((manifest.path, manifest.length) for manifest in manifests)


def read_list(files: Files, location: str) -> ManifestList:
    with opened(files, location) as (format_, records):
        ids = {name: field_id for field_id, name in format_.names().items()}
        manifests = tuple(Manifest({ids[name]: value for name, value in record.items()}) for record in records)
    for manifest in manifests:
        if manifest.values.get(ListField.KEY_METADATA) is not None:
            raise UnsupportedTable(
                f"The manifest {manifest.path} is encrypted, so dalsegno does not capture the table.",
                hint="Capture a table that is not encrypted.",
            )
    return ManifestList(format_, manifests)


def write_list(format_: avro.Format, manifests: Iterable[Manifest], *, header: Mapping[str, str]) -> bytes:
    """A manifest list of that format; fields that a manifest's own list did not have get their neutral value."""
    names = format_.names()
    optional = {entry["field-id"] for entry in format_.schema["fields"] if isinstance(entry["type"], list)}
    records = [
        {name: manifest.values.get(field_id, None if field_id in optional else 0) for field_id, name in names.items()}
        for manifest in manifests
    ]
    kept = {key: value for key, value in format_.metadata.items() if key == "format-version"}
    return avro.write(avro.Format(format_.schema, kept | dict(header), format_.codec), records)


def added_by(files: Files, snapshots: Sequence[Snapshot], upto: Snapshot, *, threads: int) -> Selection:
    """The manifests that hold what each of the snapshots added, all of them ancestors of ``upto`` or itself."""
    last = read_list(files, upto.manifest_list)
    found = _by_snapshot(last.manifests, snapshots)
    missing = [snapshot for snapshot in snapshots if not _is_complete(snapshot, found.get(snapshot.id, ()))]
    with ThreadPoolExecutor(threads) as pool:
        while missing:
            # A list also names what was added before its snapshot, so a few, evenly spread, may answer for all.
            asked = missing[:: -math.ceil(len(missing) / threads)]
            answers = pool.map(partial(_named_by, files, missing), asked)
            settled = {snapshot.id for snapshot in asked}
            for snapshot, answer in zip(asked, answers, strict=True):
                complete = {s.id for s in missing if s.id in answer and _is_complete(s, answer[s.id])}
                found |= {id_: answer[id_] for id_ in complete} | {snapshot.id: answer.get(snapshot.id, [])}
                settled |= complete
            missing = [snapshot for snapshot in missing if snapshot.id not in settled]
    return Selection(
        last.format, {snapshot.id: _that_add(snapshot, found.get(snapshot.id, ())) for snapshot in snapshots}
    )


def adds_everything(files: Files, snapshot: Snapshot) -> bool:
    """Whether all that the table held at this snapshot was added by it: the proof that nothing came before."""
    return all(
        manifest.added_snapshot_id == snapshot.id and manifest.only_adds and manifest.is_data
        for manifest in read_list(files, snapshot.manifest_list).manifests
    )


def _named_by(files: Files, wanted: Sequence[Snapshot], snapshot: Snapshot) -> dict[int, list[Manifest]]:
    return _by_snapshot(read_list(files, snapshot.manifest_list).manifests, wanted)


def _by_snapshot(manifests: Iterable[Manifest], wanted: Sequence[Snapshot]) -> dict[int, list[Manifest]]:
    """Each wanted snapshot of which there are manifests, and those that it added."""
    ids, groups = {snapshot.id for snapshot in wanted}, defaultdict(list)
    for manifest in manifests:
        if manifest.added_snapshot_id in ids:
            groups[manifest.added_snapshot_id].append(manifest)
    return dict(groups)


def _is_complete(snapshot: Snapshot, manifests: Iterable[Manifest]) -> bool:
    data = [manifest for manifest in manifests if manifest.is_data]
    if any(manifest.added_files is None or manifest.added_rows is None for manifest in data):
        return False
    return sum(manifest.added_files or 0 for manifest in data) == snapshot.count("added-data-files") and sum(
        manifest.added_rows or 0 for manifest in data
    ) == snapshot.count("added-records")


def _that_add(snapshot: Snapshot, manifests: Iterable[Manifest]) -> tuple[Manifest, ...]:
    for manifest in manifests:
        if snapshot.operation is Operation.APPEND and not manifest.is_data and manifest.added_files != 0:
            raise UnsupportedChange(
                f"Snapshot {snapshot.id} says it only appended, but it added delete files ({manifest.path}).",
                hint="Check what wrote it; dalsegno does not capture a snapshot that contradicts itself.",
            )
    taken = tuple(manifest for manifest in manifests if manifest.is_data and manifest.added_files != 0)
    counts, said = [manifest.added_files for manifest in taken], snapshot.count("added-data-files")
    held = None if None in counts else sum(count or 0 for count in counts)
    if held is not None and said is not None and held < said:
        raise UnsupportedTable(
            f"Snapshot {snapshot.id} says that it added {said} files, but the manifests it wrote hold {held}.",
            hint="Check what wrote it; dalsegno does not capture a snapshot that contradicts itself.",
        )
    return taken


@dataclass(frozen=True)
class Kept:
    """Some of the live files of a manifest; what these inherited is written out."""

    format: avro.Format
    records: list[avro.Record]
    added_files: int
    added_rows: int
    existing_files: int
    existing_rows: int


@dataclass(frozen=True)
class Rewritten:
    """A manifest reduced to some of its live files."""

    content: bytes
    added_files: int
    added_rows: int
    existing_files: int
    existing_rows: int
    #: Whether it names data files (0) or delete files (1).
    content_kind: int


def rewrite(
    files: Files, manifest: Manifest, wanted: Callable[[int, int, int], bool], *, as_data: bool = False
) -> Rewritten:
    """Keep the live entries of which (status, snapshot that added it, place in the manifest) are wanted."""
    kept = keep(files, manifest, wanted, as_data=as_data)
    format_ = kept.format
    if as_data:
        format_ = replace(format_, metadata={**format_.metadata, "content": "data"})
    return Rewritten(
        content=avro.write(format_, kept.records),
        added_files=kept.added_files,
        added_rows=kept.added_rows,
        existing_files=kept.existing_files,
        existing_rows=kept.existing_rows,
        content_kind=_DATA if manifest.is_data or as_data else _DELETES,
    )


def keep(files: Files, manifest: Manifest, wanted: Callable[[int, int, int], bool], *, as_data: bool = False) -> Kept:
    """The live entries of which (status, snapshot that added it, place in the manifest) are wanted.

    Entries inherit their snapshot and sequence numbers from the manifest's line in the list, and their row ids from the
    entries before them: all of that is made explicit, so they mean the same wherever they stand.
    """
    with opened(files, manifest.path, length=manifest.length) as (found, records):
        next_row_id = manifest.values.get(ListField.FIRST_ROW_ID)
        format_ = found if next_row_id is None else _with_row_ids(found)
        names, inner = format_.names(), data_file_names(format_)
        row_id_name, count_name = inner.get(EntryField.FIRST_ROW_ID), inner[EntryField.RECORD_COUNT]
        kept: list[avro.Record] = []
        files_of, rows_of = Counter[int](), Counter[int]()
        for place, record in enumerate(records):
            status, file = record[names[EntryField.STATUS]], record[names[EntryField.DATA_FILE]]
            if status == DELETED:
                continue
            if row_id_name and next_row_id is not None and file.get(row_id_name) is None:
                file[row_id_name] = next_row_id
                next_row_id += file[count_name]
            _make_explicit(record, names, manifest)
            if as_data:
                file |= {inner[EntryField.CONTENT]: _DATA, inner[EntryField.EQUALITY_IDS]: None}
            if wanted(status, record[names[EntryField.SNAPSHOT_ID]], place):
                kept.append(record)
                files_of[status] += 1
                rows_of[status] += file[count_name]
    return Kept(format_, kept, files_of[ADDED], rows_of[ADDED], files_of[EXISTING], rows_of[EXISTING])


def _make_explicit(record: avro.Record, names: Mapping[int, str], manifest: Manifest) -> None:
    inherited = {
        EntryField.SNAPSHOT_ID: manifest.added_snapshot_id,
        EntryField.SEQUENCE_NUMBER: manifest.values.get(ListField.SEQUENCE_NUMBER),
        EntryField.FILE_SEQUENCE_NUMBER: manifest.values.get(ListField.SEQUENCE_NUMBER),
    }
    for field_id, value in inherited.items():
        if field_id in names and record[names[field_id]] is None:
            record[names[field_id]] = value


def data_file_names(format_: avro.Format) -> dict[int, str]:
    """Iceberg's id of each field of a data file → the name it has in this manifest."""
    data_file = next(entry for entry in format_.schema["fields"] if entry["field-id"] == EntryField.DATA_FILE)
    return {entry["field-id"]: entry["name"] for entry in data_file["type"]["fields"]}


def _with_row_ids(format_: avro.Format) -> avro.Format:
    """The same with a place for row ids, which a manifest from before the table's upgrade to version 3 lacks."""
    if EntryField.FIRST_ROW_ID in data_file_names(format_):
        return format_
    schema = copy.deepcopy(format_.schema)
    data_file = next(entry for entry in schema["fields"] if entry["field-id"] == EntryField.DATA_FILE)
    data_file["type"]["fields"].append(
        {
            "name": "first_row_id",
            "type": ["null", "long"],
            "default": None,
            "field-id": EntryField.FIRST_ROW_ID.value,
        }
    )
    return replace(format_, schema=schema)
