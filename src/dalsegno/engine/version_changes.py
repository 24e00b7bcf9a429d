"""A run that is restarted with another version of its workflow."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.records import OpenRun, StepUpdate
from dalsegno.errors import UserError
from dalsegno.hints import Verb, action
from dalsegno.model.runs import Flow, Restarted
from dalsegno.model.work_units import WorkUnit
from dalsegno.plan.version_changes import CarriedOver, carry_over
from dalsegno.store import flows, run_queries, work_units

if TYPE_CHECKING:
    from dalsegno.engine.run_transaction import RunTransaction


def change_version(transaction: RunTransaction, run: OpenRun, wish: Restarted, version: int) -> None:
    """Let a run that has ended resume with another version; raise ``UserError`` if that is not exact."""
    new = transaction.versions.blueprint(run.workflow_id, version)
    # A run that ended before it began has no flow, and nothing to carry over.
    if flows.flow_row(transaction.connection, run.id) is not None:
        flow = transaction.flow(run, run.id)
        carried = carried_over(flow, wish, run.blueprint, new, f"{run.workflow_id}/{run.row['number']}")
        for state in carried.changed:
            transaction.change_step(run, flow, state, StepUpdate())
        _disown(transaction.connection, run, carried.resumed)
    run.blueprint, run.definitions = new, None
    for known in (run.flows, run.iterations, run.loops):
        known.clear()


def carried_over(flow: Flow, wish: Restarted, old: Blueprint, new: Blueprint, name: str) -> CarriedOver:
    """As ``carry_over``, and an error says what to type next."""
    try:
        return carry_over(flow, wish, new.root, old.captures_and_commits | new.captures_and_commits)
    except UserError as error:
        raise UserError(
            f"{name} cannot resume with version {new.version}. {error.message}",
            actions=[
                action(
                    "Run all of it with that version",
                    Verb.RESTART,
                    run=name,
                    version=str(new.version),
                    from_="beginning",
                ),
                action(f"Or resume with version {old.version}", Verb.RESTART, run=name),
            ],
        ) from None


def _disown(connection: Connection, run: OpenRun, resumed: Set[str]) -> None:
    """Count work behind captures as another run's, unless its step resumes it.

    So the new version is checked as a new run would be: work of a step that it does not have, or that has another
    place there, is neither left behind nor done twice.
    """
    root_run = str(run.row["root_run"])
    for unit in work_units.behind_pending(connection):
        if (
            root_run in unit.visited
            and _is_below(connection, unit, run)
            and _step_of(connection, unit, run) not in resumed
        ):
            work_units.change(connection, unit.id, visited=sorted(unit.visited - {root_run}))


def _is_below(connection: Connection, unit: WorkUnit, run: OpenRun) -> bool:
    """Whether a unit belongs to this run, or to one that it called; of a root run, all that it has visited do."""
    return run.id == run.row["root_run"] or _step_of(connection, unit, run) is not None


def _step_of(connection: Connection, unit: WorkUnit, run: OpenRun) -> str | None:
    """The step of the run, outside of all loops, that the work was done below; None: of another run."""
    flow_id, _, rest = unit.owner.partition(" ")
    step_id = rest.rpartition(" ")[0]
    while True:
        run_id, _, path = flow_id.partition("/")
        if run_id == run.id:
            return path.partition("/")[0] if path else step_id
        row = run_queries.run_row(connection, run_id)
        if row is None or row["parent_flow"] is None:
            return None
        flow_id, step_id = row["parent_flow"], row["parent_step"]
