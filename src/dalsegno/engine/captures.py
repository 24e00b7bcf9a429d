"""The captures that a step consumes: those before it that no step has committed yet.

What the step writes says so, and its work is found again by them (``work_log``). A run must hold a capture to write
behind it, and a capture has one holder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.ports import Versions
from dalsegno.engine.scopes import run_definitions
from dalsegno.errors import PlatformError, UserError
from dalsegno.hints import Verb, action
from dalsegno.model.captures import Capture, CaptureState, actor_of_run
from dalsegno.model.params import ParamDefinitions, ParamSource
from dalsegno.model.runs import StepStatus
from dalsegno.model.work_units import UnitKey
from dalsegno.model.workflow import SubworkflowStep
from dalsegno.plan.restarts import ancestors
from dalsegno.spec.captures import is_commit
from dalsegno.store import Store, capture_queries, captures, flows, run_queries
from dalsegno.store.settling import is_of, is_open

#: How a run was started of which a person chose the parameters.
_MANUAL = "MANUAL"


@dataclass(frozen=True)
class Level:
    """A run on the way from the step up to the run that nobody called."""

    run: Mapping[str, Any]
    blueprint: Blueprint
    #: The step, or the one that called the run below.
    step_id: str

    @property
    def definitions(self) -> Iterator[ParamDefinitions]:
        """What is written where the step's parameters come from: its own, then those of the run."""
        yield self.blueprint.steps[self.step_id].params
        by_hand = self.run["initiator"]["type"] == _MANUAL
        # What a trigger gives is another value in every run, like the time.
        given = {
            name: each
            for name, each in self.run["run_params"].items()
            if by_hand or each.get("source", ParamSource.LAUNCH.value) != ParamSource.LAUNCH.value
        }
        yield run_definitions(self.blueprint.workflow.params, given)


@dataclass(frozen=True)
class Consumed:
    """What a step consumes, and on whose behalf."""

    #: By id.
    captures: tuple[Capture, ...] = ()
    #: Which step it is, the same in every run: loops with their iterations, and the steps that run subworkflows.
    place: str = ""
    #: What callers and loops gave it.
    inputs: tuple[Any, ...] = ()
    levels: tuple[Level, ...] = ()
    #: By capture, the run that captured it, as captures name it.
    captured_by: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> UnitKey:
        called = self.levels[0]
        ids = tuple(capture.id for capture in self.captures)
        inputs = json.dumps(self.inputs, sort_keys=True, default=str)
        return UnitKey(ids, called.run["workflow_id"], called.step_id, inputs)

    @property
    def root_run(self) -> str:
        return str(self.levels[-1].run["root_run"])


NOTHING = Consumed()


def consumed_by(
    store: Store,
    versions: Versions,
    run: Mapping[str, Any],
    blueprint: Blueprint,
    flow_id: str,
    step_id: str,
    own: Capture | None = None,
) -> Consumed:
    """The captures before a step: in its flow, in those around it, and in the runs that this one belongs to.

    ``own``: the one that the step has made itself; then it is the only one.
    """
    if own is None and not blueprint.captures and not run["parent_run"]:
        return NOTHING
    found: dict[str, str] = {} if own is None else {own.id: actor_of_run(run["workflow_id"], run["number"])}
    committed: set[str] = set()
    inputs: list[Any] = []
    levels = [Level(run, blueprint, step_id)]
    place = _place(run, flow_id, step_id)
    with store.database.reading() as connection:
        while True:
            loop = blueprint.loop_of.get(step_id)
            actor = actor_of_run(run["workflow_id"], run["number"])
            for row in _before(connection, blueprint, flow_id, step_id, loop) if own is None else ():
                capture_id = ((row["params"] or {}).get("capture_id") or {}).get("value")
                if capture_id and is_commit(blueprint.steps[row["step_id"]]):
                    committed.add(capture_id)
                elif capture_id:
                    found[capture_id] = actor
            if loop is not None:
                above = flows.flow_row(connection, flow_id)
                if above is not None:
                    inputs.append([above["iteration"], _values(above["params"] or {})])
                flow_id, step_id = above["parent_flow"] if above else run["id"], loop
                continue
            parent = run_queries.run_row(connection, run["parent_run"]) if run["parent_run"] else None
            if parent is None:
                ids = found.keys() - committed
                known = capture_queries.named(connection, ids) if ids else []
                return Consumed(tuple(known), place, tuple(inputs), tuple(levels), found) if known else NOTHING
            called, flow_id, step_id = run, run["parent_flow"], run["parent_step"]
            run, blueprint = parent, versions.blueprint(parent["workflow_id"], parent["version"])
            inputs.append(_values(_given(called, blueprint, step_id)))
            levels.append(Level(run, blueprint, step_id))
            place = f"{_place(run, flow_id, step_id)}/{place}"


