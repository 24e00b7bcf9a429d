"""Tables of many writers, many snapshots and unusual files of metadata."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
    assert not source.capture()
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
    assert source.operations[-1] in ("overwrite", "append")
    assert not source.capture()
    source.insert("2, 'b'")
    assert source.taken() == rows((2, "b"))


def test_a_first_snapshot_without_rows(place: Place) -> None:
    source = place.table()
    assert not source.capture(), "never written to"
    source.sql("insert into {t} select 1 where false")
    assert not source.capture()
    source.insert("1")
    assert source.taken() == numbered(1)


def test_many_snapshots(place: Place, tmp_path: Path) -> None:
    """With the manifests merged every hundred, as is the default: most are found in older lists only."""
    source = place.table()
    source.insert("-1")
    source.taken()
    commit_one_by_one(source, [write_one(tmp_path, number) for number in range(MANY)])
    assert len(source.snapshots) == MANY + 1
    changes = source.capture(partitions=False)
    assert (changes.details["captured_snapshots"], changes.files, changes.rows) == (MANY, MANY, MANY)
    assert place.spark_rows(f"select * from {changes.table}") == numbered(*range(MANY))
    table = place.pyiceberg(changes.identifier)
    assert len({task.file.file_path for task in table.scan().plan_files()}) == MANY
    changes.commit()
    assert not source.capture()


def write_one(folder: Path, number: int) -> Path:
    path = folder / f"{number}.parquet"
    field = pa.field("id", pa.int32(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table({"id": [number]}, schema=pa.schema([field])), path)
    return path


def commit_one_by_one(source: Source, paths: list[Path]) -> None:
    """A snapshot for each file, all in one commit of the table."""
    spark = source.place.spark
    iceberg: Any = spark._jvm.org.apache.iceberg  # type: ignore[union-attr]
    table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, source.full)
    transaction = table.newTransaction()
    for path in paths:
        file = iceberg.DataFiles.builder(table.spec()).withPath(str(path)).withFormat("parquet")
        file = file.withFileSizeInBytes(path.stat().st_size).withRecordCount(1).build()
        transaction.newAppend().appendFile(file).commit()
    transaction.commitTransaction()


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


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "zstd", "snappy"])
@pytest.mark.parametrize("writer", ["spark", "pyiceberg"])
def test_codecs_of_manifests(place: Place, writer: str, codec: str) -> None:
    properties = {"write.avro.compression-codec": codec, "write.manifest.compression-codec": codec}
    source = place.table(properties=properties | MERGE_MANIFESTS)
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
