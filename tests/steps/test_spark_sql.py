"""SQL steps on a real Spark Connect server."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from dalsegno.clock import utc_now
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped, Succeeded
from dalsegno.settings import Settings, load
from dalsegno.spark.server import running_servers
from dalsegno.steps.contract import FilledText, Finished, Started, Work
from dalsegno.steps.spark.sessions import local_server
from tests.steps.spark_support import ENDLESS, RUNNER, Worker, executing, outcome_of, running_with_progress

pytestmark = pytest.mark.spark


def test_a_single_row_becomes_outputs(worker: Worker) -> None:
    work = worker("SELECT 42 AS answer, 'x' AS name, CAST(1.50 AS DECIMAL(5,2)) AS price, DATE'2026-01-02' AS day, 1+1")
    assert outcome_of(work) == Succeeded(
        {"answer": 42, "name": "x", "price": "1.50", "day": "2026-01-02", "row_count": 1}
    )
    assert "answer | name | price" in work.log.read_text()


def test_statements_share_a_session_and_stamp_what_they_write(worker: Worker) -> None:
    work = worker(
        """
        CREATE NAMESPACE IF NOT EXISTS lake.db;
        CREATE TABLE lake.db.stamped (id BIGINT) USING iceberg;
        INSERT INTO lake.db.stamped VALUES (1), (2); -- two; rows
        DECLARE VARIABLE most BIGINT DEFAULT 1;
        INSERT INTO lake.db.stamped SELECT id FROM lake.db.stamped WHERE id > most;
        SELECT collect_list(struct(summary['dalsegno.attempt'] AS attempt, summary['dalsegno.statement'] AS statement))
            AS stamps FROM (SELECT * FROM lake.db.stamped.snapshots ORDER BY committed_at)
        """
    )
    outcome = outcome_of(work)
    assert isinstance(outcome, Succeeded)
    assert outcome.outputs["stamps"] == [
        {"attempt": work.key, "statement": "3"},
        {"attempt": work.key, "statement": "5"},
    ]


def test_a_compound_statement_is_handed_over_whole(worker: Worker) -> None:
    script = "BEGIN DECLARE x INT DEFAULT 3; IF x > 2 THEN SELECT 'big' AS size; END IF; END; SELECT 'after' AS size"
    assert outcome_of(worker(script)) == Succeeded({"size": "after", "row_count": 1})


def test_many_rows_are_counted_and_the_first_are_shown(worker: Worker) -> None:
    work = worker("SELECT id, concat('row ', id) AS text FROM range(50) ORDER BY id")
    assert outcome_of(work) == Succeeded({"row_count": 50})
    log = work.log.read_text()
    assert "50 rows; the first 20:" in log
    assert "row 19" in log
    assert "row 20" not in log


def test_more_rows_than_are_fetched(worker: Worker) -> None:
    work = worker("SELECT id FROM range(5000)")
    assert outcome_of(work) == Succeeded({})
    assert "more than 1,000 rows" in work.log.read_text()


def test_a_file_of_sql(worker: Worker, settings: Settings) -> None:
    (settings.root / "query.sql").write_text("-- of ${day}; ${secret}\nSELECT '${day}' AS day;\n")

    def filled(text: str) -> FilledText:
        return FilledText(text.replace("${day}", "2026-01-02").replace("${secret}", "s3cret"), ("s3cret",))

    work = worker("query.sql", filled=filled)
    assert outcome_of(work) == Succeeded({"day": "2026-01-02", "row_count": 1})
    assert "-- of 2026-01-02; ***" in work.log.read_text()


@pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED")
def test_a_server_of_somebody_else(settings: Settings, tmp_path: Path) -> None:
    """What ``spark.remote`` names is used as it is, and no server is started."""
    project = tmp_path / "project"
    project.mkdir()
    address = local_server(settings).ensure().address
    remote = load(working_folder=project, environment={"DALSEGNO_SPARK_REMOTE": address})
    query = {"spark": {"script": "SELECT version() LIKE '4.%' AS is_new"}}
    work = Work("w", 1, "s", 1, f"{tmp_path.name}.1", query, tmp_path, remote)
    assert outcome_of(work) == Succeeded({"is_new": True, "row_count": 1})
    assert not list(running_servers(project))

    nobody = replace(remote, spark_remote="sc://127.0.0.1:1")
    outcome = outcome_of(replace(work, attempt=2, key=f"{tmp_path.name}.2", folder=project, settings=nobody))
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.PLATFORM
    assert "cannot be used: UNAVAILABLE" in outcome.message


def test_conf_is_for_this_step_only(worker: Worker) -> None:
    query = "SELECT current_timezone() AS zone"
    assert outcome_of(worker(query, conf={"spark.sql.session.timeZone": "Asia/Tokyo"})) == Succeeded(
        {"zone": "Asia/Tokyo", "row_count": 1}
    )
    assert outcome_of(worker(query)) == Succeeded({"zone": "UTC", "row_count": 1})


@pytest.mark.parametrize(
    ("script", "kind", "expected"),
    [
        ("SELEC 1", FailureKind.FATAL, "[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'."),
        ("SELECT * FROM lake.db.nothing", FailureKind.FATAL, "[TABLE_OR_VIEW_NOT_FOUND]"),
        (
            "CREATE TABLE lake.db.narrow (a INT) USING iceberg; INSERT INTO lake.db.narrow SELECT 1, 2",
            FailureKind.FATAL,
            "[INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS]",
        ),
        (
            "CREATE TABLE lake.db.whole (a INT) USING iceberg; INSERT INTO lake.db.whole SELECT DATE'2026-01-01'",
            FailureKind.FATAL,
            "[INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST]",
        ),
        ("SELECT 1; SELECT 1/0", FailureKind.USER, "[DIVIDE_BY_ZERO] Division by zero."),
        ("SELECT raise_error('s3cret is out')", FailureKind.USER, "*** is out"),
    ],
)
def test_mistakes_in_sql_are_the_users(worker: Worker, script: str, kind: FailureKind, expected: str) -> None:
    """Those in the statement itself would be made again by another attempt."""
    work = worker(script, secrets=("s3cret",))
    outcome = outcome_of(work)
    assert isinstance(outcome, Failed)
    assert outcome.kind is kind
    assert expected in outcome.message
    assert "\n" not in outcome.message
    assert outcome.message in work.log.read_text()
    assert "s3cret" not in work.log.read_text()


def test_configuration_that_is_too_late(worker: Worker) -> None:
    outcome = outcome_of(worker("SELECT 1", conf={"spark.driver.memory": "9g"}))
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.USER
    assert "spark.driver.memory" in outcome.message
    assert "submit" in str(outcome.hint)


# Ending.


def test_cancelling_ends_the_work_in_spark(worker: Worker, settings: Settings) -> None:
    work = worker(f"{ENDLESS}; SELECT 1")
    assert isinstance(RUNNER.start(work), Started)
    progress = running_with_progress(work).progress
    assert progress is not None
    assert progress.unit == "tasks"
    assert progress.message.startswith("statement 1 of 2, stage ")
    assert executing(settings)
    RUNNER.cancel(work)
    assert not executing(settings)
    assert RUNNER.poll(work, 0) == Finished(Stopped("Cancelled."))


def test_a_timeout_ends_the_work_in_spark(worker: Worker, settings: Settings) -> None:
    outcome = outcome_of(worker(ENDLESS, deadline=utc_now() + timedelta(seconds=3)))
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.TIMEOUT
    assert not executing(settings)


def test_cancelling_at_once(worker: Worker, settings: Settings) -> None:
    work = worker(ENDLESS)
    RUNNER.start(work)
    RUNNER.cancel(work)
    assert not executing(settings)
    assert RUNNER.poll(work, 0) == Finished(Stopped("Cancelled."))


def test_an_end_is_known_to_every_process(worker: Worker) -> None:
    work = worker("SELECT 7 AS seven")
    expected = outcome_of(work)
    # All that is left is the folder.
    assert RUNNER.poll(work, 0) == Finished(expected)
    assert RUNNER.start(work) == Finished(expected)


def test_sessions_do_not_disturb_each_other(worker: Worker) -> None:
    works = [
        worker(f"DECLARE VARIABLE x INT DEFAULT {n}; SELECT x AS x, count(*) AS c FROM range(9)") for n in range(6)
    ]
    found: dict[str, Outcome] = {}
    threads = [threading.Thread(target=lambda w=w: found.update({w.key: outcome_of(w)})) for w in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[work.key] for work in works] == [Succeeded({"x": n, "c": 9, "row_count": 1}) for n in range(6)]
