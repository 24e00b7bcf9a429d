"""A lake with the tables of this example, and a warm Spark in which their workflows and plain SQL run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from dalsegno.model.runs import RunStatus
from dalsegno.operations.callers import local_caller
from dalsegno.operations.facade import Operations
from dalsegno.operations.run_views import StepView
from dalsegno.settings import Settings, load
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.spark.server import Server, running_servers, stop
from dalsegno.steps.spark.sessions import local_server
from dalsegno.store import Store

EXAMPLE = Path(__file__).parent


@dataclass(frozen=True)
class Place:
    """Where the workflows run."""

    settings: Settings
    server: Server
    operations: Operations

    def push(self, *names: str) -> None:
        """Publish workflows of the example, by the names of their files."""
        for name in names:
            self.operations.workflows.push_file(EXAMPLE / f"{name}.yaml")

    def run(self, workflow_id: str, **params: Any) -> list[StepView]:
        """Run a workflow to its end, which must be a good one; its steps."""
        run = self.operations.runs.finish(self.operations.runs.start(workflow_id, params).id)
        if run.status is not RunStatus.SUCCEEDED:
            raise RuntimeError(f"{run.id} {run.status}: {run.reason}")
        return list(self.operations.runs.steps(run.id))

    def sql(self, *statements: str, conf: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Run statements in a session of their own; the rows of the last one."""
        session = Session(self.server.address, session_id_for(uuid4().hex))
        rows: list[dict[str, Any]] = []
        try:
            if conf:
                session.configure(conf)
            for statement in statements:
                rows = session.execute(statement, 1000).to_pylist()
        finally:
            session.release()
        return rows


@contextmanager
def place(folder: Path, spark_conf: Mapping[str, str], memory: str) -> Iterator[Place]:
    """A lake in a folder, with all defaults but for Spark's; what Spark left running is ended."""
    lines = [
        "[spark]",
        f'memory = "{memory}"',
        "[spark.conf]",
        *(f'"{key}" = "{value}"' for key, value in spark_conf.items()),
    ]
    (folder / "dalsegno.toml").write_text("\n".join(lines) + "\n")
    settings = load(working_folder=folder, environment={})
    try:
        server = local_server(settings).ensure()
        with Operations(Store.open(settings.store), settings, local_caller()) as operations:
            yield Place(settings, server, operations)
    finally:
        for found, _ in list(running_servers(settings.root)):
            stop(found)
