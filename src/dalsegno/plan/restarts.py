"""What is run again when a flow is restarted: the rest keeps its results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from dalsegno.model.runs import Ending, Flow, Graph, Restarted, RestartFrom, StepState, StepStatus, Tries


def repeated(flow: Flow, wish: Restarted) -> Iterator[StepState]:
    """The steps that are run again, or skipped, each as it is before the flow goes on."""
    again = to_repeat(flow, wish)
    for step_id in again:
        state = flow.steps[step_id]
        # What is before a loop may give it something else this time, such as new rows: then all of it is run again.
        is_kept = wish.restart is not RestartFrom.BEGINNING and not ancestors(flow.graph, step_id) & again
        if step_id in wish.skipped:
            # When its turn comes: what is before it may be run again.
            yield replace(fresh(state), ending=Ending.SKIP, taken=wish.skipped[step_id])
        elif is_kept and step_id in wish.failed_iterations and state.loop is not None:
            loop = replace(state.loop, open=0, worst=None, again=wish.failed_iterations[step_id])
            yield replace(fresh(state), loop=loop)
        else:
            yield fresh(state)
    for step_id in wish.skipped.keys() - flow.steps.keys():
        yield StepState(step_id, StepStatus.NOT_CREATED, ending=Ending.SKIP, taken=wish.skipped[step_id])


def to_repeat(flow: Flow, wish: Restarted) -> set[str]:
    """Of the steps that were reached, those that do not keep their results."""
    match wish.restart:
        case RestartFrom.BEGINNING:
            return set(flow.steps)
        case RestartFrom.INCOMPLETE:
            begin = {state.step_id for state in flow.steps.values() if not state.status.is_complete}
        case RestartFrom.STEP:
            begin = {wish.step_id} if wish.step_id is not None and wish.step_id in flow.graph.steps else set()
    return (begin | descendants(flow.graph, begin)) & set(flow.steps)


def wish_to_json(wish: Restarted, version: int) -> dict[str, Any]:
    """As a run keeps it until it begins again."""
    return {
        "from": wish.restart.value,
        "step": wish.step_id,
        "skipped": {step_id: list(taken) for step_id, taken in wish.skipped.items()},
        **({"version": version} if wish.is_version_named else {}),
    }


def wish_of_json(stored: Mapping[str, Any], failed_iterations: Mapping[str, tuple[int, ...]]) -> Restarted:
    return Restarted(
        RestartFrom(stored.get("from", RestartFrom.INCOMPLETE.value)),
        stored.get("step"),
        {step_id: tuple(taken) for step_id, taken in (stored.get("skipped") or {}).items()},
        failed_iterations,
        is_version_named="version" in stored,
    )


def fresh(state: StepState) -> StepState:
    """Attempts and fences are counted on, so that nothing of an old attempt is taken for the new one's."""
    return replace(
        state,
        status=StepStatus.NOT_CREATED,
        attempt=state.attempt + 1,
        tried=Tries(),
        ready_at=None,
        is_claimed=False,
        ending=None,
        taken=(),
        loop=None,
        failure=None,
    )


def descendants(graph: Graph, step_ids: Iterable[str]) -> set[str]:
    """All steps that come after these."""
    found: set[str] = set()
    waiting = list(step_ids)
    while waiting:
        new = [step_id for step_id in graph.steps[waiting.pop()].successors if step_id not in found]
        found.update(new)
        waiting += new
    return found


def ancestors(graph: Graph, step_id: str) -> set[str]:
    """All steps that come before this one."""
    found: set[str] = set()
    waiting = [step_id]
    while waiting:
        new = [before for before in graph.before[waiting.pop()] if before not in found]
        found.update(new)
        waiting += new
    return found
