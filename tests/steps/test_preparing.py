"""A SQL step that finds out first what it executes, as a declared table does, can be ended meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from dalsegno.clock import utc_now
from dalsegno.errors import UserError
from dalsegno.model.outcomes import Failed, FailureKind, Stopped
from dalsegno.settings import Settings
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.spark import sql
from dalsegno.steps.spark.params import SparkStep, Sql
from dalsegno.steps.spark.sessions import opened_for
from dalsegno.steps.spark.sql import UseSession
from tests.steps.spark_support import ENDLESS, Worker, executing, wait_until
from tests.steps.support import attempt

NOTHING = SparkStep(Sql(("SELECT 1",)), (), {}, {}, None, ())


class Slow:
    """Takes as long as Spark takes to start."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.is_over = threading.Event()

    def __call__(self, _: Work, __: UseSession) -> SparkStep:
        self.go_on.wait(60)
        self.is_over.set()
        return NOTHING


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    yield made
    made.go_on.set()


def begun(work: Work, slow: Slow) -> None:
    assert isinstance(sql.begin(work), Started)
    assert isinstance(sql.poll(work, 0.1, slow), Running)


def goes_on_and_executes_nothing(work: Work, slow: Slow) -> None:
    threads = [each for each in threading.enumerate() if each.name == f"spark-{work.key}"]
    slow.go_on.set()
    for each in threads:
        each.join(60)
        assert not each.is_alive()
    assert slow.is_over.is_set()
    # There was no session.
    assert not (work.folder / "spark-session").exists()


def test_nobody_waits_for_it_to_be_cancelled(tmp_path: Path, slow: Slow) -> None:
    work = attempt(tmp_path)
    begun(work, slow)
    started = time.monotonic()
    sql.cancel(work)
    assert time.monotonic() - started < 5
    assert sql.poll(work, 0, slow) == Finished(Stopped("Cancelled."))
    goes_on_and_executes_nothing(work, slow)
    assert sql.poll(work, 0, slow) == Finished(Stopped("Cancelled."))


def test_nobody_waits_for_it_to_be_left_to_another_process(tmp_path: Path, slow: Slow) -> None:
    work = attempt(tmp_path)
    begun(work, slow)
    started = time.monotonic()
    sql.let_go(work)
    assert time.monotonic() - started < 5
    goes_on_and_executes_nothing(work, slow)
    # Another process finds no outcome, and begins it.
    other = Slow()
    assert isinstance(sql.poll(work, 0.1, other), Running)
    sql.cancel(work)
    other.go_on.set()


def test_a_timeout_counts_meanwhile(tmp_path: Path, slow: Slow) -> None:
    work = attempt(tmp_path, deadline=utc_now() + timedelta(seconds=1))
    begun(work, slow)
    found = sql.poll(work, 30, slow)
    assert isinstance(found, Finished)
    assert isinstance(found.outcome, Failed)
    assert found.outcome.kind is FailureKind.TIMEOUT
    goes_on_and_executes_nothing(work, slow)


def test_what_cannot_be_understood_fails_and_what_cannot_be_read_is_read_again(tmp_path: Path) -> None:
    def refusing(_: Work, __: UseSession) -> SparkStep:
        raise UserError("It makes no sense.", hint="Change it.")

    def unreadable(_: Work, __: UseSession) -> SparkStep:
        raise OSError("The disk is gone.")

    work = attempt(tmp_path)
    sql.begin(work)
    with pytest.raises(OSError, match="The disk is gone"):
        sql.poll(work, 30, unreadable)
    assert sql.poll(work, 30, refusing) == Finished(Failed(FailureKind.FATAL, "It makes no sense.", "Change it."))


@pytest.mark.spark
def test_what_spark_is_asked_meanwhile_is_interrupted(worker: Worker, settings: Settings) -> None:
    work = worker("SELECT 1")

    def asking(_: Work, use: UseSession) -> SparkStep:
        session = opened_for(settings, uuid4().hex)
        try:
            use(session)
            session.execute(ENDLESS, 1)
        finally:
            session.release()
        raise AssertionError

    assert isinstance(sql.begin(work), Started)
    assert isinstance(sql.poll(work, 0.1, asking), Running)
    wait_until(lambda: executing(settings))
    sql.cancel(work)
    assert not executing(settings)
    assert sql.poll(work, 0, asking) == Finished(Stopped("Cancelled."))
