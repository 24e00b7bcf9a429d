"""How runs are started, ended, paused and restarted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.records import Report
from dalsegno.engine.starting import RESTARTED, restarted_with
from dalsegno.errors import Conflict, UserError
from dalsegno.hints import Verb, action
from dalsegno.model.full_refresh import FullRefresh
from dalsegno.model.messages import EndRun
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
from dalsegno.operations.machinery import Machinery
from dalsegno.operations.run_params import given_params
from dalsegno.operations.run_reader import RunReader, unknown_step
from dalsegno.operations.run_views import RunView
from dalsegno.spec.names import fault_of_key
from dalsegno.store import audit_log, flows, nodes, run_queries, run_tables, runs

_HELD_UP = (StepStatus.PAUSED, StepStatus.WAITING_FOR_SIGNALS)
_RESTARTABLE = (RunStatus.FAILED, RunStatus.STOPPED, RunStatus.TIMED_OUT, RunStatus.SUCCEEDED)


class RunControl(RunReader):
    """The verbs of runs, done with the machinery."""

    def __init__(self, machinery: Machinery) -> None:
        super().__init__(machinery.settings, machinery.store.database)
        self.machinery = machinery
        self.store = machinery.store
        self.ledger = machinery.ledger
        self.clock = machinery.clock

    def start(
        self,
        workflow_id: str,
        params: Mapping[str, Any],
        version: str,
        idempotency_key: str | None,
        full_refresh: FullRefresh | None,
    ) -> RunView:
        if idempotency_key is not None and (fault := fault_of_key(idempotency_key)):
            raise UserError(f"The idempotency key {idempotency_key[:80]!r} cannot be used: {fault}.")
        blueprint = self.machinery.versions.named(workflow_id, version)
        given = given_params(blueprint, params, self.settings)
        started_by: dict[str, Any] = {"type": "MANUAL", "by": self.machinery.caller.name}
        if full_refresh is not None:
            _check_full_refresh(blueprint, full_refresh)
            started_by["full_refresh"] = full_refresh.as_json()
        return self.machinery.start(blueprint, given, started_by, idempotency_key)

    def is_attended(self) -> bool:
        """Whether some process is at work on the store's runs."""
        node = self.machinery.node
        with self.store.database.reading() as connection:
            rows = nodes.node_rows(connection)
        return any(not node.is_dead_here(row) for row in rows if row["id"] != node.id)

    # Ending.

    def end(
        self, reference: str, ending: str, *, step: str | None = None, iteration: str = "", reason: str | None = None
    ) -> RunView:
        """Stop, kill or skip: a step, or the whole run."""
        row, wanted = self._open_row(reference), Ending(ending)
        if step is None:
            with self.store.database.writing() as connection:
                audit_log.describe("run", _name(row), {"status": row["status"]}, {"ending": wanted.value})
                message = EndRun(wanted, self.machinery.caller.name, reason or None)
                runs.send(connection, row["id"], message, self.clock())
            self.machinery.deliver()
        else:
            flow_id = f"{row['id']}/{iteration}" if iteration else row["id"]
            happening = EndWanted(wanted, step, self._all_successors(row, step))
            self._happen(row, flow_id, happening, step, {"ending": wanted.value})
        return self.run(row["id"])

    def _all_successors(self, row: Mapping[str, Any], step: str) -> tuple[str, ...]:
        """Where a skipped step leads: its conditions may need what only a run of it would have told."""
        return tuple(self._blueprint_with(row, step).steps[step].successors)

    def _blueprint_with(self, row: Mapping[str, Any], step: str) -> Blueprint:
        """The version that a run has, which must have the step."""
        blueprint = self.machinery.versions.blueprint(row["workflow_id"], row["version"])
        if step not in blueprint.steps:
            raise unknown_step(row["workflow_id"], step, blueprint.steps)
        return blueprint

    def pause(self, reference: str, *, is_paused: bool) -> RunView:
        row = self._open_row(reference)
        happening: Happening = Paused() if is_paused else Resumed()
        with self.store.database.writing() as connection:
            if row["is_paused"] != is_paused:
                audit_log.describe("run", _name(row), {"is_paused": row["is_paused"]}, {"is_paused": is_paused})
            runs.touch(connection, row["id"], is_paused=is_paused)
            table = run_tables.flows
            open_flows = flows.flow_rows(connection, table.c.run_id == row["id"], table.c.status.in_(runs.OPEN))
        self.ledger.forget(row["id"])
        self.ledger.record([Report(row["id"], flow["id"], happening) for flow in open_flows], self.clock())
        return self.run(row["id"])

    def resume_step(self, reference: str, step: str, iteration: str) -> RunView:
        """Let a step at a breakpoint go on."""
        row = self._open_row(reference)
        flow_id = f"{row['id']}/{iteration}" if iteration else row["id"]
        self._happen(row, flow_id, Resumed(step), step, {"is_paused": False})
        return self.run(row["id"])

    def restart(
        self,
        reference: str,
        *,
        restart: RestartFrom | None,
        step: str | None,
        params: Mapping[str, Any],
        skip: Sequence[str],
        version: str | None,
    ) -> RunView:
        restart = restart or RestartFrom.INCOMPLETE
        row = self._row(reference)
        name = f"{row['workflow_id']}/{row['number']}"
        if RunStatus(row["status"]) not in _RESTARTABLE:
            raise Conflict(
                f"{name} is {row['status']}; only a run that has ended can be restarted.",
                actions=[action("End it first", Verb.STOP, run=name)],
            )
        before = self.machinery.versions.blueprint(row["workflow_id"], row["version"])
        blueprint = before if version is None else self.machinery.versions.named(row["workflow_id"], version)
        for each in (*([step] if step else []), *skip):
            if each not in blueprint.root.steps:
                raise unknown_step(row["workflow_id"], each, blueprint.root.steps)
        if restart is RestartFrom.INCOMPLETE and row["status"] == RunStatus.SUCCEEDED.value:
            raise Conflict(
                f"{name} has succeeded: nothing is left to run.",
                actions=[action("To run it again", Verb.RESTART, run=name, from_="beginning")],
            )
        if step is not None:
            # One that is new is reached if a step before it was.
            is_new = step not in before.root.steps
            self._refuse_unreached(row, step, blueprint.root.before[step] if is_new else [step])
        given = given_params(blueprint, params, self.settings, ParamSource.RESTART)
        changed = restarted_with(self.machinery.scopes, (before, blueprint), row, given, self.clock())
        skipped = {each: tuple(blueprint.root.steps[each].successors) for each in skip}
        wish = Restarted(restart, step, skipped, is_version_named=version is not None)
        asked = {"from": restart.value, "step": step, "version": blueprint.version, "params": sorted(given)}
        audit_log.describe("run", name, {"status": row["status"], "version": row["version"]}, asked)
        self.ledger.restart(row["id"], wish, self.clock(), {name: changed[name] for name in RESTARTED})
        self.machinery.deliver()
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
            raise Conflict(
                f"{name} has not reached step {step!r}, so it cannot be restarted there.",
                actions=[
                    action("Restart what did not complete", Verb.RESTART, run=name),
                    action("See its steps", Verb.SHOW, run=name),
                ],
            )

    def _happen(
        self, row: Mapping[str, Any], flow_id: str, happening: Happening, step: str, after: Mapping[str, Any]
    ) -> None:
        with self.store.database.reading() as connection:
            found = run_queries.step_row(connection, flow_id, step)
        if found is None:
            raise self._not_reached(row, step, flow_id.removeprefix(row["id"]).strip("/"))
        if not StepStatus(found["status"]).is_open:
            raise Conflict(
                f"Step {step!r} of {row['workflow_id']}/{row['number']} is {found['status']}.",
                actions=[action("See its steps", Verb.SHOW, run=_name(row))],
            )
        # Only a step that is held up can be resumed; others go on as before.
        if not isinstance(happening, Resumed) or StepStatus(found["status"]) in _HELD_UP:
            path = flow_id.removeprefix(row["id"])
            audit_log.describe("step", f"{_name(row)}{path} {step}", {"status": found["status"]}, after)
        self.ledger.record([Report(row["id"], flow_id, happening)], self.clock())
        self.machinery.deliver()

    def _open_row(self, reference: str) -> Mapping[str, Any]:
        row = self._row(reference)
        if RunStatus(row["status"]).is_final:
            raise Conflict(
                f"{row['workflow_id']}/{row['number']} has ended: it is {row['status']}.",
                actions=[action("To run it again", Verb.RESTART, run=_name(row))],
            )
        return row

    # Working.

    def finish(self, reference: str) -> RunView:
        row = self._row(reference)
        self.machinery.engine([row["root_run"]]).run_until_ended(row["id"])
        return self.run(row["id"])

    def work(self) -> None:
        def is_over() -> bool:
            with self.store.database.reading() as connection:
                return not runs.run_rows(connection, run_tables.runs.c.status.in_(runs.OPEN), limit=1)

        self.machinery.engine().run(is_over)


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['workflow_id']}/{row['number']}"


def _check_full_refresh(blueprint: Blueprint, asked: FullRefresh) -> None:
    workflow_id = blueprint.workflow.id
    for step in sorted(asked.trust):
        if step not in blueprint.steps and not blueprint.calls_others:
            raise unknown_step(workflow_id, step, blueprint.steps)
    if not blueprint.captures | blueprint.declared and not blueprint.calls_others:
        raise UserError(
            f"{workflow_id} captures nothing, so there is nothing to refresh.",
            actions=[action("Run it", Verb.RUN, workflow=workflow_id)],
        )
