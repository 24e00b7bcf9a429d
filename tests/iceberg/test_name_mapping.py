"""Data files that other tools wrote: without field ids, and without the columns that their folders name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.iceberg.support import Place, rows

pytestmark = pytest.mark.spark


def written(folder: Path, **columns: list[object]) -> str:
    """A Parquet file without field ids."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    types = {"id": pa.int32(), "name": pa.string()}
    pq.write_table(pa.table({key: pa.array(value, types[key]) for key, value in columns.items()}), path)
    return str(path)


def test_files_added_by_pyiceberg(place: Place, tmp_path: Path) -> None:
    source = place.table("id int, name string")
    source.pyiceberg.add_files([written(tmp_path, id=[1], name=["a"])])
    assert source.taken() == rows((1, "a"))
    source.pyiceberg.add_files([written(tmp_path, name=["b"], id=[2])])
    source.insert("3, 'c'")
    assert source.taken() == rows((2, "b"), (3, "c"))


def test_renamed_columns(place: Place, tmp_path: Path) -> None:
    """Which column a name in a file means, the mapping says."""
    source = place.table("id int, name string")
    source.insert("1, 'a'")
    source.taken()
    source.pyiceberg.add_files([written(tmp_path, id=[2], name=["b"])])
    source.sql("alter table {t} rename column name to title", "alter table {t} add column name string")
    source.insert("3, 'c', 'new'")
    changes = source.capture()
    assert place.rows_of(changes) == source.rows("select * from {t} where id > 1")


@pytest.mark.parametrize("version", [2, 3])
def test_hive_style_folders(place: Place, tmp_path: Path, version: int) -> None:
    """The partition's column is in no file: its value comes from the partition."""
    source = place.table("id int, name string", partitioned="name", version=version)
    source.insert("1, 'a'")
    source.taken()
    written(tmp_path / "hive" / "name=x", id=[2])
    written(tmp_path / "hive" / "name=y", id=[3, 4])
    place.call(f"add_files(table => '{source.name}', source_table => '`parquet`.`{tmp_path / 'hive'}`')")
    changes = source.capture(partitions=True, ranges=["id", "name"])
    expected = source.rows("select * from {t} where id > 1")
    assert expected == rows((2, "x"), (3, "y"), (4, "y"))
    assert place.spark_rows(f"select * from {changes.table}") == expected
    assert place.spark_rows(f"select id from {changes.table} where name = 'y'") == rows((3,), (4,))
    assert place.rows_of(changes) == expected
    assert [item["values"] for item in changes.partitions or ()] == [{"name": "x"}, {"name": "y"}]
    assert (changes.ranges["name"]["min"], changes.ranges["name"]["max"]) == ("x", "y")


def test_several_specs(place: Place, tmp_path: Path) -> None:
    source = place.table("id int, name string", partitioned="name")
    source.insert("1, 'a'")
    source.taken()
    written(tmp_path / "hive" / "name=x", id=[2])
    place.call(f"add_files(table => '{source.name}', source_table => '`parquet`.`{tmp_path / 'hive'}`')")
    source.sql("alter table {t} drop partition field name")
    source.insert("3, 'c'")
    assert source.taken() == rows((2, "x"), (3, "c"))
