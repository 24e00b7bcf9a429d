"""The execution of a subworkflow: begin its run, or restart the one there was, and end as it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.given_names import refuse_handed
from dalsegno.engine.records import Report
from dalsegno.engine.scopes import handed_param
from dalsegno.engine.starting import child_run_id, evaluated, full_refresh_of, new_run, restarted_with
from dalsegno.engine.step_execution import StepExecution
from dalsegno.engine.version_changes import carried_over
from dalsegno.model.outcomes import Failed, FailureKind, Stopped, Succeeded
from dalsegno.model.params import Param
from dalsegno.model.runs import Restarted, RestartFrom, RunStatus
from dalsegno.model.workflow import SubworkflowStep
from dalsegno.spec.params.layers import handed_down
from dalsegno.spec.params.stored import to_stored
from dalsegno.store import flows, run_queries, runs, workflows


class SubworkflowExecution(StepExecution):
    step: SubworkflowStep

    def execute(self) -> Report:
        if self.memory.handle is not None:
            return self._finish_subworkflow(self.memory.handle["child"], self.memory.handle.get("run", 1))
        found = self.scope().evaluate()
        workflow_id = str(found.params["subworkflow_id"].value)
        version = str(found.params["subworkflow_version"].value) if "subworkflow_version" in found.params else "active"
        blueprint = self.context.host.versions.named(workflow_id, version)
        given = found.params if self.step.has_explicit_params else {**self._all_params(), **found.params}
        known = {**(self.run.definitions or {}), **self.scope().definitions}
        handed = {
            name: handed_param(definition, given[name], name, self.run.row["run_params"])
            for name, definition in handed_down(given, known).items()
            if name not in ("subworkflow_id", "subworkflow_version")
        }
        refuse_handed(blueprint, handed, self.context.jobs.settings)
        child = self._child_again(blueprint, handed) or self._new_child(blueprint, handed)
        stored = to_stored(found.params)
        handle = {"child": child["id"], "number": child["number"], "workflow": workflow_id, "run": child["attempt"]}
        if self.step.is_sync:
            return self.waits(handle, params=stored, child=child, deadline=self.deadline())
        held = {**handle, "attempt": self.state.attempt}
        return self.ended(Succeeded(), params=stored, handle=held, child=child)

    def _child_again(self, blueprint: Blueprint, handed: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The run that an earlier attempt began and that did not succeed, if what did not complete is run again."""
        restart = self.run.row["initiator"].get("restart") or {}
        if restart.get("from") != RestartFrom.INCOMPLETE.value:
            return None
        with self.context.store.database.reading() as connection:
            row = runs.last_child(connection, self.flow.id, self.step.id)
        if row is None or row["workflow_id"] != blueprint.workflow.id or row["status"] == RunStatus.SUCCEEDED.value:
            return None
        if not RunStatus(row["status"]).is_final:
            # Somebody has restarted it already.
            return row
        other = {name: given for name, given in handed.items() if row["run_params"].get(name) != given}
        old = self.context.host.versions.blueprint(row["workflow_id"], row["version"])
        # Whoever restarts a run as it was wants its subworkflows as they were.
        new = blueprint if "version" in restart else old
        if new.version != old.version:
            self._refuse_version(row, old, new)
        changed = restarted_with(self.context.scopes, (old, new), row, other, self.now)
        # Those that it calls follow it.
        below = {"version": new.version} if "version" in restart else {}
        return {**changed, "attempt": row["attempt"] + 1, "initiator": {**changed["initiator"], "restart": below}}

    def _refuse_version(self, row: Mapping[str, Any], old: Blueprint, new: Blueprint) -> None:
        """Raise here, where the step can fail, if the subworkflow cannot resume with the new version."""
        with self.context.store.database.reading() as connection:
            known = flows.flow_row(connection, row["id"])
            if known is not None:
                flow = flows.load_flow(connection, known, old.root, is_paused=False)
                carried_over(flow, Restarted(), old, new, f"{row['workflow_id']}/{row['number']}")

    def _new_child(self, blueprint: Blueprint, handed: Mapping[str, Any]) -> Mapping[str, Any]:
        with self.context.store.database.writing() as connection:
            number = workflows.next_run_number(connection, blueprint.workflow.id)
        initiator = {"type": "SUBWORKFLOW", "by": self.run.row["initiator"].get("by", ""), "of": self.run.id}
        if self.step.is_sync and (refresh := full_refresh_of(self.run.row)):
            initiator["full_refresh"] = refresh.as_json()
        row = new_run(
            blueprint,
            run_id=child_run_id(self.flow.id, self.step.id, self.state.attempt),
            number=number,
            run_params=handed,
            initiator=initiator,
            now=self.now,
            parent={
                "parent_run": self.run.id if self.step.is_sync else None,
                "parent_flow": self.flow.id if self.step.is_sync else None,
                "parent_step": self.step.id if self.step.is_sync else None,
                "root_run": self.run.row["root_run"],
            },
        )
        return evaluated(self.context.scopes, blueprint, row, self.now)

    def _all_params(self) -> dict[str, Param]:
        scope = self.context.scopes.around(self.run, self.flow, self.now)
        found: dict[str, Param] = {}
        levels = [scope]
        while levels[-1].outer is not None:
            levels.append(levels[-1].outer)
        for level in reversed(levels):
            found |= level.known
            # The values of secrets are not kept: they are not yet known here.
            found |= {name: level.own(name) for name, each in level.definitions.items() if each.secret is not None}
        return found

    def _finish_subworkflow(self, child_id: str, attempt: int) -> Report:
        with self.context.store.database.reading() as connection:
            row = run_queries.run_row(connection, child_id)
        if row is None:
            return self.ended(Failed(FailureKind.FATAL, f"The run {child_id} of the subworkflow is gone."))
        name = f"{row['workflow_id']}/{row['number']}"
        match RunStatus(row["status"]) if row["attempt"] >= attempt else None:
            case RunStatus.SUCCEEDED:
                return self.ended(Succeeded())
            case RunStatus.STOPPED:
                return self.ended(Stopped(f"The subworkflow {name} was stopped."))
            case RunStatus.TIMED_OUT:
                return self.ended(Failed(FailureKind.TIMEOUT, f"The subworkflow {name} took too long."))
            case RunStatus.FAILED:
                because = f": {row['reason']}" if row["reason"] else "."
                return self.ended(Failed(FailureKind.FATAL, f"The subworkflow {name} failed{because}"))
            case _:
                # Woken too early, or it has not begun again yet: wait on.
                return self.waits(self.memory.handle or {})
