"""Workflows in a few words, and a store to run them in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from dalsegno.model.runs import RunStatus
from dalsegno.operations.facade import Operations
from dalsegno.operations.run_views import RunView, StepView
from dalsegno.settings import ChannelSettings, load
from dalsegno.store import Store
from tests.callers import admin

Json = dict[str, Any]
#: That workflows of tests may send alerts to.
CHANNELS = ("ops", "more", "mail")


def noop(step_id: str, *then: str, **fields: Any) -> Json:
    return step(step_id, "NoOp", *then, **fields)


def step(step_id: str, kind: str, *then: str, **fields: Any) -> Json:
    """A step; ``then`` names what follows, with a condition behind a colon if there is one."""
    return {"step": {"id": step_id, "type": kind, **_common(then, fields)}}


def shell(step_id: str, script: str, *then: str, **fields: Any) -> Json:
    params = fields.pop("params", {})
    block = {"shell": {"type": "MAP", "value": {"script": {"type": "STRING", "value": script}}}}
    return step(step_id, "Shell", *then, params={**block, **params}, **fields)


def foreach(step_id: str, values: list[Any], steps: list[Json], *then: str, **fields: Any) -> Json:
    loop = {"i": {"type": "LONG_ARRAY", "value": values}}
    params = {"loop_params": {"type": "MAP", "value": loop}, **fields.pop("params", {})}
    return {"foreach": {"id": step_id, "steps": steps, "params": params, **_common(then, fields)}}


def loop_while(step_id: str, condition: str, first: Json, steps: list[Json], *then: str, **fields: Any) -> Json:
    params = {"loop_params": {"type": "MAP", "value": first}}
    return {"while": {"id": step_id, "condition": condition, "steps": steps, "params": params, **_common(then, fields)}}


def subworkflow(step_id: str, workflow_id: str, *then: str, **fields: Any) -> Json:
    params = {"subworkflow_id": {"type": "STRING", "value": workflow_id}, **fields.pop("params", {})}
    return {"subworkflow": {"id": step_id, "params": params, **_common(then, fields)}}


def _common(then: tuple[str, ...], fields: Mapping[str, Any]) -> Json:
    successors = {}
    for each in then:
        follower, _, condition = each.partition(":")
        successors[follower] = condition or "true"
    return {"transition": {"successors": successors}, **fields}


def long(value: int) -> Json:
    return {"type": "LONG", "value": value}


def expression(text: str, kind: str = "LONG") -> Json:
    return {"type": kind, "expression": text}


@dataclass
class Place:
    """A store, and the folder that jobs work in."""

    folder: Path
    operations: Operations

    @classmethod
    def at(cls, folder: Path, url: str | None = None) -> Place:
        channels = {name: ChannelSettings(name, url="http://localhost/hook") for name in CHANNELS}
        settings = replace(load(working_folder=folder, environment={}, store=url), notifications=channels)
        return cls(folder, Operations(Store.open(settings.store), settings, admin()))

    def use_clock(self, clock: Callable[[], datetime]) -> None:
        before = self.operations
        self.operations = Operations(before.store, before.settings, before.caller, clock=clock)

    def push(self, workflow_id: str, *steps: Json, properties: Json | None = None, **fields: Any) -> None:
        definition = {
            "properties": {"owner": "ada", **(properties or {})},
            "workflow": {"id": workflow_id, "steps": list(steps), **fields},
        }
        self.operations.workflows.push(json.dumps(definition))

    def start(self, workflow_id: str, **params: Any) -> RunView:
        return self.operations.runs.start(workflow_id, params)

    def run(self, workflow_id: str, **params: Any) -> RunView:
        """Start, and run to the end."""
        return self.finish(self.start(workflow_id, **params))

    def finish(self, run: RunView) -> RunView:
        return self.operations.runs.finish(run.id)

    def do(self, *steps: Json, properties: Json | None = None, **fields: Any) -> RunView:
        """Push a workflow and run it."""
        self.push("w", *steps, properties=properties, **fields)
        return self.run("w")

    def steps(self, run: RunView | str = "w") -> dict[str, StepView]:
        return {found.id: found for found in self.operations.runs.steps(run if isinstance(run, str) else run.id)}

    def statuses(self, run: RunView | str = "w") -> dict[str, str]:
        return {step_id: found.status.value for step_id, found in self.steps(run).items()}

    def lines(self, name: str = "out") -> list[str]:
        """What jobs have written."""
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []


SUCCEEDED, FAILED, STOPPED, TIMED_OUT = (
    RunStatus.SUCCEEDED,
    RunStatus.FAILED,
    RunStatus.STOPPED,
    RunStatus.TIMED_OUT,
)
