"""What a user can do with workflows and their runs: one method per verb."""

from __future__ import annotations

import getpass
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dalsegno import settings as settings_module
from dalsegno.clock import utc_now
from dalsegno.engine import notices
from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.engine import Engine
from dalsegno.engine.jobs import Jobs
from dalsegno.engine.jobs_folder import JobsFolder
from dalsegno.engine.ledger import Ledger
from dalsegno.engine.machine import machine_name
from dalsegno.engine.node import Node
from dalsegno.engine.records import Report
from dalsegno.engine.scopes import Scopes
from dalsegno.engine.starting import RESTARTED, evaluated, failed, new_run, new_run_id, restarted_with
from dalsegno.engine.step_execution import WorkerContext
from dalsegno.engine.worker import Worker
from dalsegno.errors import PlatformError, UnknownName, UserError
from dalsegno.model.full_refresh import FullRefresh
from dalsegno.model.messages import Admit, EndRun
from dalsegno.model.params import ParamSource
from dalsegno.model.runs import (
    Ending,
    EndWanted,
    Happening,
    Paused,
    Restarted,
    RestartFrom,
    Resumed,
    RunStatus,
    StepStatus,
)
from dalsegno.operations.engine_host import Host
from dalsegno.operations.job_templates import Templates
from dalsegno.operations.run_params import given_params
from dalsegno.operations.run_reader import RunReader, unknown_step
from dalsegno.operations.run_views import RunView, run_view
from dalsegno.operations.signals import Signals
from dalsegno.operations.workflow_versions import Pushed, Versions
from dalsegno.settings import Settings
from dalsegno.spec.names import fault_of_key
from dalsegno.spec.params.sel import Sel
from dalsegno.steps.registry import runner
from dalsegno.store import Store, flows, nodes, queue, run_queries, run_tables, runs, workflows

if TYPE_CHECKING:
    from dalsegno.audit.results import Audit, AuditRequest

log = logging.getLogger(__name__)

_RESTARTABLE = (RunStatus.FAILED, RunStatus.STOPPED, RunStatus.TIMED_OUT, RunStatus.SUCCEEDED)
#: Where processes show that they live, in the folder of jobs; no workflow is called so.
SIGNS = ".nodes"
#: How often to try where others start runs of the same workflow at the same time.
_ATTEMPTS = 50


