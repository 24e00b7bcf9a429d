"""Files of this machine, without PyArrow and fsspec."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalsegno.iceberg.files import Files
from dalsegno.iceberg.local_files import LocalFileIO


@pytest.mark.parametrize("prefix", ["", "file://", "file:"])
def test_files_by_path_and_by_address(prefix: str, tmp_path: Path) -> None:
    folder = f"{prefix}{tmp_path}/a b%20"
    files = Files.at(folder, {})
    assert isinstance(files.io, LocalFileIO)
    assert files.list(folder) == []
    files.write(f"{folder}/deep/one", b"1")
    files.copy(f"{folder}/deep/one", f"{folder}/new/two", into=files)
    assert files.list(folder) == [f"{folder}/deep/one", f"{folder}/new/two"]
    assert files.read(f"{folder}/new/two") == (tmp_path / "a b%20" / "deep" / "one").read_bytes() == b"1"
    with files.reading(f"{folder}/deep/one") as stream:
        assert stream.read() == b"1"
    files.remove_empty_folder(folder)
    assert files.list(folder) != []
    for location in files.list(folder):
        files.delete(location)
        files.delete(location)
    files.remove_empty_folder(folder)
    assert not (tmp_path / "a b%20").exists()


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Files.at(str(tmp_path), {}).read(f"{tmp_path}/none")
