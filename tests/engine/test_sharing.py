"""Several processes with many runs of all shapes: each step is run once, limits hold, and nobody waits for ever."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from dalsegno.operations.run_views import RunView
from dalsegno.store import run_tables
from tests.engine.sharing import work_on
from tests.engine.support import (
    SUCCEEDED,
    Place,
    expression,
    foreach,
    long,
    loop_while,
    noop,
    shell,
    subworkflow,
)
from tests.processes import PROCESSES

pytestmark = pytest.mark.postgres

NODES = 3
PARALLEL: Any = {"run_strategy": {"rule": "PARALLEL", "workflow_concurrency": 100}}
SOON: Any = {"error_retry_limit": 3, "backoff": {"type": "FIXED_BACKOFF", "error_retry_backoff_in_secs": 1}}
#: How many runs of each.
RUNS = {"line": 50, "queue": 10, "loops": 30, "again": 20, "parent": 25, "scarce": 10, "flaky": 5}


def push_all(place: Place) -> None:
    out = f"{place.folder}/out"
    place.push("line", noop("a", "b", "c"), noop("b", "d"), noop("c", "d"), noop("d"), properties=PARALLEL)
    place.push("queue", noop("a", "b"), noop("b"))
    body = [noop("x", "y"), noop("y")]
    place.push("loops", foreach("each", [1, 2, 3, 4], body, "end", concurrency=2), noop("end"), properties=PARALLEL)
    counted = [noop("x", params={"n": expression("n + 1")})]
    place.push("again", loop_while("more", "n < 3", {"n": long(0)}, counted), properties=PARALLEL)
    place.push("child", noop("inside"), properties=PARALLEL)
    place.push("parent", subworkflow("sub", "child", "end"), noop("end"), properties=PARALLEL)
    # In both orders, and never more than two of them at a time.
    note = f"echo + >> {out}.scarce; sleep 0.05; echo - >> {out}.scarce"
    both = [shell("x", note, tags=["one", "two"]), shell("y", note, tags=["two", "one"])]
    place.push("scarce", *both, properties=PARALLEL)
    script = f"echo $DALSEGNO_ATTEMPT >> {out}.flaky; test $DALSEGNO_ATTEMPT -gt 1"
    place.push("flaky", shell("x", script, "y", retry_policy=SOON), noop("y"), properties=PARALLEL)
    place.operations.admin.set_limit("one", 2)
    place.operations.admin.set_limit("two", 3)


@pytest.fixture
def place(postgres_place: Place) -> Place:
    push_all(postgres_place)
    return postgres_place


def most_at_once(lines: list[str]) -> int:
    most = now = 0
    for line in lines:
        now += 1 if line == "+" else -1
        most = max(most, now)
    return most


def test_many_runs_of_all_shapes(place: Place, tmp_path: Path) -> None:
    started = [place.start(name) for name, count in RUNS.items() for _ in range(count)]
    logs = [tmp_path / f"{number}.log" for number in range(NODES)]
    url = place.operations.settings.store
    nodes = [PROCESSES.Process(target=work_on, args=(str(place.folder), url, str(log))) for log in logs]
    for node in nodes:
        node.start()
    for node in nodes:
        node.join(120)
    said = "".join(log.read_text() for log in logs)
    assert said == ""
    assert [node.exitcode for node in nodes] == [0] * NODES

    statuses = Counter((run.workflow_id, place.operations.runs.get(run.id).status) for run in started)
    assert statuses == {(name, SUCCEEDED): count for name, count in RUNS.items()}
    check_steps(place, started)
    assert most_at_once(place.lines("out.scarce")) <= 2
    assert Counter(place.lines("out.scarce")) == {"+": 20, "-": 20}
    assert Counter(place.lines("out.flaky")) == {"1": 5, "2": 5}


def check_steps(place: Place, started: list[RunView]) -> None:
    """Every attempt of every step began once and ended once; nothing is held any more."""
    events, steps = run_tables.events, run_tables.steps
    with place.operations.store.database.reading() as connection:
        told = connection.execute(select(events).where(events.c.kind == "step")).all()
        rows = connection.execute(select(steps)).all()
        assert connection.execute(select(run_tables.permits)).all() == []
        assert connection.execute(select(run_tables.inbox)).all() == []
        assert connection.execute(select(run_tables.nodes)).all() == []
    seen = Counter((each.flow_id, each.step_id, each.attempt, each.data["status"]) for each in told)
    assert set(seen.values()) == {1}
    for row in rows:
        assert (row.status, row.lease_owner, row.ready_at) == ("SUCCEEDED", None, None)
        assert seen[row.flow_id, row.step_id, row.attempt, "SUCCEEDED"] == 1
    assert len(rows) == 50 * 4 + 10 * 2 + 30 * (2 + 8) + 20 * (1 + 3) + 25 * (2 + 1) + 10 * 2 + 5 * 2
    assert len(started) == sum(RUNS.values())
