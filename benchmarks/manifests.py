"""Manifests as Spark would write them: entries with the sizes, counts and bounds of eight columns, sorted by day."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import fastavro
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import (
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from benchmarks.avro import Filled, Holes, Writer, blocks_of, fill

SCHEMA = Schema(
    NestedField(1, "event_id", LongType()),
    NestedField(2, "event_time", TimestamptzType()),
    NestedField(3, "user_id", LongType()),
    NestedField(4, "country", StringType()),
    NestedField(5, "device", StringType()),
    NestedField(6, "amount", DoubleType()),
    NestedField(7, "quantity", IntegerType()),
    NestedField(8, "payload", StringType()),
)
SPEC = PartitionSpec(PartitionField(2, 1000, DayTransform(), "event_time_day"))
_COLUMNS = tuple(column.field_id for column in SCHEMA.fields)
_MICROS_PER_DAY = 86_400_000_000
_EXISTING, _ADDED = 0, 1

Line = dict[str, Any]


@dataclass(frozen=True)
class Manifest:
    """A manifest that was written: its line in a manifest list, and the size of its data files."""

    line: Line
    bytes: int
    #: Where it was written; tables may know it by another name.
    path: Path

    @property
    def files(self) -> int:
        return int(self.line["added_files_count"])

    @property
    def rows(self) -> int:
        return int(self.line["added_rows_count"])


@cache
def entries() -> Writer:
    """A writer of manifests; the Avro schema is PyIceberg's."""
    data_file = data_file_with_partition(SPEC.partition_type(SCHEMA), format_version=2)
    schema = manifest_entry_schema_with_data_file(2, data_file)
    fields = ",".join(item.model_dump_json() for item in SPEC.fields)
    metadata = {
        "schema": SCHEMA.model_dump_json(),
        "partition-spec": f"[{fields}]",
        "partition-spec-id": str(SPEC.spec_id),
        "format-version": "2",
        "content": "data",
    }
    return Writer(AvroSchemaConversion().iceberg_to_avro(schema, "manifest_entry"), metadata)


@cache
def lines() -> Writer:
    """A writer of manifest lists; the Avro schema is PyIceberg's."""
    schema = AvroSchemaConversion().iceberg_to_avro(MANIFEST_LIST_FILE_SCHEMAS[2], "manifest_file")
    return Writer(schema, {"format-version": "2"})


def write_manifest(
    path: Path, table: str, snapshot_id: int, sequence_number: int, files_per_day: Mapping[int, int]
) -> Manifest:
    """A manifest of files that a snapshot added to the table at a location; days are counted from 1970."""
    source = random.Random(path.name)  # noqa: S311 - the same every time, not secret
    filled = [(day, _day(f"{table}/data", snapshot_id, day, files, source)) for day, files in files_per_day.items()]
    content = entries().file(chain.from_iterable(item.blocks() for _, item in filled))
    path.write_bytes(content)
    # The holes for the number of rows and for the size come first: see _entry.
    rows, size = (sum(item.sums[hole] for _, item in filled) for hole in (0, 1))
    named = f"{table}/metadata/{path.name}"
    line = _line(named, len(content), snapshot_id, sequence_number, [day for day, _ in filled])
    return Manifest(line | {"added_files_count": sum(files_per_day.values()), "added_rows_count": rows}, size, path)


def write_list(path: Path, encoded: list[bytes], snapshot_id: int, parent_id: int | None, sequence_number: int) -> None:
    content = lines().file(
        blocks_of(encoded),
        snapshot_id=str(snapshot_id),
        parent_snapshot_id="null" if parent_id is None else str(parent_id),
        sequence_number=str(sequence_number),
    )
    path.write_bytes(content)


