"""A capture reads metadata alone: it opens no data file, and needs none to be there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.iceberg.recording import RecordingFileIO
from tests.iceberg.support import (
    CONSUMER,
    MERGE_MANIFESTS,
    MERGE_ON_READ,
    Place,
    files_below,
    fresh_name,
    sqlite_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

IMPLEMENTATION = f"{RecordingFileIO.__module__}.{RecordingFileIO.__qualname__}"
METADATA = (".metadata.json", ".avro")


@pytest.fixture(scope="module")
def recorded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("recorded")
    settings = sqlite_settings(folder, fresh_name(), pyiceberg={"py-io-impl": IMPLEMENTATION})
    made = Place.make(spark, folder, settings)
    yield made
    made.lake.close()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("start", [None, "full"])
def test_no_data_file_is_opened(recorded: Place, start: str | None, version: int) -> None:
    source = recorded.table(
        "id int, part string", partitioned="part", version=version, properties=MERGE_MANIFESTS | MERGE_ON_READ
    )
    source.insert("1, 'a'", "2, 'b'")
    assert not source.capture(start="latest")
    source.insert("3, 'a'", "4, 'c'")
    source.insert("5, 'a'")
    if start == "full":
        source.sql("delete from {t} where id = 1")
    RecordingFileIO.forget()
    recorded.lake.plan(source.name, consumer=CONSUMER)
    assert RecordingFileIO.read
    assert not RecordingFileIO.written
    changes = source.capture(start=start, ranges=["id"], partitions=True)
    captured = changes.tables[recorded.lake.name(source.name)]
    changes.commit()
    recorded.lake.clean()
    touched = RecordingFileIO.read + RecordingFileIO.written + RecordingFileIO.deleted
    folders = {captured.location, f"{captured.location}/metadata"}
    assert [path for path in touched if path not in folders and not path.endswith(METADATA)] == []
    own = [path for path in RecordingFileIO.written if path not in folders and not path.startswith(captured.location)]
    assert all(path.endswith(".metadata.json") for path in own), "the pin alone is written into the source"
    assert all(path.startswith(f"{captured.location}/") for path in RecordingFileIO.deleted)


def test_without_its_data_files(recorded: Place) -> None:
    source = recorded.table("id int, day date", partitioned="day")
    source.insert("1, date '2026-11-15'", "2, date '2026-11-16'")
    data = files_below(recorded.folder / "warehouse" / "db", lambda path: path.suffix == ".parquet")
    assert data
    hidden = [path.rename(path.with_suffix(".hidden")) for path in data]
    try:
        changes = source.capture(ranges=["id", "day"], partitions=True)
        assert (changes.rows, len(changes.partitions or ())) == (2, 2)
        assert recorded.lake.plan(source.name, consumer="other")
    finally:
        for path in hidden:
            path.rename(path.with_suffix(".parquet"))
    assert recorded.rows_of(changes) == source.rows()
