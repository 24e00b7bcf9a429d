"""The files that a manifest names: their partitions, sizes and column bounds.

This is the only place where cost grows with the number of files, so it is used for what was asked for (ranges,
partitions, reports), never to make a change table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dalsegno.iceberg import avro
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.manifests import DELETED, EntryField, Manifest, Take, data_file_names, opened

_PARTITION = 102
_VALUE_COUNTS, _NULL_COUNTS, _NAN_COUNTS, _LOWER, _UPPER = 109, 110, 137, 125, 128


@dataclass(frozen=True)
class FileEntry:
    """One live file of a manifest; partition values and bounds as they are stored."""

    path: str
    #: Its place among the manifest's entries.
    place: int
    status: int
    #: The snapshot that added the file.
    snapshot_id: int
    spec_id: int
    partition: tuple[Any, ...]
    rows: int
    size: int
    value_counts: Mapping[int, int]
    null_counts: Mapping[int, int]
    nan_counts: Mapping[int, int]
    lower: Mapping[int, bytes]
    upper: Mapping[int, bytes]


def read_entries(files: Files, manifest: Manifest, columns: Collection[int] = ()) -> Iterator[FileEntry]:
    """The live files of a manifest, decoded one by one, with the counts and bounds of some columns, by their ids."""
    with opened(files, manifest.path, length=manifest.length) as (format_, records):
        names = format_.names()
        inner = data_file_names(format_)
        status, snapshot_id = names[EntryField.STATUS], names[EntryField.SNAPSHOT_ID]
        data_file, rows = names[EntryField.DATA_FILE], inner[EntryField.RECORD_COUNT]
        partition_of = partition_reader(format_)
        for place, record in enumerate(records):
            if record[status] == DELETED:
                continue
            file = record[data_file]
            added_by = record[snapshot_id]
            yield FileEntry(
                path=file[inner[EntryField.PATH]],
                place=place,
                status=record[status],
                snapshot_id=manifest.added_snapshot_id if added_by is None else added_by,
                spec_id=manifest.spec_id,
                partition=partition_of(file),
                rows=file[rows],
                size=file[inner[EntryField.SIZE]],
                value_counts=_map(file, inner, _VALUE_COUNTS, columns),
                null_counts=_map(file, inner, _NULL_COUNTS, columns),
                nan_counts=_map(file, inner, _NAN_COUNTS, columns),
                lower=_map(file, inner, _LOWER, columns),
                upper=_map(file, inner, _UPPER, columns),
            )


def read_sizes(files: Files, manifest: Manifest) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The partition and the bytes of each live file of a manifest."""
    wanted: avro.Wanted = {EntryField.STATUS: None, EntryField.DATA_FILE: {_PARTITION: None, EntryField.SIZE: None}}
    with opened(files, manifest.path, wanted, manifest.length) as (format_, records):
        names, inner, partition_of = format_.names(), data_file_names(format_), partition_reader(format_)
        status, data_file, size = names[EntryField.STATUS], names[EntryField.DATA_FILE], inner[EntryField.SIZE]
        for record in records:
            if record[status] != DELETED:
                yield partition_of(record[data_file]), record[data_file][size]


def taken_entries(files: Files, take: Take, columns: Collection[int] = ()) -> Iterator[FileEntry]:
    """The same of those files alone that are taken."""
    return those_taken(take, read_entries(files, take.manifest, columns))


def those_taken(take: Take, entries: Iterable[FileEntry]) -> Iterator[FileEntry]:
    whole = take.is_whole
    return (entry for entry in entries if whole or take.wants(entry.status, entry.snapshot_id, entry.place))


def partition_reader(format_: avro.Format) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """What tells a file's partition, in values that are equal whichever manifest they are read from."""
    (data_file,) = (entry for entry in format_.schema["fields"] if entry["field-id"] == EntryField.DATA_FILE)
    (partition,) = (entry for entry in data_file["type"]["fields"] if entry["field-id"] == _PARTITION)
    readers = [_shortest if _is_decimal(entry["type"]) else _comparable for entry in partition["type"]["fields"]]
    name = partition["name"]

    def partition_of(file: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(read(value) for read, value in zip(readers, file[name].values(), strict=True))

    return partition_of


def _is_decimal(kind: Any) -> bool:
    kinds = kind if isinstance(kind, list) else [kind]
    return any(isinstance(each, dict) and each.get("logicalType") == "decimal" for each in kinds)


def _shortest(decimal: bytes | None) -> bytes | None:
    """A decimal in as few bytes as it takes: how many are written depends on the width of its column at the time."""
    if decimal is None:
        return None
    number = int.from_bytes(decimal, "big", signed=True)
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _comparable(value: Any) -> Any:
    """Every "not a number" as one and the same object: others are not equal to themselves, nor found in sets."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _map(file: Mapping[str, Any], names: Mapping[int, str], field_id: int, keys: Collection[int]) -> dict[int, Any]:
    """Some of a map by column id; Avro has no maps with number keys, so they are lists of pairs."""
    pairs = file.get(names[field_id]) if keys and field_id in names else None
    return {pair["key"]: pair["value"] for pair in pairs or () if pair["key"] in keys}
