"""Claims: which of the steps that are ready this process runs now."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dalsegno.engine.permits import permit_names
from dalsegno.engine.records import Claim, Facts, OpenRun
from dalsegno.model.runs import Claimed, Flow, StepState
from dalsegno.plan.advance import StaleReport
from dalsegno.store import queue

if TYPE_CHECKING:
    from dalsegno.engine.entry import Entry


def claim_ready(entry: Entry, capacity: int) -> None:
    """Claim those that are ready now, as far as there is room and permits are left."""
    asked, entry.ready = deque(dict.fromkeys(entry.ready)), []
    while asked and len(entry.claims) < capacity:
        _claim(entry, _still_due(entry, asked, capacity - len(entry.claims)))
    # What there is no room for is not even looked at.
    entry.has_backlog = entry.has_backlog or bool(asked)


def _still_due(entry: Entry, asked: deque[tuple[str, str, str]], most: int) -> list[tuple[OpenRun, Flow, StepState]]:
    """Take so many that are ready from those that were, a moment ago."""
    due: list[tuple[OpenRun, Flow, StepState]] = []
    while asked and len(due) < most:
        run_id, flow_id, step_id = asked.popleft()
        try:
            run = entry.open(run_id)
            flow = entry.flow(run, flow_id)
        except StaleReport:
            continue
        state = flow.steps.get(step_id)
        is_ours = entry.roots is None or run.row["root_run"] in entry.roots
        if is_ours and state is not None and state.ready_at is not None and state.ready_at <= entry.now:
            due.append((run, flow, state))
    return due


def _claim(entry: Entry, due: Sequence[tuple[OpenRun, Flow, StepState]]) -> None:
    names = {(flow.id, state.step_id): permit_names(run.blueprint, run.id, state) for run, flow, state in due}
    free = _free_permits(entry, {name: most for found in names.values() for name, most in found.items()})
    for run, flow, state in due:
        wanted = names[flow.id, state.step_id]
        if any(free[name] < 1 for name in wanted):
            # It stays ready, and is looked at again when a permit is given back, or after a while.
            continue
        for name in wanted:
            free[name] -= 1
            entry.permits.append({"name": name, "flow_id": flow.id, "step_id": state.step_id})
        entry.happen(run, flow, Claimed(state.step_id), Facts())
        entry.claims.append(Claim(run, flow, flow.steps[state.step_id], flow.graph.steps[state.step_id]))


def _free_permits(entry: Entry, limits: Mapping[str, int | None]) -> dict[str, int]:
    """How many of each are left; a tag has a limit only if somebody set one."""
    if not limits:
        return {}
    # What ended in this transaction has made room already.
    queue.release_permits(entry.connection, entry.released)
    entry.released = []
    tags = [name.removeprefix("tag ") for name, most in limits.items() if most is None]
    set_limits = {f"tag {tag}": most for tag, most in queue.limits_of(entry.connection, tags).items()}
    known = {name: most for name, most in limits.items() if most is not None} | set_limits
    held = queue.held(entry.connection, known)
    # What was claimed in this transaction is not stored yet.
    taken = Counter(permit["name"] for permit in entry.permits)
    free = {name: most - held[name] - taken[name] for name, most in known.items()}
    return {name: free.get(name, 1 << 30) for name in limits}