class Orchestrator(RunReader):
    """Workflows and their runs, in one store."""

    versions: Versions

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        clock: Callable[[], datetime] = utc_now,
        actor: str | None = None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(settings, store.database, clock=clock)
        #: Called when a run was started, for whatever runs steps in the same process.
        self.wake = wake
        self.store = store
        self.actor = actor or getpass.getuser()
        self.templates = Templates(store, settings, clock, self.actor)
        self.versions = Versions(store, settings, self.templates, clock, self.actor)
        self.node = Node(
            store,
            host=machine_name(settings.machine),
            # Jobs of this machine need to see that we live only where another machine might start them.
            sign_folder=None if store.database.is_sqlite else settings.jobs_path / SIGNS,
        )
        self.host = Host(settings, self.versions, self.templates, clock)
        self.scopes = Scopes(store, Sel(), self.host)
        self.ledger = Ledger(store, self.node.id, self.versions)
        self.signals = Signals(store, clock, self.actor, self.deliver)

    @classmethod
    def open(cls, settings_file: Path | None = None, **options: Any) -> Self:
        settings = settings_module.load(settings_file)
        return cls(settings, Store.open(settings.store), **options)

    def push(self, text: str | bytes, *, file: str = "workflow", folder: Path | None = None) -> Pushed:
        """Store a workflow as a new version, unless it is the newest one; a file with a problem changes nothing."""
        return self.versions.push(text, file=file, folder=folder)

    def push_file(self, file: Path) -> Pushed:
        try:
            text = file.read_bytes()
        except OSError as error:
            raise UserError(f"{file} cannot be read: {error.strerror}.") from error
        return self.push(text, file=str(file), folder=file.resolve().parent)

    # Starting.

    def start(
        self,
        workflow_id: str,
        params: Mapping[str, Any] | None = None,
        *,
        version: str = "default",
        idempotency_key: str | None = None,
        initiator: Mapping[str, Any] | None = None,
        full_refresh: FullRefresh | None = None,
    ) -> RunView:
        """Ask for a run; it begins when its run strategy allows. Asking again with the same key is the same run.

        ``full_refresh``: its captures take their sources as a whole, and its SQL replaces what its targets hold.
        """
        if idempotency_key is not None and (fault := fault_of_key(idempotency_key)):
            raise UserError(f"The idempotency key {idempotency_key[:80]!r} cannot be used: {fault}.")
        blueprint = self.versions.named(workflow_id, version)
        given = given_params(blueprint, params or {}, self.settings)
        started_by = {"type": "MANUAL", "by": self.actor, **(initiator or {})}
        if full_refresh is not None:
            _check_full_refresh(blueprint, full_refresh)
            started_by["full_refresh"] = full_refresh.as_json()
        return self._start(blueprint, given, started_by, idempotency_key)

    def start_by_trigger(
        self,
        blueprint: Blueprint,
        key: str,
        initiator: Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        fault: UserError | None = None,
    ) -> RunView:
        """As ``start``, where nobody is there to be told of a mistake: the run is there and has failed.

        The trigger may have made one itself.
        """
        given = given_params(blueprint, params or {}, self.settings)
        return self._start(blueprint, given, initiator, key, is_failure_kept=True, fault=fault)

    def _start(
        self,
        blueprint: Blueprint,
        given: Mapping[str, Any],
        initiator: Mapping[str, Any],
        key: str | None,
        *,
        is_failure_kept: bool = False,
        fault: UserError | None = None,
    ) -> RunView:
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
            return self.run(row["id"])
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
            raise UserError(
                f"The idempotency key {key!r} was used for {workflow_id}/{row['number']} with other parameters.",
                hint="Use another key for another run.",
            )
        return run_view(row, is_repeated=True)

    def deliver(self) -> None:
        """Act on what transactions left for other runs."""
        while self.ledger.deliver(self.clock()) is not None:
            pass

    # Looking, beside what ``RunReader`` has.

    def is_attended(self) -> bool:
        """Whether some process is at work on the store's runs."""
        with self.store.database.reading() as connection:
            rows = nodes.node_rows(connection)
        return any(not self.node.is_dead_here(row) for row in rows if row["id"] != self.node.id)

    def audit(
        self, request: AuditRequest, *, version: str = "default", say: Callable[[str], None] = lambda _: None
    ) -> Audit:
        """Compute anew what a workflow should have written, and compare it with what it has written."""
        # Most of us never audit, and it takes long to import.
        from dalsegno.audit.auditing import audit  # noqa: PLC0415
        from dalsegno.capture.lake import Lake  # noqa: PLC0415

        blueprint = self.versions.named(request.workflow_id, version)
        with Lake.open(self.settings, clock=self.clock) as lake:
            return audit(lake, self.scopes, blueprint, request, say)

    # Changing.

    def end(self, reference: str, ending: Ending, *, step: str | None = None, iteration: str = "") -> RunView:
        """Stop, kill or skip: a step, or the whole run."""
        row = self._open_row(reference)
        if step is None:
            with self.store.database.writing() as connection:
                runs.send(connection, row["id"], EndRun(ending), self.clock())
            self.deliver()
        else:
            flow_id = f"{row['id']}/{iteration}" if iteration else row["id"]
            self._happen(row, flow_id, EndWanted(ending, step, self._all_successors(row, step)), step)
        return self.run(row["id"])

    def _all_successors(self, row: Mapping[str, Any], step: str) -> tuple[str, ...]:
        """Where a skipped step leads: its conditions may need what only a run of it would have told."""
        return tuple(self._blueprint_with(row, step).steps[step].successors)

    def _blueprint_with(self, row: Mapping[str, Any], step: str) -> Blueprint:
        """The version that a run has, which must have the step."""
        blueprint = self.versions.blueprint(row["workflow_id"], row["version"])
        if step not in blueprint.steps:
            raise unknown_step(row["workflow_id"], step, blueprint.steps)
        return blueprint

    def pause(self, reference: str) -> RunView:
        """Let nothing new begin."""
        return self._pause(reference, is_paused=True)

    def resume(self, reference: str, step: str | None = None, *, iteration: str = "") -> RunView:
        """Let what was paused go on: the run, or one step at a breakpoint."""
        if step is None:
            return self._pause(reference, is_paused=False)
        row = self._open_row(reference)
        self._happen(row, f"{row['id']}/{iteration}" if iteration else row["id"], Resumed(step), step)
        return self.run(row["id"])

    def _pause(self, reference: str, *, is_paused: bool) -> RunView:
        row = self._open_row(reference)
        happening: Happening = Paused() if is_paused else Resumed()
        with self.store.database.writing() as connection:
            runs.touch(connection, row["id"], is_paused=is_paused)
            table = run_tables.flows
            open_flows = flows.flow_rows(connection, table.c.run_id == row["id"], table.c.status.in_(runs.OPEN))
        self.ledger.forget(row["id"])
        self.ledger.record([Report(row["id"], flow["id"], happening) for flow in open_flows], self.clock())
        return self.run(row["id"])

    def restart(
        self,
        reference: str,
        *,
        restart: RestartFrom = RestartFrom.INCOMPLETE,
        step: str | None = None,
        params: Mapping[str, Any] | None = None,
        skip: Sequence[str] = (),
        version: str | None = None,
    ) -> RunView:
        """Run an ended run again: what did not complete, a step and what follows, or all of it.

        ``version``: resume with this version of the workflow, as ``start`` takes it; by default the one that it had.
        """
        row = self._row(reference)
        name = f"{row['workflow_id']}/{row['number']}"
        if RunStatus(row["status"]) not in _RESTARTABLE:
            raise UserError(f"{name} is {row['status']}; only a run that has ended can be restarted.")
        before = self.versions.blueprint(row["workflow_id"], row["version"])
        blueprint = before if version is None else self.versions.named(row["workflow_id"], version)
        for each in (*([step] if step else []), *skip):
            if each not in blueprint.root.steps:
                raise unknown_step(row["workflow_id"], each, blueprint.root.steps)
        if restart is RestartFrom.INCOMPLETE and row["status"] == RunStatus.SUCCEEDED.value:
            raise UserError(
                f"{name} has succeeded: nothing is left to run.",
                hint=f"To run it again: dalsegno restart {name} --from beginning",
            )
        if step is not None:
            # One that is new is reached if a step before it was.
            is_new = step not in before.root.steps
            self._refuse_unreached(row, step, blueprint.root.before[step] if is_new else [step])
        given = given_params(blueprint, params or {}, self.settings, ParamSource.RESTART)
        changed = restarted_with(self.scopes, (before, blueprint), row, given, self.clock())
        skipped = {each: tuple(blueprint.root.steps[each].successors) for each in skip}
        wish = Restarted(restart, step, skipped, is_version_named=version is not None)
        self.ledger.restart(row["id"], wish, self.clock(), {name: changed[name] for name in RESTARTED})
        self.deliver()
        return self.run(row["id"])

    def _refuse_unreached(self, row: Mapping[str, Any], step: str, reached_by: Sequence[str]) -> None:
        """A run cannot begin with a step that waits for others: nothing would ever start it."""
        name = f"{row['workflow_id']}/{row['number']}"
        with self.store.database.reading() as connection:
            rows = [run_queries.step_row(connection, row["id"], each) for each in reached_by]
        is_new = step not in reached_by
        reached = [
            each
            for each in rows
            if each is not None
            and each["status"] != StepStatus.NOT_CREATED.value
            and (not is_new or StepStatus(each["status"]).is_complete)
        ]
        if reached_by and not reached:
            raise UserError(
                f"{name} has not reached step {step!r}, so it cannot be restarted there.",
                hint=f"Restart what did not complete: dalsegno restart {name}. See its steps: dalsegno show {name}",
            )

    def _happen(self, row: Mapping[str, Any], flow_id: str, happening: Happening, step: str) -> None:
        with self.store.database.reading() as connection:
            found = run_queries.step_row(connection, flow_id, step)
        if found is None:
            raise self._not_reached(row, step, flow_id.removeprefix(row["id"]).strip("/"))
        if not StepStatus(found["status"]).is_open:
            raise UserError(
                f"Step {step!r} of {row['workflow_id']}/{row['number']} is {found['status']}.",
                hint=f"See its steps: dalsegno show {row['workflow_id']}/{row['number']}",
            )
        self.ledger.record([Report(row["id"], flow_id, happening)], self.clock())
        self.deliver()

    def _open_row(self, reference: str) -> Mapping[str, Any]:
        row = self._row(reference)
        if RunStatus(row["status"]).is_final:
            raise UserError(
                f"{row['workflow_id']}/{row['number']} has ended: it is {row['status']}.",
                hint=f"To run it again: dalsegno restart {row['workflow_id']}/{row['number']}",
            )
        return row

    # Holding steps up.

    def breakpoints(self, workflow_id: str) -> list[str]:
        self.versions.row(workflow_id)
        with self.store.database.reading() as connection:
            return sorted(workflows.breakpoints_of(connection, workflow_id))

    def set_breakpoint(self, workflow_id: str, step: str) -> None:
        """Let every run of a workflow halt before a step."""
        known = self.versions.named(workflow_id, "latest").steps
        if step not in known:
            raise unknown_step(workflow_id, step, known)
        with self.store.database.writing() as connection:
            workflows.set_breakpoint(connection, workflow_id, step)
            runs.touch_open_runs(connection, workflow_id)

    def clear_breakpoint(self, workflow_id: str, step: str) -> None:
        with self.store.database.writing() as connection:
            if not workflows.clear_breakpoint(connection, workflow_id, step):
                raise UnknownName(
                    f"{workflow_id} has no breakpoint before {step!r}.",
                    hint=f"See those there are: dalsegno breakpoints list {workflow_id}",
                )
            runs.touch_open_runs(connection, workflow_id)

    def limits(self) -> list[tuple[str, int, int]]:
        """(tag, how many steps at most, how many now)."""
        with self.store.database.reading() as connection:
            return queue.all_limits(connection)

    def set_limit(self, tag: str, most: int | None) -> None:
        with self.store.database.writing() as connection:
            queue.set_limit(connection, tag, most)

    # Working.

    def finish(self, run_id: str) -> RunView:
        """Run what a run still needs to come to its end, in this process."""
        self.engine([self._row(run_id)["root_run"]]).run_until_ended(run_id)
        return self.run(run_id)

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

    def work(self) -> None:
        """Run whatever is open, until nothing is."""

        def is_over() -> bool:
            with self.store.database.reading() as connection:
                return not runs.run_rows(connection, run_tables.runs.c.status.in_(runs.OPEN), limit=1)

        self.engine().run(is_over)


def _check_full_refresh(blueprint: Blueprint, asked: FullRefresh) -> None:
    workflow_id = blueprint.workflow.id
    for step in sorted(asked.trust):
        if step not in blueprint.steps and not blueprint.calls_others:
            raise unknown_step(workflow_id, step, blueprint.steps)
    if not blueprint.captures and not blueprint.calls_others:
        raise UserError(
            f"{workflow_id} captures nothing, so there is nothing to refresh.",
            hint=f"Run it: dalsegno run {workflow_id}",
        )
