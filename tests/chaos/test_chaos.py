"""Nodes are killed, halted, cut off and told the wrong time, the database is restarted; nothing is lost or doubled."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select

from dalsegno.clock import from_millis
from dalsegno.store import run_tables, runs
from tests.chaos.storm import Storm
from tests.chaos.workload import BEAT_MINUTES, BEATS, COPIED, ENDS
from tests.services.postgres import running_postgres

pytestmark = pytest.mark.postgres
_PATIENCE_SECONDS = 180


def test_nothing_is_lost_or_doubled(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    kills, seed = pytestconfig.getoption("--kills"), pytestconfig.getoption("--storm")
    with running_postgres() as postgres:
        storm = Storm(tmp_path, postgres, seed)
        with storm.lasting():
            while storm.done["kill"] < kills:
                storm.strike()
            storm.calm()
            storm.start("copies", "last")
            _wait(storm, lambda: all(storm.place.operations.runs.list(beat) for beat in BEATS))
            # Nobody starts this one.
            _wait(storm, lambda: len(storm.copied("follows")) >= storm.rows)
            # These would go on for ever.
            for beat in BEATS:
                storm.place.operations.workflows.deactivate(beat)
            _wait(storm, lambda: not storm.place.operations.runs.list(status=runs.OPEN, limit=1))
        print(f"storm {seed}: {dict(storm.done)}, {_number_of_runs(storm)} runs")  # noqa: T201 - for -s
        with storm.place.operations.store.database.reading() as connection:
            _all_ended_as_they_should(connection)
            _every_attempt_ran_once(connection, tmp_path / "lines")
            _every_due_time_was_fired_once(connection)
            _nothing_is_held(connection)
            _every_signal_began_one_run(connection, storm.news)
        for workflow in COPIED:
            assert storm.copied(workflow) == list(range(storm.rows)), workflow
        storm.place.operations.close()


def _wait(storm: Storm, until: Callable[[], bool]) -> None:
    patience = time.monotonic() + _PATIENCE_SECONDS
    while not until():
        if time.monotonic() > patience:
            found = storm.place.operations.runs.list(status=runs.OPEN, limit=100)
            pytest.fail(f"{[(run.name, storm.place.statuses(run)) for run in found]} have not ended")
        time.sleep(0.2)


def _number_of_runs(storm: Storm) -> int:
    with storm.place.operations.store.database.reading() as connection:
        return sum(runs.counts(connection).values())


def _all_ended_as_they_should(connection: Connection) -> None:
    table = run_tables.runs
    found = connection.execute(select(table.c.workflow_id, table.c.number, table.c.status, table.c.reason))
    odd = [tuple(row) for row in found if row.status != ENDS[row.workflow_id]]
    assert odd == []


def _every_attempt_ran_once(connection: Connection, lines: Path) -> None:
    """No job ran twice as the same attempt; no success was told twice, and none without its job having run."""
    ran = Counter(lines.read_text().splitlines())
    assert [line for line, times in ran.items() if times > 1] == []
    events = run_tables.events
    key = (events.c.flow_id, events.c.step_id, events.c.attempt)
    succeeded = select(*key, func.count().label("times")).where(
        events.c.kind == "step", events.c.data["status"].as_string() == "SUCCEEDED"
    )
    assert [tuple(row) for row in connection.execute(succeeded.group_by(*key)) if row.times > 1] == []
    steps, table = run_tables.steps, run_tables.runs
    pairs = select(table.c.number, steps.c.step_id, steps.c.attempt).join(steps, steps.c.run_id == table.c.id)
    for number, step_id, attempt in connection.execute(pairs.where(table.c.workflow_id == "pair")):
        assert f"pair/{number} {step_id} {attempt}" in ran


def _every_due_time_was_fired_once(connection: Connection) -> None:
    table = run_tables.runs
    for beat in BEATS:
        found = connection.execute(select(table.c.initiator).where(table.c.workflow_id == beat)).scalars()
        planned = sorted(from_millis(initiator["planned_ms"]) for initiator in found)
        assert planned
        assert {later - earlier for earlier, later in pairwise(planned)} <= {timedelta(minutes=BEAT_MINUTES)}


def _every_signal_began_one_run(connection: Connection, news: list[int]) -> None:
    found = connection.execute(select(run_tables.runs.c.initiator).where(run_tables.runs.c.workflow_id == "hears"))
    assert sorted(number for each in found.scalars() for number in each["signal_ids"].values()) == sorted(news)


def _nothing_is_held(connection: Connection) -> None:
    """No permit, no claim, no message, no signal on its way to a trigger is left over."""
    for table in (run_tables.permits, run_tables.inbox, run_tables.signal_arrivals):
        assert connection.execute(select(func.count()).select_from(table)).scalar_one() == 0
    claimed = select(func.count()).select_from(run_tables.steps).where(run_tables.steps.c.lease_owner.is_not(None))
    assert connection.execute(claimed.where(run_tables.steps.c.lease_until.is_not(None))).scalar_one() == 0