def rewrite(
    path: Path, table: str, manifests: Sequence[Manifest], snapshot_id: int, sequence_number: int, days: Sequence[int]
) -> Line:
    """The entries of many manifests in one, as a rewrite of manifests leaves them: kept, not added."""

    def kept() -> Iterator[dict[str, Any]]:
        for manifest in manifests:
            with manifest.path.open("rb") as stream:
                number = manifest.line["sequence_number"]
                for record in fastavro.reader(stream):
                    assert isinstance(record, dict)
                    yield record | {
                        "status": _EXISTING,
                        "sequence_number": number,
                        "file_sequence_number": number,
                    }

    out, writer = io.BytesIO(), entries()
    fastavro.writer(out, writer.schema, kept(), codec="deflate", metadata=dict(writer.metadata))
    path.write_bytes(out.getvalue())
    return _line(f"{table}/metadata/{path.name}", len(out.getvalue()), snapshot_id, sequence_number, days) | {
        "min_sequence_number": min(manifest.line["sequence_number"] for manifest in manifests),
        "existing_files_count": sum(manifest.files for manifest in manifests),
        "existing_rows_count": sum(manifest.rows for manifest in manifests),
    }


def _day(data: str, snapshot_id: int, day: int, files: int, source: random.Random) -> Filled:
    holes = Holes()
    template = entries().encode(_entry(holes, data, snapshot_id, day))
    return fill(template, holes.all, files, source)


def _entry(holes: Holes, data: str, snapshot_id: int, day: int) -> dict[str, Any]:
    rows, size = holes.number(3), holes.number(4)
    low, high = _bounds(holes, day)
    return {
        "status": _ADDED,
        "snapshot_id": snapshot_id,
        "sequence_number": None,
        "file_sequence_number": None,
        "data_file": {
            "content": 0,
            "file_path": f"{data}/event_time_day={day}/00000-{day}-{holes.digits(32)}-00001.parquet",
            "file_format": "PARQUET",
            "partition": {"event_time_day": day},
            "record_count": rows,
            "file_size_in_bytes": size,
            "column_sizes": [_pair(column, holes.number(3)) for column in _COLUMNS],
            "value_counts": [_pair(column, rows) for column in _COLUMNS],
            "null_value_counts": [_pair(column, 0) for column in _COLUMNS],
            "nan_value_counts": [_pair(6, 0)],
            "lower_bounds": [_pair(column, value) for column, value in zip(_COLUMNS, low, strict=True)],
            "upper_bounds": [_pair(column, value) for column, value in zip(_COLUMNS, high, strict=True)],
            "key_metadata": None,
            "split_offsets": [4],
            "equality_ids": None,
            "sort_order_id": 0,
        },
    }


def _bounds(holes: Holes, day: int) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Bounds of all columns; the low half of the numbers is random, the high half keeps them in order."""
    start = day * _MICROS_PER_DAY >> 32

    def long(high: int) -> bytes:
        return holes.four_bytes() + struct.pack("<i", high)

    def double(value: float) -> bytes:
        return holes.four_bytes() + struct.pack("<d", value)[4:]

    low = (long(day), long(start + 1), long(0), b"AD", b"android", double(0.5), struct.pack("<i", 1))
    high = (long(day + 1), long(start + 18), long(99), b"ZW", b"web", double(900), struct.pack("<i", 99))
    # Spark keeps 16 characters of a long text.
    return (*low, b"{a" + holes.digits(14).encode()), (*high, b"{z" + holes.digits(14).encode())


def _pair(key: int, value: int | bytes) -> dict[str, Any]:
    return {"key": key, "value": value}


def _line(path: str, length: int, snapshot_id: int, sequence_number: int, days: Sequence[int]) -> Line:
    return {
        "manifest_path": path,
        "manifest_length": length,
        "partition_spec_id": SPEC.spec_id,
        "content": 0,
        "sequence_number": sequence_number,
        "min_sequence_number": sequence_number,
        "added_snapshot_id": snapshot_id,
        "added_files_count": 0,
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": 0,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": [
            {
                "contains_null": False,
                "contains_nan": False,
                "lower_bound": struct.pack("<i", days[0]),
                "upper_bound": struct.pack("<i", days[-1]),
            }
        ],
        "key_metadata": None,
    }
