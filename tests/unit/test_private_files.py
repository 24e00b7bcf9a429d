"""Nobody else on the machine may read what is dalsegno's own."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from dalsegno.operations.tokens import write_token
from dalsegno.private_files import OWN_FOLDER, close_to_others, make_private_file, make_private_folder
from dalsegno.store import Store
from tests.engine.support import Place, shell


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """As careless as a user can be."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def store_at(file: Path) -> Store:
    return Store.open(f"sqlite:///{file}")


def test_a_new_store(tmp_path: Path) -> None:
    file = tmp_path / OWN_FOLDER / "dalsegno.db"
    with store_at(file) as store, store.database.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a)")
        beside = [path for path in file.parent.iterdir() if path.is_file()]
        assert {path.name: mode(path) for path in beside} == dict.fromkeys((path.name for path in beside), 0o600)
    assert mode(file.parent) == 0o700


def test_an_old_store_is_closed_to_others(tmp_path: Path) -> None:
    file = tmp_path / OWN_FOLDER / "dalsegno.db"
    with store_at(file):
        pass
    file.parent.chmod(0o755)
    file.chmod(0o644)
    with store_at(file):
        assert (mode(file), mode(file.parent)) == (0o600, 0o700)


def test_a_folder_of_the_users_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with store_at(tmp_path / "mine.db"):
        assert (mode(tmp_path / "mine.db"), mode(tmp_path)) == (0o600, 0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_another_user_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "theirs"
    file.touch(0o644)
    os.chown(file, 12345, -1)
    close_to_others(file)
    assert mode(file) == 0o644


def test_a_database_in_use_is_never_opened(tmp_path: Path) -> None:
    file = tmp_path / "db"
    make_private_file(file)
    file.write_text("content")
    make_private_file(file)
    assert file.read_text() == "content"
    assert [path.name for path in tmp_path.iterdir()] == ["db"]


def test_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(OSError, match=r"exists|Not a directory"):
            make_private_folder(folder)


def test_jobs(tmp_path: Path) -> None:
    """All of ours is closed; what the job itself writes has the modes that it asks for."""
    place = Place.at(tmp_path)
    place.do(shell("s", "touch result; mkdir results; echo hello"))
    place.operations.close()
    own = [tmp_path / OWN_FOLDER, *(tmp_path / OWN_FOLDER).rglob("*")]
    assert {path for path in own if path.is_dir() and mode(path) != 0o700} == set()
    logs = list((tmp_path / OWN_FOLDER).rglob("log"))
    assert [mode(log) for log in logs] == [0o600]
    assert (mode(tmp_path / "result"), mode(tmp_path / "results")) == (0o666, 0o777)


def test_the_folder_of_a_token_is_private(tmp_path: Path) -> None:
    """With a store in PostgreSQL, nothing else has made it."""
    file = write_token(tmp_path / ".dalsegno" / "first-token", "x")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (file.parent, file)] == [0o700, 0o600]
