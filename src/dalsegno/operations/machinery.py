"""What verbs of runs are done with: parsed versions, scopes, a ledger, and what runs steps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from dalsegno.engine import notices
from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.engine import Engine
from dalsegno.engine.jobs import Jobs
from dalsegno.engine.jobs_folder import JobsFolder
from dalsegno.engine.ledger import Ledger
from dalsegno.engine.machine import machine_name
from dalsegno.engine.node import Node
from dalsegno.engine.scopes import Scopes
from dalsegno.engine.starting import evaluated, failed, new_run, new_run_id
from dalsegno.engine.step_execution import WorkerContext
from dalsegno.engine.worker import Worker
from dalsegno.errors import Conflict, PlatformError, UserError
from dalsegno.model.callers import Caller
from dalsegno.model.messages import Admit
from dalsegno.model.runs import RunStatus
from dalsegno.operations.engine_host import Host
from dalsegno.operations.run_params import given_params
from dalsegno.operations.run_views import RunView, run_view
from dalsegno.operations.template_finder import TemplateFinder
from dalsegno.operations.workflow_versions import Versions
from dalsegno.settings import Settings
from dalsegno.spec.params.sel import Sel
from dalsegno.steps.registry import runner
from dalsegno.store import Store, audit_log, run_queries, runs, workflows

log = logging.getLogger(__name__)

#: Where processes show that they live, in the folder of jobs; no workflow is called so.
SIGNS = ".nodes"
#: How often to try where others start runs of the same workflow at the same time.
_ATTEMPTS = 50


class Machinery:
    """Of one store, for one thread at a time."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        caller: Caller,
        *,
        clock: Callable[[], datetime],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings = settings
        self.store = store
        self.caller = caller
        self.clock = clock
        #: Called when a run was started, for whatever runs steps in the same process.
        self.wake = wake
        self.templates = TemplateFinder(store)
        self.versions = Versions(store)
        self.node = Node(
            store,
            host=machine_name(settings.machine),
            # Jobs of this machine need to see that we live only where another machine might start them.
            sign_folder=None if store.database.is_sqlite else settings.jobs_path / SIGNS,
        )
        self.host = Host(settings, self.versions, self.templates, clock)
        self.scopes = Scopes(store, Sel(), self.host)
        self.ledger = Ledger(store, self.node.id, self.versions)

    # Starting.

    def start_by_trigger(
        self,
        blueprint: Blueprint,
        key: str,
        initiator: Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        fault: UserError | None = None,
    ) -> RunView:
        """Start a run where nobody is there to see an error: with one, the run is there and has failed.

        The trigger may have made one itself.
        """
        given = given_params(blueprint, params or {}, self.settings)
        with audit_log.recording(audit_log.Change(self.caller, "runs.start", self.clock())):
            return self.start(blueprint, given, initiator, key, is_failure_kept=True, fault=fault)

    def start(
        self,
        blueprint: Blueprint,
        given: Mapping[str, Any],
        initiator: Mapping[str, Any],
        key: str | None,
        *,
        is_failure_kept: bool = False,
        fault: UserError | None = None,
    ) -> RunView:
        """Add a run; it begins when its run strategy allows. Asking again with the same key is the same run."""
        workflow_id = blueprint.workflow.id
        if key is not None and (known := self._asked_before(workflow_id, key, given)):
            return known
        for _ in range(_ATTEMPTS):
            now = self.clock()
            row = self._new_run(blueprint, given, initiator, key, now, is_failure_kept=is_failure_kept, fault=fault)
            with self.store.database.writing() as connection:
                runs.hold_workflow(connection, workflow_id)
                if key is not None and runs.asked_before(connection, workflow_id, key):
                    # Somebody else asked with the same key at the same time.
                    break
                if not workflows.take_number(connection, workflow_id, row["number"]):
                    # Somebody else has started a run in between: it is theirs.
                    continue
                runs.add_run(connection, row)
                audit_log.describe("run", f"{workflow_id}/{row['number']}", after=_started(row, given))
                if RunStatus(row["status"]).is_final:
                    data = {"status": row["status"], "reason": row["reason"]}
                    runs.add_events(
                        connection, [{"run_id": row["id"], "kind": "run", "data": data, "happened_at": now}]
                    )
                    notices.tell_of_end(connection, row, now)
                    name = f"{workflow_id}/{row['number']}"
                    log.error("run is %s: %s", row["status"], row["reason"], extra={"run": name})
                runs.send(connection, row["id"], Admit(workflow_id), now)
            self.deliver()
            self.wake()
            with self.store.database.reading() as connection:
                added = run_queries.run_row(connection, row["id"])
            return run_view(added or row)
        if key is not None and (known := self._asked_before(workflow_id, key, given)):
            return known
        raise PlatformError(f"Too many runs of {workflow_id} are being started at once.", hint="Try again.")

    def _new_run(
        self,
        blueprint: Blueprint,
        given: Mapping[str, Any],
        initiator: Mapping[str, Any],
        key: str | None,
        now: datetime,
        *,
        is_failure_kept: bool,
        fault: UserError | None,
    ) -> dict[str, Any]:
        """A run with the next number; its parameters may depend on it, and are evaluated outside of any transaction."""
        row = new_run(
            blueprint,
            run_id=new_run_id(),
            number=self.versions.row(blueprint.workflow.id)["last_run"] + 1,
            run_params=given,
            initiator=initiator,
            now=now,
            idempotency_key=key,
        )
        if fault is not None:
            return failed(row, fault.message, now)
        try:
            return evaluated(self.scopes, blueprint, row, now)
        except UserError as error:
            if not is_failure_kept:
                raise
            return failed(row, error.message, now)

    def _asked_before(self, workflow_id: str, key: str, given: Mapping[str, Any]) -> RunView | None:
        with self.store.database.reading() as connection:
            row = runs.asked_before(connection, workflow_id, key)
        if row is None:
            return None
        if row["run_params"] != given:
            raise Conflict(
                f"The idempotency key {key!r} was used for {workflow_id}/{row['number']} with other parameters.",
                hint="Use another key for another run.",
            )
        return run_view(row, is_repeated=True)

    def deliver(self) -> None:
        """Act on what transactions left for other runs."""
        while self.ledger.deliver(self.clock()) is not None:
            pass

    # Working.

    def engine(self, roots: Sequence[str] | None = None) -> Engine:
        """What runs steps, of these runs and what belongs to them, or of all."""
        folder = JobsFolder(self.settings.jobs_path)
        jobs = Jobs(self.settings, runner, self.clock, folder)
        context = WorkerContext(self.store, self.scopes, jobs, self.clock, self.host)
        return Engine(
            self.store,
            # Its own: a ledger is for one thread.
            Ledger(self.store, self.node.id, self.versions, roots),
            Worker(context),
            self.node,
            clock=self.clock,
            threads=self.settings.workers,
            jobs_folder=folder,
        )


def _started(row: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A run for the audit log: values of parameters may be secret."""
    return {"run": row["id"], "version": row["version"], "params": sorted(given), "key": row["idempotency_key"]}
