"""The captures that a step comes after: what it writes says so, and is not written again when it is tried again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dalsegno.engine.blueprints import Blueprint
from dalsegno.model.captures import Capture
from dalsegno.plan.restarts import ancestors
from dalsegno.store import Store, captures, flows, runs


@dataclass(frozen=True)
class Processed:
    """What a step processes."""

    #: By id.
    captures: tuple[Capture, ...] = ()
    #: Whether another run has begun to process one of them.
    is_resumed: bool = False
    #: Which step it is, the same in every run: loops with their iterations, and the steps that run subworkflows.
    place: str = ""


NOTHING = Processed()


def processed_by(
    store: Store,
    blueprint_of: Callable[[str, str], Blueprint],
    run: Mapping[str, Any],
    blueprint: Blueprint,
    flow_id: str,
    step_id: str,
) -> Processed:
    """The captures before a step: in its flow, in those around it, and in the runs that this one belongs to."""
    if not blueprint.captures and not run["parent_run"]:
        return NOTHING
    found: dict[str, bool] = {}
    place = _place(run, flow_id, step_id)
    with store.database.reading() as connection:
        while True:
            loop = blueprint.loop_of.get(step_id)
            before = ancestors(blueprint.graph(loop), step_id) & blueprint.captures if blueprint.captures else set()
            for each in sorted(before):
                params = (flows.step_row(connection, flow_id, each) or {}).get("params") or {}
                if params.get("capture_id", {}).get("value"):
                    found[params["capture_id"]["value"]] = bool(params.get("is_resumed", {}).get("value"))
            if loop is not None:
                above = flows.flow_row(connection, flow_id)
                flow_id, step_id = above["parent_flow"] if above else run["id"], loop
                continue
            parent = runs.run_row(connection, run["parent_run"]) if run["parent_run"] else None
            if parent is None:
                known = captures.named(connection, found) if found else []
                return Processed(tuple(known), any(found.values()), place)
            flow_id, step_id = run["parent_flow"], run["parent_step"]
            run, blueprint = parent, blueprint_of(parent["workflow_id"], str(parent["version"]))
            place = f"{_place(run, flow_id, step_id)}/{place}"


def _place(run: Mapping[str, Any], flow_id: str, step_id: str) -> str:
    return f"{flow_id.removeprefix(run['id'])}/{step_id}".strip("/")
