"""What one transaction saves about runs: it is gathered while things happen, and written at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from dalsegno.engine.records import OpenRun, StepUpdate
from dalsegno.model.runs import Flow, StepState
from dalsegno.model.signals import Announcement
from dalsegno.store import flows, queue, runs, signals
from dalsegno.store.flows import UPDATED, StepChange

#: A step by its flow and its id.
StepKey = tuple[str, str]


@dataclass
class PendingWrites:
    """Written together by ``save``, each once, in one order of locks."""

    now: datetime
    node_id: str
    #: Each step as it is now, with what else is kept of it.
    steps: dict[StepKey, StepChange] = field(default_factory=dict)
    new_flows: list[dict[str, Any]] = field(default_factory=list)
    changed_flows: dict[str, Flow] = field(default_factory=dict)
    #: Columns of runs, by run.
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    taken_permits: list[dict[str, str]] = field(default_factory=list)
    released_permits: list[StepKey] = field(default_factory=list)
    #: Steps that wait for signals no longer.
    ended_waits: list[StepKey] = field(default_factory=list)
    announced: list[Announcement] = field(default_factory=list)

    def change_step(self, run: OpenRun, flow: Flow, state: StepState, update: StepUpdate) -> None:
        key = (flow.id, state.step_id)
        known = self.steps[key].update if key in self.steps else {}
        updated = {name: value for name in UPDATED if (value := getattr(update, name)) is not None}
        self.steps[key] = StepChange(flow.id, run.id, state, self.now, self.node_id, {**known, **updated})

    def change_run(self, run: OpenRun, **columns: Any) -> None:
        self.runs.setdefault(run.id, {}).update(columns)
        run.row = {**run.row, **columns}

    def add_event(
        self,
        run_id: str,
        kind: str,
        data: Mapping[str, Any],
        flow_id: str | None = None,
        state: StepState | None = None,
    ) -> None:
        self.events.append(
            {
                "run_id": run_id,
                "flow_id": flow_id,
                "step_id": state.step_id if state else None,
                "attempt": state.attempt if state else None,
                "kind": kind,
                "data": dict(data),
                "happened_at": self.now,
            }
        )

    def release_permits(self, connection: Connection) -> None:
        """Before the others, where steps of this very transaction may take them."""
        queue.release_permits(connection, self.released_permits)
        self.released_permits = []

    def save(self, connection: Connection, opened: Mapping[str, OpenRun]) -> None:
        if not (self.steps or self.new_flows or self.changed_flows or self.runs or self.events):
            return
        flows.add_flows(connection, self.new_flows)
        flows.save_steps(connection, list(self.steps.values()))
        flows.change_flows(connection, [_flow_values(flow, self.now) for flow in self.changed_flows.values()])
        self.release_permits(connection)
        queue.add_permits(connection, self.taken_permits)
        runs.add_events(connection, self.events)
        for run_id, values in sorted(self.runs.items()):
            runs.change_run(connection, run_id, **values)
        self._save_revisions(connection, opened)
        signals.forget_waits(connection, self.ended_waits, only_open=True)
        if self.announced:
            signals.announce(connection, self.announced, self.now)

    def _save_revisions(self, connection: Connection, opened: Mapping[str, OpenRun]) -> None:
        """Runs that were only looked at stay as they are known to others."""
        changed_ids = {
            *(change.run_id for change in self.steps.values()),
            *(flow.run_id for flow in self.changed_flows.values()),
            *(new["run_id"] for new in self.new_flows),
            *self.runs,
        }
        changed = [run for run_id, run in opened.items() if run_id in changed_ids]
        for run in changed:
            run.revision += 1
        runs.set_revisions(connection, {run.id: run.revision for run in changed})


def _flow_values(flow: Flow, now: datetime) -> dict[str, Any]:
    return {
        "key": flow.id,
        "status": flow.status.value,
        "ending": flow.ending.value if flow.ending else None,
        "ended_at": now if flow.status.is_final else None,
    }
