"""Tables of many writers, many snapshots and unusual files of metadata."""

from __future__ import annotations

import gzip
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dalsegno.iceberg import avro
from tests.iceberg.support import CONSUMER, MERGE_MANIFESTS, Place, Source, numbered, rows

pytestmark = pytest.mark.spark

MANY = 1_200


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("merging", [False, True], ids=["apart", "merged"])
def test_spark_and_pyiceberg_take_turns(place: Place, version: int, merging: bool) -> None:
    source = place.table(
        "id int, part string", partitioned="part", version=version, properties=MERGE_MANIFESTS if merging else {}
    )
    source.insert("1, 'a'")
    source.append(id=[2], part=["a"])
    assert source.taken() == rows((1, "a"), (2, "a"))
    source.append(id=[3, 4], part=["a", None])
    source.insert("5, 'b'")
    source.append(id=[6], part=["b"])
    changes = source.capture(partitions=True, ranges=["id", "part"])
    assert place.rows_of(changes) == rows((3, "a"), (4, None), (5, "b"), (6, "b"))
    assert {item["values"]["part"]: item["novelty"] for item in changes.partitions or ()} == {
        "a": "reopened",
        "b": "new",
        None: "new",
    }
    assert (changes.ranges["id"]["min"], changes.ranges["id"]["max"]) == (3, 6)
    assert (changes.ranges["part"]["min"], changes.ranges["part"]["max"]) == ("a", "b")


@pytest.mark.parametrize("writer", ["spark", "pyiceberg"])
def test_snapshots_that_change_nothing(place: Place, writer: str) -> None:
    """They are stepped over: nothing to process, but the checkpoint moves on."""
    source = place.table()
    source.insert("1")
    source.taken()
    checkpoint = source.head
    if writer == "spark":
        source.sql("insert into {t} select 1 where false", "delete from {t} where id = 99")
    else:
        source.append(id=[])
    assert source.head != checkpoint
    # PyIceberg's summary does not say that nothing was added, so that is only seen in the manifests.
    assert source.taken() == rows()
    position = place.lake.store.position(CONSUMER, place.lake.name(source.name))
    assert position is not None
    assert position.snapshot_id == source.head
    source.insert("2")
    assert source.taken() == numbered(2)


def test_an_overwrite_of_nothing_is_stepped_over(place: Place) -> None:
    source = place.table("id int, part string", partitioned="part")
    source.insert("1, 'a'")
    source.taken()
    place.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        source.sql("insert overwrite {t} select 1, 'z' where false")
    finally:
        place.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert source.operations == ["append"], "Spark makes no snapshot of it"
    assert not source.capture()
    source.insert("2, 'b'")
    assert source.taken() == rows((2, "b"))


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_other_formats_of_data_files(place: Place, file_format: str) -> None:
    source = place.table("id int, v string", partitioned="v", properties={"write.format.default": file_format})
    source.insert("1, 'a'")
    source.taken_by_spark()
    source.insert("2, 'a'", "3, null")
    source.sql("alter table {t} set tblproperties ('write.format.default' = 'parquet')")
    source.insert("4, 'b'")
    assert source.taken_by_spark() == rows((2, "a"), (3, None), (4, "b"))


def test_starts(place: Place) -> None:
    source = place.table()
    for number in (1, 2, 3):
        source.insert(str(number))
    first, second, _ = source.metadata["snapshots"]
    between = (first["timestamp-ms"] + second["timestamp-ms"]) // 2
    moment = datetime.fromtimestamp(between / 1000, UTC).isoformat()
    assert source.taken("earliest", start="earliest") == numbered(1, 2, 3)
    assert source.taken("id", start=str(first["snapshot-id"])) == numbered(2, 3)
    assert source.taken("moment", start=moment) == numbered(2, 3)
    assert source.taken("long-ago", start="2001-01-01") == numbered(1, 2, 3)
    assert not source.capture("latest", start="latest")
    source.insert("4")
    assert source.taken("latest") == numbered(4)
    assert source.taken("moment") == numbered(4)


def test_a_namespace_of_several_parts(place: Place) -> None:
    place.sql(f"create namespace {place.catalog}.outer")
    place.sql(f"create namespace {place.catalog}.outer.inner")
    source = Source(place, "outer.inner.t")
    source.sql("create table {t} (id int) using iceberg")
    source.insert("1")
    assert source.taken() == numbered(1)
    source.insert("2")
    assert source.taken() == numbered(2)


def test_a_first_snapshot_without_rows(place: Place) -> None:
    source = place.table()
    assert not source.capture(), "never written to"
    source.sql("insert into {t} select 1 where false")
    assert not source.capture()
    source.insert("1")
    assert source.taken() == numbered(1)