def hold(connection: Connection, consumed: Consumed) -> None:
    """Make the captures this run's; refuse if one is settled, or another run that has not ended holds it."""
    for capture in capture_queries.named(connection, [each.id for each in consumed.captures]):
        if not capture.state.is_pending:
            raise _settled(capture, consumed)
        holder = capture.created_by
        if holder == consumed.captured_by[capture.id] or is_of(connection, holder, consumed.root_run):
            continue
        if is_open(connection, holder):
            raise PlatformError(
                f"Capture {capture.id} is held by {holder}, which has not ended.",
                actions=[action("It is free when that run has ended", Verb.SHOW, run=holder.removeprefix("run "))],
            )
        captures.hand_over(connection, capture.id, holder, consumed.captured_by[capture.id])


def refuse_settled(connection: Connection, consumed: Consumed) -> None:
    """Raise if a capture that was this run's is no longer pending, or no longer this run's."""
    for capture in capture_queries.named(connection, [each.id for each in consumed.captures]):
        if not capture.state.is_pending:
            raise _settled(capture, consumed)
        if capture.created_by != consumed.captured_by[capture.id]:
            raise PlatformError(f"Capture {capture.id} was handed over to {capture.created_by} in between.")


def is_held(consumed: Consumed) -> bool:
    """Whether nothing has to be asked or changed: all captures are pending, and this run's."""
    return all(each.state.is_pending and each.created_by == consumed.captured_by[each.id] for each in consumed.captures)


def _settled(capture: Capture, consumed: Consumed) -> UserError:
    run = consumed.levels[-1].run
    step_id = consumed.levels[0].step_id
    if capture.state is CaptureState.ABANDONED:
        what = f"was abandoned by {capture.settled_by}"
    else:
        what = f"was committed by {capture.settled_by}: its rows count as processed"
    return UserError(
        f"Step {step_id!r} may not write behind capture {capture.id}: it {what}.",
        hint="A step that reads results may come after the step that commits.",
        actions=[
            action("Capture what is new", Verb.RESTART, run=f"{run['workflow_id']}/{run['number']}", from_="beginning")
        ],
    )


def _before(
    connection: Connection, blueprint: Blueprint, flow_id: str, step_id: str, loop: str | None
) -> Iterator[Mapping[str, Any]]:
    """The captures and commits before a step in its flow, as far as they have succeeded."""
    if not blueprint.captures:
        return
    wanted = {each for each in ancestors(blueprint.graph(loop), step_id) if each in blueprint.captures_and_commits}
    for each in sorted(wanted):
        row = run_queries.step_row(connection, flow_id, each)
        if row is not None and (each in blueprint.captures or row["status"] == StepStatus.SUCCEEDED.value):
            yield row


def _given(run: Mapping[str, Any], caller: Blueprint, step_id: str) -> dict[str, Any]:
    """What the step that called a run says of its parameters; what is only handed down is not meant."""
    step = caller.steps[step_id]
    if not isinstance(step, SubworkflowStep):
        return {}
    return {name: given for name, given in run["run_params"].items() if name in step.params}


def _values(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each.get("value", each.get("secret")) for name, each in stored.items()}


def _place(run: Mapping[str, Any], flow_id: str, step_id: str) -> str:
    return f"{flow_id.removeprefix(run['id'])}/{step_id}".strip("/")
