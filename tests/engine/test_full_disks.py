"""A machine whose disk is full: its node claims nothing, other nodes go on, and nothing fails for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dalsegno.engine.jobs_folder import JobsFolder
from dalsegno.operations.callers import local_caller
from dalsegno.operations.facade import Operations
from dalsegno.operations.service import Role, Service
from dalsegno.settings import load
from dalsegno.steps.attempt_log import AttemptLog
from dalsegno.store import Store
from tests.engine.support import SUCCEEDED, Place, shell
from tests.services.disks import SmallDisk, small_disk
from tests.steps.support import until

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="disks are mounted as Linux does it")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as made:
        yield made


@contextmanager
def node(place: Place, name: str, jobs_folder: Path) -> Iterator[Service]:
    """A node that works on the runs of a place, with a folder of its own for jobs."""
    url = place.operations.settings.store
    settings = load(
        working_folder=place.folder, environment={}, store=url, jobs_folder=str(jobs_folder), machine=name, workers=4
    )
    with Store.open(url) as store:
        service = Service(settings, store, [Role.WORKERS])
        thread = threading.Thread(target=service.run)
        thread.start()
        try:
            yield service
        finally:
            service.stop()
            thread.join(60)


def ended_well(operations: Operations, runs: list[str]) -> bool:
    found = [operations.runs.get(run) for run in runs]
    assert not [run.reason for run in found if run.status.is_final and run.status is not SUCCEEDED]
    return all(run.status.is_final for run in found)


def test_the_runs_of_others_do_not_fail(
    either_place: Place, disk: SmallDisk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two nodes, one of which has a full disk; then it is alone, and waits for room."""
    caplog.set_level(logging.WARNING)
    place, started = either_place, 0
    # No retry of any kind: a step that fails once has failed.
    none = {"error_retry_limit": 0, "platform_retry_limit": 0, "timeout_retry_limit": 0}
    place.push(
        "w",
        shell("s", f"echo ${{number}} >> {place.folder}/out", retry_policy=none),
        params={"number": {"type": "LONG", "value": 0}},
        properties={"run_strategy": "PARALLEL"},
    )

    def start(count: int) -> list[str]:
        nonlocal started
        started += count
        return [place.start("w", number=started - count + each).id for each in range(count)]

    with node(place, "full", disk.folder) as full:
        # It has found its folder well, and goes on to believe that for a moment.
        runs = start(2)
        until(lambda: ended_well(place.operations, runs), 60)
        disk.fill()
        with node(place, "healthy", tmp_path / "healthy"):
            runs = start(20)
            until(lambda: ended_well(place.operations, runs), 60)
        runs = start(3)
        until(lambda: full.problems() != [])
        assert "jobs folder" in full.problems()[0]
        assert str(disk.folder) not in full.problems()[0], "anybody may read it"
        assert not any(place.operations.runs.get(run).status.is_final for run in runs)
        disk.free()
        until(lambda: ended_well(place.operations, runs), 60)
        until(lambda: full.problems() == [])
    assert sorted(map(int, place.lines())) == list(range(started))
    said = [record.getMessage() for record in caplog.records if "claims" in record.getMessage()]
    assert ["no steps" in each for each in said] == [True, False], said


def test_a_job_that_fails_on_a_full_disk(place: Place, disk: SmallDisk) -> None:
    """It is the machine's fault, not the user's: it is tried again although errors are not."""
    if not disk.is_mounted:
        pytest.skip(
            "no disk can be mounted here, and without one a folder that cannot be written cannot be read either"
        )
    settings = load(working_folder=place.folder, environment={}, jobs_folder=str(disk.folder))
    operations = Operations(place.operations.store, settings, local_caller())
    place.push("w", shell("s", f"touch {place.folder}/began; sleep 1; exit 1", retry_policy={"error_retry_limit": 0}))
    run = place.start("w")
    thread = threading.Thread(target=operations.runs.finish, args=(run.id,))
    thread.start()
    until((place.folder / "began").exists)
    disk.fill()
    until(lambda: place.statuses(run).get("s") == "PLATFORM_FAILED")
    assert "could not be written" in str(place.steps(run)["s"].failure)
    place.operations.runs.kill(run.id)
    disk.free()
    thread.join(30)


def test_the_check_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = JobsFolder(tmp_path / "jobs")
    assert folder.problem_now() is None
    assert list((tmp_path / "jobs").iterdir()) == []


def test_a_log_line_that_the_disk_does_not_take(disk: SmallDisk) -> None:
    """It is lost; whoever wrote it goes on."""
    log = AttemptLog(disk.folder / "log", (), limit=1 << 20)
    disk.fill()
    log.note("nobody reads this")
    disk.free()
    log.note("but this")
    assert (disk.folder / "log").read_text() == "[dalsegno] but this\n"


def test_a_log_has_a_limit(tmp_path: Path) -> None:
    log = AttemptLog(tmp_path / "log", (), limit=1000)
    for _ in range(200):
        log.write("x" * 99)
    text = (tmp_path / "log").read_text()
    assert text.count("at its limit of 1,000 bytes") == 1
    assert len(text) < 1100
