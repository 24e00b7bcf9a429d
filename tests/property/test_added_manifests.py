"""Whatever was merged or rewritten since: the manifests that hold what a snapshot added are those of its own list.

Asking the last list first, and few others after it, is faster. It must find the same, and read no more lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.manifest import MANIFEST_LIST_FILE_SCHEMAS
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from dalsegno.iceberg.avro import Format
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.manifests import ListField, Manifest, added_by, read_list, write_list
from dalsegno.model.snapshots import Operation, Snapshot
from tests.iceberg.recording import RecordingFileIO

SCHEMA: Any = AvroSchemaConversion().iceberg_to_avro(MANIFEST_LIST_FILE_SCHEMAS[2], schema_name="manifest_file")
FORMAT = Format(SCHEMA, {"format-version": "2"}, "deflate")
FILES = Files(RecordingFileIO())

numbers = count()


@dataclass(frozen=True)
class Commit:
    """One snapshot and all manifests of the table at it; no list is written yet."""

    snapshot: Snapshot
    live: tuple[Manifest, ...]


def manifest(snapshot_id: int, number: int, *, files: int = 0, rows: int = 0, existing: int = 0) -> Manifest:
    return Manifest(
        {
            ListField.PATH: f"manifest-{snapshot_id}-{number}.avro",
            ListField.LENGTH: 1000,
            ListField.SPEC_ID: 0,
            ListField.CONTENT: 0,
            ListField.ADDED_SNAPSHOT_ID: snapshot_id,
            ListField.ADDED_FILES: files,
            ListField.ADDED_ROWS: rows,
            ListField.EXISTING_FILES: existing,
            ListField.EXISTING_ROWS: existing,
            ListField.DELETED_FILES: 0,
            ListField.DELETED_ROWS: 0,
        }
    )


@st.composite
def pasts(draw: st.DrawFn) -> list[Commit]:
    """Appends, of which some merge older manifests into their own, and rewrites of any manifests."""
    commits: list[Commit] = []
    live: tuple[Manifest, ...] = ()
    for id_ in range(1, draw(st.integers(1, 25)) + 1):
        is_append = not live or draw(st.integers(0, 3)) > 0
        live, summary = draw(appends(id_, live)) if is_append else (draw(rewrites(id_, live)), {})
        operation = Operation.APPEND if is_append else Operation.REPLACE
        commits.append(Commit(Snapshot(id_, id_ - 1 or None, id_, id_, operation, 0, "", summary), live))
    return commits


@st.composite
def appends(draw: st.DrawFn, id_: int, live: tuple[Manifest, ...]) -> tuple[tuple[Manifest, ...], dict[str, str]]:
    sizes = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 8)), min_size=1, max_size=2))
    merged = draw(st.integers(0, len(live))) if draw(st.integers(0, 3)) == 0 else 0
    own = [
        manifest(id_, number, files=files, rows=rows, existing=0 if number else merged)
        for number, (files, rows) in enumerate(sizes)
    ]
    counts = {
        "added-data-files": str(sum(files for files, _ in sizes)),
        "added-records": str(sum(rows for _, rows in sizes)),
    }
    says = draw(st.integers(0, 9)) > 0
    return (*own, *live[merged:]), counts if says else {}


@st.composite
def rewrites(draw: st.DrawFn, id_: int, live: tuple[Manifest, ...]) -> tuple[Manifest, ...]:
    gone = draw(st.sets(st.integers(0, len(live) - 1), min_size=1))
    kept = (each for number, each in enumerate(live) if number not in gone)
    return (manifest(id_, 0, existing=len(gone)), *kept)


def written(past: Sequence[Commit], folder: Path) -> list[Snapshot]:
    """The snapshots of a past, each with a manifest list in the folder."""
    snapshots = []
    for commit in past:
        location = f"{folder}/list-{next(numbers)}.avro"
        FILES.write(location, write_list(FORMAT, commit.live, header={}))
        snapshots.append(replace(commit.snapshot, manifest_list=location))
    return snapshots


def own_manifests(snapshot: Snapshot) -> set[str]:
    listed = read_list(FILES, snapshot.manifest_list).manifests
    return {each.path for each in listed if each.added_snapshot_id == snapshot.id}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lists")


@settings(deadline=None, max_examples=200)
@given(past=pasts(), threads=st.sampled_from([1, 3, 8]))
def test_the_same_manifests_as_by_asking_each_list(folder: Path, past: list[Commit], threads: int) -> None:
    snapshots = written(past, folder)
    appended = [each for each in snapshots if each.operation is Operation.APPEND]
    expected = {each.id: own_manifests(each) for each in appended}
    RecordingFileIO.forget()
    found = added_by(FILES, appended, snapshots[-1], threads=threads).by_snapshot
    assert {id_: {each.path for each in manifests} for id_, manifests in found.items()} == expected
    assert sum(map(len, found.values())) == sum(map(len, expected.values())), "none is there twice"
    assert list(found) == [each.id for each in appended], "in the order of the snapshots"
    assert len(RecordingFileIO.read) <= len(appended) + 1
