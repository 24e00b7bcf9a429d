"""A copy of the store is the store, as it was."""

from __future__ import annotations

import stat
import subprocess
import threading
from pathlib import Path

import pytest

from dalsegno.errors import PlatformError, UserError
from dalsegno.operations.backup import back_up
from dalsegno.store import Store
from tests.engine.support import Place, noop
from tests.services.ports import LOOPBACK
from tests.services.postgres import USER, Postgres, program


def test_a_copy_is_made_while_somebody_writes(place: Place) -> None:
    place.push("w", noop("a"))
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            place.start("w")

    writer = threading.Thread(target=write)
    writer.start()
    copies = []
    for number in range(3):
        before = len(place.operations.runs.list(limit=10_000))
        file = place.folder / f"copy-{number}.db"
        made = back_up(place.operations.store, file)
        copies.append((before, file))
        assert (made.file, made.bytes) == (str(file), file.stat().st_size)
    done.set()
    writer.join()
    for before, file in copies:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        found = Place.at(place.folder, f"sqlite:///{file}")
        runs = found.operations.runs.list(limit=10_000)
        assert len(runs) >= before
        assert sorted(run.number for run in runs) == list(range(1, len(runs) + 1))
        found.operations.close()
    assert not [each for each in place.folder.iterdir() if each.name.startswith(".copy")]


def test_nothing_is_overwritten(place: Place) -> None:
    file = place.folder / "copy.db"
    file.write_text("precious")
    with pytest.raises(UserError, match="exists already"):
        back_up(place.operations.store, file)
    assert file.read_text() == "precious"


def test_a_folder_that_is_not_there(place: Place) -> None:
    with pytest.raises(PlatformError, match="cannot be copied to"):
        back_up(place.operations.store, place.folder / "nowhere" / "copy.db")


@pytest.mark.postgres
def test_postgresql_has_its_own_tool(postgres: Postgres, tmp_path: Path) -> None:
    with Store.open(postgres.url(postgres.create_database())) as store, pytest.raises(UserError) as refused:
        back_up(store, tmp_path / "copy")
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("pg_dump --format=custom")


@pytest.mark.postgres
def test_postgresql_there_and_back(postgres: Postgres, tmp_path: Path) -> None:
    old, new = postgres.create_database(), postgres.create_database()
    place = Place.at(tmp_path, postgres.url(old))
    place.push("w", noop("a"))
    run = place.run("w")
    place.operations.close()
    file = tmp_path / "store.dump"
    server = [f"--host={LOOPBACK}", f"--port={postgres.port}", f"--username={USER}"]
    subprocess.run([program("pg_dump"), *server, "--format=custom", f"--file={file}", old], check=True)
    subprocess.run([program("pg_restore"), *server, "--no-owner", f"--dbname={new}", str(file)], check=True)
    restored = Place.at(tmp_path, postgres.url(new))
    assert restored.operations.runs.get("w/1") == run
    assert restored.run("w").number == 2
    restored.operations.close()
