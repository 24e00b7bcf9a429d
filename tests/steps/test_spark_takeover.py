"""SQL steps whose process dies, or is thought dead, on a real Spark Connect server."""

from __future__ import annotations

import pickle
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from dalsegno.model.outcomes import Failed, FailureKind, Stopped, Succeeded
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session, operation_id_for, session_id_for
from dalsegno.spark.operations import _attaching_to
from dalsegno.steps.contract import Running, Started, Work
from tests.steps.spark_support import (
    ENDLESS,
    RUNNER,
    Worker,
    address_of,
    end_of,
    executing,
    rows_of,
    running_with_progress,
    wait_until,
)

pytestmark = pytest.mark.spark

EXECUTING = """
import pickle, sys
from dalsegno.steps.contract import Running
from dalsegno.steps.spark.runner import SparkRunner
work = pickle.loads(bytes.fromhex(sys.argv[1]))
runner = SparkRunner()
runner.start(work)
print("began", flush=True)
while isinstance(state := runner.poll(work, 0.1), Running):
    pass
print(state, flush=True)
"""


@contextmanager
def process(work: Work) -> Iterator[subprocess.Popen[str]]:
    """Another process, which executes an attempt; it is killed at the end of the block, if it has not ended by then."""
    command = [sys.executable, "-c", EXECUTING, pickle.dumps(work).hex()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "began\n"
        try:
            yield other
        finally:
            other.kill()


def leave_in_the_middle_of(work: Work) -> None:
    """As if this process had died: what it leaves in Spark and in the attempt's folder is the same."""
    RUNNER.start(work)
    if ENDLESS in str(work.params["spark"]):
        # What is interrupted before its tasks have begun may go on in Spark, and hold up the tests that follow.
        running_with_progress(work)
    assert isinstance(RUNNER.poll(work, 0), Running)
    wait_until(lambda: is_at(work, 1))
    RUNNER.let_go(work)


def is_at(work: Work, statement: int) -> bool:
    """Whether a statement of the attempt is executed at this moment; of a query, its rows are."""
    names = (f"statement {statement}", f"statement {statement} rows")
    return bool(executing(work.settings) & {operation_id_for(session_id_for(work.key), name) for name in names})


def session_of(work: Work) -> Session:
    return Session(address_of(work.settings), session_id_for(work.key))


@pytest.fixture
def table(settings: Settings) -> str:
    name = f"lake.db.t{uuid4().hex[:12]}"
    rows_of(settings, "CREATE NAMESPACE IF NOT EXISTS lake.db")
    rows_of(settings, f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    return name


def insert(table: str, number: int, seconds: float = 0) -> str:
    """A statement that takes so long, and adds a row."""
    nap = f"reflect('java.lang.Thread', 'sleep', {seconds * 1000:.0f}L)"
    return f"INSERT INTO {table} SELECT {number} FROM range(1) WHERE coalesce({nap}, 'null') = 'null'"


def ids(settings: Settings, table: str) -> list[int]:
    return [row["id"] for row in rows_of(settings, f"SELECT id FROM {table} ORDER BY id")]


def elsewhere(work: Work, folder: Path) -> Work:
    """The attempt as another machine has it that uses the same server: with a handle, and a folder that is empty."""
    folder.mkdir()
    remote = replace(work.settings, spark_remote=address_of(work.settings))
    return replace(work, folder=folder, settings=remote, handle={"session": session_id_for(work.key)})


def test_another_process_goes_on_with_a_statement(worker: Worker, settings: Settings, table: str) -> None:
    script = (
        f"{insert(table, 1)}; DECLARE VARIABLE third BIGINT DEFAULT 3; {insert(table, 2, 6)};"
        f"INSERT INTO {table} SELECT third; SELECT count(*) AS n FROM {table}"
    )
    work = worker(script)
    with process(work):
        wait_until(lambda: is_at(work, 3))
    assert is_at(work, 3)
    progress = running_with_progress(work).progress
    assert progress is not None
    assert progress.message.startswith("statement 3 of 5, stage ")
    assert end_of(work) == Succeeded({"n": 3, "row_count": 1})
    assert ids(settings, table) == [1, 2, 3]
    assert "An earlier process was at statement 3 of 5: resuming it." in work.log.read_text()
    # What the first process began is what has succeeded: it was not interrupted and executed again.
    session = session_of(work)
    session.take()
    session.attach("statement 3", 1)
    session.release()


def test_another_machine_goes_on_with_a_statement(
    worker: Worker, settings: Settings, table: str, tmp_path: Path
) -> None:
    """Without the attempt's folder; and a third one learns how it ended."""
    work = worker(f"{insert(table, 1, 3)}; {insert(table, 2)}; {insert(table, 3)}; SELECT 7 AS seven")
    leave_in_the_middle_of(work)
    for name in ("second", "third"):
        assert end_of(elsewhere(work, tmp_path / name)) == Succeeded({"seven": 7, "row_count": 1})
    assert ids(settings, table) == [1, 2, 3]


def test_starting_again_goes_on_as_well(worker: Worker) -> None:
    """Whoever died before the handle was stored."""
    work = worker(ENDLESS)
    leave_in_the_middle_of(work)
    assert isinstance(RUNNER.start(work), Started)
    running_with_progress(work)
    assert "An earlier process was at statement 1 of 1" in work.log.read_text()
    RUNNER.cancel(work)
    assert not is_at(work, 1)
    assert end_of(work) == Stopped("Cancelled.")


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_cancelling_what_another_process_left(worker: Worker, tmp_path: Path, is_elsewhere: bool) -> None:
    work = worker(ENDLESS)
    leave_in_the_middle_of(work)
    mine = elsewhere(work, tmp_path / "second") if is_elsewhere else work
    RUNNER.cancel(mine)
    assert not is_at(work, 1)
    assert end_of(mine) == Stopped("Cancelled.")


def test_a_process_that_was_thought_dead_executes_no_more(worker: Worker, settings: Settings, table: str) -> None:
    work = worker(f"{insert(table, 1, 3)}; {insert(table, 2)}; {insert(table, 3)}")
    with process(work) as other:
        wait_until(lambda: is_at(work, 1))
        other.send_signal(signal.SIGSTOP)
        assert isinstance(end_of(work), Succeeded)
        other.send_signal(signal.SIGCONT)
        assert "Another process goes on with it." in other.communicate(timeout=60)[0]
    assert ids(settings, table) == [1, 2, 3]
    # It has not touched what the other one left.
    assert isinstance(end_of(work), Succeeded)


def test_two_processes_that_execute_at_once(worker: Worker, settings: Settings, table: str, tmp_path: Path) -> None:
    """The one that came last goes on, the other one notices; every statement is executed once."""
    work = worker(";".join(insert(table, number, 0.5) for number in range(1, 7)))
    with process(work) as other:
        wait_until(lambda: work.log.exists() and "statement 2 of 6 took" in work.log.read_text())
        assert isinstance(end_of(elsewhere(work, tmp_path / "second")), Succeeded)
        assert "Another process goes on with it." in other.communicate(timeout=60)[0]
    assert ids(settings, table) == [1, 2, 3, 4, 5, 6]


def test_what_nobody_can_go_on_with_is_ended(worker: Worker, settings: Settings) -> None:
    work = worker(ENDLESS)
    leave_in_the_middle_of(work)
    session_of(work).release()
    outcome = end_of(work)
    assert isinstance(outcome, Failed)
    assert (outcome.kind, outcome.at_once) == (FailureKind.PLATFORM, True)
    assert not executing(settings)


def test_a_script_that_reads_otherwise_by_now(worker: Worker) -> None:
    """It has the time in it, say: half of the old one and half of the new one is neither."""
    work = worker(ENDLESS)
    leave_in_the_middle_of(work)
    outcome = end_of(replace(work, params={"spark": {"script": f"{ENDLESS}; SELECT 2"}}))
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.PLATFORM
    assert not is_at(work, 1)


def forget_the_first_answer(work: Work, statement: int) -> None:
    """As the server does when answers are many, so that nobody can be told all of them."""
    from pyspark.sql.connect.proto import ReleaseExecuteRequest

    session = session_of(work)
    request = session._request(f"statement {statement}")
    metadata = session._client._builder.metadata()
    answer = next(session._stub.ReattachExecute(_attaching_to(request), metadata))
    release = ReleaseExecuteRequest(
        session_id=request.session_id, user_context=request.user_context, operation_id=request.operation_id
    )
    release.release_until.response_id = answer.response_id
    session._stub.ReleaseExecute(release, metadata)
    session.disconnect()


@pytest.mark.parametrize("has_ended", [True, False])
def test_the_target_tells_what_spark_does_not(worker: Worker, settings: Settings, table: str, has_ended: bool) -> None:
    """A statement whose answers are lost was executed if its stamp is there; otherwise it is ended, and repeated."""
    work = worker(f"{insert(table, 1, 3 if has_ended else 5)}; {insert(table, 2)}")
    leave_in_the_middle_of(work)
    wait_until(lambda: is_at(work, 1) != has_ended)
    forget_the_first_answer(work, 1)
    assert isinstance(end_of(work), Succeeded)
    assert ids(settings, table) == [1, 2]
    assert ("statement 1 of 2 was executed before" in work.log.read_text()) == has_ended


def test_what_no_target_tells_is_not_repeated(worker: Worker, table: str) -> None:
    """dalsegno does not evaluate names of tables."""
    work = worker(f"INSERT INTO IDENTIFIER('{table}') {ENDLESS}")
    leave_in_the_middle_of(work)
    forget_the_first_answer(work, 1)
    outcome = end_of(work)
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.PLATFORM
    assert not is_at(work, 1)


def test_every_row_once_whenever_processes_die(worker: Worker, settings: Settings, table: str) -> None:
    chance = random.Random(20261116)
    work = worker(";".join(insert(table, number, 0.2) for number in range(1, 9)))
    deaths = 0
    while deaths < 4:
        with process(work) as other:
            try:
                other.wait(chance.uniform(0, 1.5))
            except subprocess.TimeoutExpired:
                deaths += 1
            else:
                break
    assert isinstance(end_of(work), Succeeded)
    assert deaths
    assert ids(settings, table) == list(range(1, 9))
    stamps = rows_of(settings, f"SELECT summary['dalsegno.attempt'] AS attempt FROM {table}.snapshots")
    assert {row["attempt"] for row in stamps} == {work.key}
