"""A manifest reduced to what its own snapshot added, in every order that a writer may leave entries in.

Iceberg's Java library writes added entries first, so tables made with it would not show a wrong count of row ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from dalsegno.iceberg import avro
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.manifests import ListField, Manifest, Take, rewrite

EXISTING, ADDED, DELETED = 0, 1, 2
SNAPSHOT, OLDER = 7, 5
FILES = Files(PyArrowFileIO())


def schema(version: int) -> dict[str, Any]:
    fields: list[dict[str, Any]] = [
        {"name": "file_path", "type": "string", "field-id": 100},
        {"name": "record_count", "type": "long", "field-id": 103},
    ]
    if version == 3:
        fields.append({"name": "first_row_id", "type": ["null", "long"], "field-id": 142})
    data_file = {"type": "record", "name": "r2", "fields": fields}
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            {"name": "status", "type": "int", "field-id": 0},
            {"name": "snapshot_id", "type": ["null", "long"], "field-id": 1},
            {"name": "data_file", "type": data_file, "field-id": 2},
        ],
    }


def entry(status: int, rows: int, *, added_by: int | None = SNAPSHOT, first_row_id: int | None = None) -> Any:
    file = {"file_path": f"{rows}.parquet", "record_count": rows, "first_row_id": first_row_id}
    return {"status": status, "snapshot_id": added_by, "data_file": file}


def kept(folder: Path, version: int, entries: list[Any], first_row_id: int | None) -> list[tuple[int, int | None]]:
    """Rows and first row id of each entry that is kept."""
    path = str(folder / "manifest.avro")
    FILES.write(path, avro.write(avro.Format(schema(version), {}, "deflate"), entries))
    line: dict[int, Any] = {
        ListField.PATH: path,
        ListField.ADDED_SNAPSHOT_ID: SNAPSHOT,
        ListField.FIRST_ROW_ID: first_row_id,
    }
    manifest = Manifest(line)
    found = rewrite(FILES, manifest, Take(manifest, only_added=True).wants)
    FILES.write(path, found.content)
    with FILES.reading(path) as stream:
        _, records = avro.read(stream)
        files = [record["data_file"] for record in records]
    assert (found.added_files, found.added_rows) == (len(files), sum(file["record_count"] for file in files))
    return [(file["record_count"], file.get("first_row_id")) for file in files]


@pytest.mark.parametrize("version", [2, 3], ids=["written before the upgrade", "written after it"])
def test_row_ids_are_counted_over_all_entries(tmp_path: Path, version: int) -> None:
    entries = [
        entry(EXISTING, 5, added_by=OLDER),
        entry(ADDED, 2),
        entry(DELETED, 40),
        entry(EXISTING, 3, added_by=OLDER),
        entry(ADDED, 4, added_by=None),
    ]
    assert kept(tmp_path, version, entries, 100) == [(2, 105), (4, 110)]


def test_row_ids_that_are_there_are_not_counted(tmp_path: Path) -> None:
    entries = [entry(EXISTING, 5, added_by=OLDER, first_row_id=20), entry(ADDED, 2), entry(ADDED, 3, first_row_id=9)]
    assert kept(tmp_path, 3, entries, 100) == [(2, 100), (3, 9)]


@pytest.mark.parametrize("version", [2, 3])
def test_without_row_ids_there_are_none(tmp_path: Path, version: int) -> None:
    assert kept(tmp_path, version, [entry(EXISTING, 5, added_by=OLDER), entry(ADDED, 2)], None) == [(2, None)]


def test_what_another_snapshot_added_is_left_out(tmp_path: Path) -> None:
    assert kept(tmp_path, 2, [entry(ADDED, 1, added_by=OLDER), entry(ADDED, 2)], None) == [(2, None)]
