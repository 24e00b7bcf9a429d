"""Files that workflows refer to: which are read, and which are not."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from dalsegno.errors import PlatformError, UnknownName, UserError
from dalsegno.operations.references import ReferencedFiles
from dalsegno.spec.documents import BYTES
from dalsegno.spec.files import Reference, references, resolve_files, with_files
from dalsegno.spec.workflows import read


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "flows"
    (found / "sql").mkdir(parents=True)
    (found / "my.sql").write_text("SELECT ${a}\n", encoding="utf-8")
    (found / "sql" / "inner.sql").write_bytes(b"\xef\xbb\xbfSELECT 2")
    (tmp_path / "secret").write_text("do not read me", encoding="utf-8")
    return found


def test_texts() -> None:
    seen: list[Reference] = []

    def content(reference: Reference) -> str:
        seen.append(reference)
        return "$S3{not again}"

    assert resolve_files("a $S3{ x y.sql } b $$S3{z} ${c} $FILE{d} $S4{e}", content) == (
        "a $S3{not again} b $$S3{z} ${c} $S3{not again} $S4{e}"
    )
    assert seen == [Reference("S3", "x y.sql"), Reference("FILE", "d")]


def test_whole_definitions(folder: Path) -> None:
    text = """
Workflow:
  id: w
  q: $S3{my.sql}
  jobs:
    - foreach:
        id: f
        loop_params: {i: [1]}
        jobs:
          - job:
              id: a
              type: Spark
              spark: {script: '-- first; $FILE{sql/inner.sql}', files: ['$S3{my.sql}']}
              env: {X: '$GS{my.sql}'}
              '!e': "'$S3{expressions are left alone}'"
"""
    definition = read(text).definition
    assert list(references(definition)) == [
        Reference("S3", "my.sql"),
        Reference("FILE", "sql/inner.sql"),
        Reference("GS", "my.sql"),
    ]
    pinned = with_files(definition, ReferencedFiles.beside(folder, "."))
    assert pinned.workflow.params["q"].value == "SELECT ${a}\n"
    inner = next(step for step in pinned.workflow.all_steps() if step.id == "a")
    assert inner.params["spark"].value["script"].value == "-- first; SELECT 2"
    assert inner.params["spark"].value["files"].value == ["SELECT ${a}\n"]
    assert inner.params["env"].value == {"X": "SELECT ${a}\n"}
    assert list(references(pinned)) == []


def test_where_names_begin(folder: Path) -> None:
    assert ReferencedFiles.beside(folder, "sql")(Reference("FILE", "inner.sql")) == "SELECT 2"
    memory = fsspec.filesystem("memory")
    memory.pipe("/flows/far.sql", b"SELECT 3")
    far = ReferencedFiles.beside(folder, "memory://flows/")
    assert far(Reference("S3", "far.sql")) == "SELECT 3"
    address = (folder / "sql").as_uri()
    assert ReferencedFiles(address)(Reference("S3", "inner.sql")) == "SELECT 2"


@pytest.mark.parametrize("name", ["../secret", "sql/../../secret", "/etc/hostname", "file:///etc/hostname", "link"])
def test_nothing_outside_is_read(folder: Path, name: str) -> None:
    (folder / "link").symlink_to(folder.parent / "secret")
    with pytest.raises(UserError, match="leads out of"):
        ReferencedFiles.beside(folder, ".")(Reference("FILE", name))


def test_nothing_above_an_address_is_read() -> None:
    with pytest.raises(UserError, match="leads out of"):
        ReferencedFiles("memory://flows")(Reference("S3", "../far.sql"))


def test_what_cannot_be_read(folder: Path) -> None:
    read_file = ReferencedFiles.beside(folder, ".")
    with pytest.raises(UnknownName, match="files_location"):
        read_file(Reference("S3", "none.sql"))
    with pytest.raises(UnknownName, match="is not there"):
        ReferencedFiles("memory://flows")(Reference("S3", "none.sql"))
    with pytest.raises(UserError, match="expected s3://"):
        read_file(Reference("S3", "gs://bucket/x"))
    (folder / "large").write_bytes(b"x" * (BYTES + 1))
    with pytest.raises(UserError, match="larger than"):
        read_file(Reference("FILE", "large"))
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not UTF-8"):
        read_file(Reference("FILE", "binary"))
    with pytest.raises(PlatformError, match="cannot be read"):
        ReferencedFiles("nowhere://flows")(Reference("S3", "x.sql"))
