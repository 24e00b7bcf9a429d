"""What one transaction leaves for another: about a run, or about a workflow's runs.

Whichever node takes a message first acts on it. During an upgrade that may be an older node, which does not know a kind
that a newer one sends: it leaves the message where it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dalsegno.model.runs import Ending


@dataclass(frozen=True)
class Admit:
    """Let runs of a workflow begin, or stop them, as its run strategy says."""

    workflow_id: str


@dataclass(frozen=True)
class ChildFinished:
    """The run of a subworkflow has ended: the step that called it goes on."""

    flow_id: str
    step_id: str


@dataclass(frozen=True)
class SignalsArrived:
    """Steps have all signals that they waited for: (flow, step)."""

    steps: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class EndChildren:
    """The runs that a step has called are to end."""

    flow_id: str
    step_id: str
    ending: Ending


@dataclass(frozen=True)
class RestartRun:
    """A run of a subworkflow begins again, as this attempt."""

    attempt: int
    changes: Mapping[str, Any]


@dataclass(frozen=True)
class EndRun:
    """A run is to end, because somebody says so."""

    ending: Ending
    by: str | None = None
    reason: str | None = None


Message = Admit | ChildFinished | SignalsArrived | EndChildren | RestartRun | EndRun


def written(message: Message) -> dict[str, Any]:
    """As it is stored."""
    match message:
        case Admit(workflow_id):
            return {"kind": "admit", "workflow": workflow_id}
        case ChildFinished(flow_id, step_id):
            return {"kind": "child_ended", "flow": flow_id, "step": step_id}
        case SignalsArrived(steps):
            return {"kind": "signals", "steps": [list(each) for each in steps]}
        case EndChildren(flow_id, step_id, ending):
            return {"kind": "end_child", "flow": flow_id, "step": step_id, "ending": ending.value}
        case RestartRun(attempt, changes):
            return {"kind": "restart", "attempt": attempt, "changes": dict(changes)}
        case EndRun(ending, by, reason):
            return {"kind": "end", "ending": ending.value, "by": by, "reason": reason}


def read(stored: Mapping[str, Any]) -> Message | None:  # noqa: PLR0911 - one return for each kind
    """None: of a kind that this version does not know."""
    try:
        match stored:
            case {"kind": "admit", "workflow": str(workflow_id)}:
                return Admit(workflow_id)
            case {"kind": "child_ended", "flow": str(flow_id), "step": str(step_id)}:
                return ChildFinished(flow_id, step_id)
            case {"kind": "signals", "steps": list(steps)}:
                return SignalsArrived(tuple((str(flow_id), str(step_id)) for flow_id, step_id in steps))
            case {"kind": "end_child", "flow": str(flow_id), "step": str(step_id), "ending": ending}:
                return EndChildren(flow_id, step_id, Ending(ending))
            case {"kind": "restart", "attempt": int(attempt), "changes": dict(changes)}:
                return RestartRun(attempt, changes)
            case {"kind": "end", "ending": ending}:
                return EndRun(Ending(ending), stored.get("by"), stored.get("reason"))
    except (ValueError, TypeError):
        # A word that a newer version uses.
        return None
    return None
