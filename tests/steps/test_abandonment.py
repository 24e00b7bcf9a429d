"""A job that another machine may start is ended when nobody of this machine follows it any more."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dalsegno.model.outcomes import Failed, FailureKind
from dalsegno.steps import supervision, supervisor
from dalsegno.steps.contract import Running, Work
from dalsegno.steps.processes import failure_of
from tests.steps.support import attempt, commands_with, ended, log_text, script_job, until

NAP = f"601.{os.getpid()}"
SLEEP = f"sleep {NAP}"


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(supervision, "ABANDONED_SECONDS", (1.0, 2.0))
    yield
    until(lambda: not commands_with(NAP), 5)


def show(file: Path, ago: float = 0.0) -> Path:
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(f"{supervisor.elapsing_clock() - ago:020.3f}")
    return draft.replace(file)


@contextmanager
def alive(file: Path) -> Iterator[Path]:
    """Somebody gives signs of life meanwhile."""
    is_over = threading.Event()

    def beat() -> None:
        while not is_over.wait(0.1):
            show(file)

    thread = threading.Thread(target=beat)
    show(file)
    thread.start()
    yield file
    is_over.set()
    thread.join()


def entrusted(tmp_path: Path, sign_file: Path, script: str) -> Work:
    work = attempt(tmp_path)
    supervision.entrust(work.folder, 1, sign_file)
    supervision.start(work, script_job(work, script))
    return work


def test_it_ends_when_there_is_no_sign_of_life(tmp_path: Path) -> None:
    work = entrusted(tmp_path, show(tmp_path / "a"), SLEEP)
    end = ended(work)
    assert end.reason == "abandoned"
    assert 0.8 < end.seconds < 2.5
    assert "gives no sign of life: ending the job" in log_text(work)
    failure = failure_of(work, end, {})
    assert isinstance(failure, Failed)
    assert (failure.kind, failure.at_once) == (FailureKind.PLATFORM, True)


def test_one_that_does_not_want_to_end_is_killed_in_time(tmp_path: Path) -> None:
    work = entrusted(tmp_path, show(tmp_path / "a"), f"trap '' TERM; {SLEEP} & wait; {SLEEP}")
    end = ended(work)
    assert end.reason == "abandoned"
    assert end.seconds < 4


def test_it_goes_on_while_there_are_signs(tmp_path: Path) -> None:
    with alive(tmp_path / "a") as sign_file:
        work = entrusted(tmp_path, sign_file, "sleep 2.5; exit 3")
        assert ended(work).code == 3


def test_it_goes_on_where_nobody_asks_for_signs(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    supervision.start(work, script_job(work, "sleep 1.5; exit 3"))
    assert ended(work).code == 3


def test_another_process_takes_it_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A thread that beats may have to wait for more than a second on a busy machine.
    monkeypatch.setattr(supervision, "ABANDONED_SECONDS", (4.0, 5.0))
    with alive(tmp_path / "b") as other:
        work = entrusted(tmp_path, show(tmp_path / "a"), SLEEP)
        supervision.entrust(work.folder, 2, other)
        assert isinstance(supervision.poll(work, 5.5), Running)
        # One that slept meanwhile does not get it back.
        supervision.entrust(work.folder, 1, show(tmp_path / "a", ago=60))
        assert isinstance(supervision.poll(work, 1.5), Running)
    assert ended(work).reason == "abandoned"


def test_it_ends_when_the_signs_are_gone(tmp_path: Path) -> None:
    work = entrusted(tmp_path, show(tmp_path / "a"), SLEEP)
    (tmp_path / "a").unlink()
    assert ended(work).reason == "abandoned"


def test_it_does_not_begin_too_late(tmp_path: Path) -> None:
    """Whoever wanted it slept for so long that another machine may have started it."""
    work = entrusted(tmp_path, show(tmp_path / "a", ago=60), f"touch {tmp_path}/begun; {SLEEP}")
    end = ended(work)
    assert end.reason == "not_started"
    assert "another may have started it" in str(end.error)
    assert not (tmp_path / "begun").exists()
