"""The playback example on a Spark cluster, from two nodes that share a PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dalsegno.model.runs import RunStatus
from dalsegno.operations.facade import Operations
from dalsegno.operations.run_views import RunView
from dalsegno.settings import Settings, load
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.spark.server import running_servers, stop
from dalsegno.steps.spark.sessions import local_server
from dalsegno.store import Store
from tests.callers import admin
from tests.chaos.node import live
from tests.conftest import uncaptured
from tests.processes import PROCESSES
from tests.services.postgres import Postgres
from tests.services.spark_cluster import WORKERS, SparkCluster, running_spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

EXAMPLE = Path(__file__).parents[2] / "examples" / "playback"
STAGES = ("playback.by_hand_daily", "playback.by_hand_agg")
_PATIENCE_SECONDS = 120


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with running_spark_cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def settings(
    cluster: SparkCluster, postgres: Postgres, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Settings]:
    root, catalog = tmp_path_factory.mktemp("project"), postgres.url(postgres.create_database())
    (root / "dalsegno.toml").write_text(
        f"""
        store = "{postgres.url(postgres.create_database())}"
        [catalogs.lake]
        uri = "{catalog}"
        warehouse = "warehouse"
        [spark.conf]
        "spark.master" = "{cluster.address}"
        "spark.executor.memory" = "768m"
        """
    )
    loaded = load(root / "dalsegno.toml", environment={})
    with uncaptured(pytestconfig):
        local_server(loaded).ensure()
    yield loaded
    for folder, _ in list(running_servers(root)):
        stop(folder)


def test_two_nodes_and_a_cluster(settings: Settings, cluster: SparkCluster) -> None:
    """The second node goes on where the first was killed."""
    with ExitStack() as stack:
        first, second = (_Node(settings, stack) for _ in range(2))
        operations = stack.enter_context(Operations(Store.open(settings.store), settings, admin()))
        for file in EXAMPLE.glob("*.yaml"):
            operations.workflows.push_file(file)
        first.start()
        _finish(operations, "playback.setup")
        _finish(operations, "playback.arrive", events=500, **_days("2026-01-01", "2026-01-06"))
        for stage in STAGES:
            _finish(operations, stage)
        state = cluster.state()
        assert state["aliveworkers"] == WORKERS
        [application] = state["activeapps"]
        assert application["cores"] == WORKERS

        second.start()
        run = operations.runs.start("playback.arrive", {"events": 500, **_days("2026-01-07", "2026-01-07")})
        first.process.kill()
        _wait(operations, run)
        for stage in STAGES:
            _finish(operations, stage)

    sql = _sql(settings)
    [plays] = sql("SELECT COUNT(DISTINCT event_id) AS events FROM lake.media.playback")
    [daily] = sql("SELECT COUNT(*) AS events FROM lake.media.playback_daily")
    [agg] = sql("SELECT SUM(plays) AS events FROM lake.media.playback_daily_agg")
    assert plays["events"] == daily["events"] == agg["events"] > 3000


class _Node:
    def __init__(self, settings: Settings, stack: ExitStack) -> None:
        # It has to live until the process has it.
        self._wrong_by = PROCESSES.Value("d", 0.0)
        self.process = PROCESSES.Process(target=live, args=(str(settings.root), settings.store, self._wrong_by))
        self._stack = stack

    def start(self) -> None:
        self.process.start()
        self._stack.callback(self.process.join)
        self._stack.callback(self.process.terminate)


def _days(first: str, last: str) -> dict[str, str]:
    return {"epoch": "2026-01-01", "first_day": first, "last_day": last}


def _finish(operations: Operations, workflow_id: str, **params: Any) -> None:
    """Ask for a run, which a node then runs to its end."""
    _wait(operations, operations.runs.start(workflow_id, params))


def _wait(operations: Operations, run: RunView) -> None:
    patience = time.monotonic() + _PATIENCE_SECONDS
    while not (found := operations.runs.get(run.id)).status.is_final:
        assert time.monotonic() < patience, operations.runs.steps(run.id)
        time.sleep(0.1)
    assert found.status is RunStatus.SUCCEEDED, found.reason


def _sql(settings: Settings) -> Callable[[str], list[dict[str, Any]]]:
    session = Session(local_server(settings).ensure().address, session_id_for("check"))
    return lambda statement: session.execute(statement, 10).to_pylist()