def test_many_snapshots(place: Place) -> None:
    """With the manifests merged every hundred, as is the default: most are found in older lists only."""
    template = place.table()
    template.append(id=[0])
    source = grown(template, MANY)
    first = source.snapshots[0]
    assert not source.capture(start=str(source.head))
    changes = source.capture("many", start=str(first), partitions=True)
    assert (changes.details["captured_snapshots"], changes.files, changes.rows) == (MANY, MANY, MANY)
    assert [(item["files"], item["novelty"]) for item in changes.partitions or ()] == [(MANY, "reopened")]
    expected = rows(*((data_file(number),) for number in range(1, MANY + 1)))
    assert place.spark_rows(f"select file_path from {changes.table}.files") == expected
    planned = place.pyiceberg(changes.identifier).scan().plan_files()
    assert rows(*((task.file.file_path,) for task in planned)) == expected
    changes.commit()
    assert not source.capture("many")


def data_file(number: int) -> str:
    return f"/nowhere/{number}.parquet"


def grown(template: Source, count: int) -> Source:
    """A table with as many appends after a first one, written by hand: writers would take a minute."""
    catalog = template.place.lake.catalog(template.place.catalog)
    loaded = catalog.load(template.place.lake.name(template.name))
    files, metadata = loaded.files, dict(loaded.metadata)
    (first,) = metadata["snapshots"]
    folder = loaded.metadata_location.rpartition("/")[0]

    def read(location: str) -> tuple[avro.Format, dict[str, Any]]:
        with files.reading(location) as stream:
            format_, records = avro.read(stream)
            return format_, next(iter(records))

    list_format, line = read(first["manifest-list"])
    format_, entry = read(line["manifest_path"])
    no_bounds = {"lower_bounds": None, "upper_bounds": None}
    entries, lines, snapshots = (
        [{**entry, "status": 0, "sequence_number": 1, "file_sequence_number": 1}],
        [line],
        [first],
    )
    for number in range(1, count + 1):
        own = {"snapshot_id": number, "sequence_number": number + 1, "file_sequence_number": number + 1}
        named = {**entry["data_file"], **no_bounds, "file_path": data_file(number)}
        added = {**own, "status": 1, "data_file": named}
        merges = number % 100 == 0
        manifest = f"{folder}/m{number}.avro"
        content = avro.write(format_, [*entries, added] if merges else [added])
        files.write(manifest, content)
        existing = len(entries) if merges else 0
        written = {
            **line,
            "manifest_path": manifest,
            "manifest_length": len(content),
            "sequence_number": number + 1,
            "min_sequence_number": 1 if merges else number + 1,
            "added_snapshot_id": number,
            "existing_files_count": existing,
            "existing_rows_count": existing,
        }
        entries.append({**added, "status": 0})
        lines = [written] if merges else [*lines, written]
        files.write(f"{folder}/l{number}.avro", avro.write(list_format, lines))
        snapshots.append(
            {
                **first,
                "snapshot-id": number,
                "parent-snapshot-id": snapshots[-1]["snapshot-id"],
                "sequence-number": number + 1,
                "timestamp-ms": first["timestamp-ms"] + number,
                "manifest-list": f"{folder}/l{number}.avro",
            }
        )
    metadata |= {
        "table-uuid": str(uuid4()),
        "snapshots": snapshots,
        "current-snapshot-id": count,
        "refs": {"main": {"snapshot-id": count, "type": "branch"}},
        "last-sequence-number": count + 1,
        "last-updated-ms": snapshots[-1]["timestamp-ms"],
        "snapshot-log": [],
    }
    files.write(f"{folder}/grown.metadata.json", json.dumps(metadata).encode())
    name = f"{template.name}_grown"
    assert catalog.register(template.place.lake.name(name), f"{folder}/grown.metadata.json")
    return Source(template.place, name)


def test_compressed_metadata_files(place: Place) -> None:
    source = place.table(properties={"write.metadata.compression-codec": "gzip"})
    source.insert("1")
    source.insert("2")
    location = place.lake.load(place.lake.name(source.name)).metadata_location
    assert location.endswith(".gz.metadata.json")
    assert source.taken() == numbered(1, 2)
    pinned = place.lake.load(place.lake.name(source.name)).metadata_location
    assert pinned != location
    assert gzip.decompress(Path(pinned).read_bytes())
    source.insert("3")
    assert source.taken() == numbered(3)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("writer", ["spark", "pyiceberg"])
def test_codecs_of_manifests(place: Place, writer: str, codec: str) -> None:
    source = place.table(properties={"write.avro.compression-codec": codec} | MERGE_MANIFESTS)
    source.append(id=[1])
    source.taken()
    for number in (2, 3):
        if writer == "spark":
            source.insert(str(number))
        else:
            source.append(id=[number])
    changes = source.capture(ranges=["id"], partitions=True)
    assert place.rows_of(changes) == numbered(2, 3)
    assert (changes.ranges["id"]["min"], changes.ranges["id"]["max"]) == (2, 3)


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "snappy"])
def test_codecs_of_avro(codec: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long", "field-id": 1}]}
    written = avro.write(avro.Format(schema, {"format-version": "2"}, codec), [{"n": number} for number in range(9)])
    format_, records = avro.read(io.BytesIO(written))
    assert (format_.codec, dict(format_.metadata)) == (codec, {"format-version": "2"})
    assert [record["n"] for record in records] == list(range(9))
