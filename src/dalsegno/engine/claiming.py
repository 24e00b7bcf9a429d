"""Claims: which of the steps that are ready this process runs now."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from dalsegno.engine.permits import permit_names
from dalsegno.engine.records import Claim, OpenRun, Report, StepUpdate
from dalsegno.model.runs import Claimed, Flow, StepState, TakenOver
from dalsegno.plan.advance import StaleReport
from dalsegno.plan.claims import free_permits, is_due, within_limits
from dalsegno.store import nodes, queue

if TYPE_CHECKING:
    from dalsegno.engine.run_transaction import RunTransaction

#: When to look again at what somebody else is just changing.
_BUSY = timedelta(milliseconds=50)


def claim_what_follows(transaction: RunTransaction, capacity: int) -> None:
    """Claim those that this transaction made ready; what there is no room for is left to others, too."""
    has_released = bool(transaction.writes.released_permits)
    claim_ready(transaction, capacity)
    is_full = len(transaction.claiming.claims) >= capacity
    transaction.has_news = transaction.has_news or (is_full and (transaction.claiming.has_backlog or has_released))
    # Whoever has room for steps also acts on the messages it sent.
    transaction.has_news = transaction.has_news or (capacity == 0 and transaction.has_sent)


def claim_ready(transaction: RunTransaction, capacity: int) -> None:
    """Claim those that are ready now, as far as there is room and permits are left."""
    claiming = transaction.claiming
    asked, claiming.ready = deque(dict.fromkeys(claiming.ready)), []
    has_room = capacity > len(claiming.claims)
    if asked and has_room and not nodes.is_known(transaction.connection, transaction.node_id):
        # The others have taken this process for dead: it may take nothing more.
        return
    while asked and len(claiming.claims) < capacity:
        _claim(transaction, _still_due(transaction, asked, capacity - len(claiming.claims)))
    # What there is no room for is not even looked at.
    claiming.has_backlog = claiming.has_backlog or bool(asked)


def take_over(transaction: RunTransaction, reports: Sequence[Report]) -> None:
    """Go on with steps of a process that is gone, unless somebody else does by now."""
    if not nodes.is_known(transaction.connection, transaction.node_id):
        return
    for report in reports:
        happening = report.happening
        if not isinstance(happening, TakenOver):
            continue
        try:
            run = transaction.open(report.run_id)
            flow = transaction.flow(run, report.flow_id)
            transaction.apply(run, flow, happening, StepUpdate())
        except StaleReport:
            continue
        transaction.claiming.claims.append(_claim_of(run, flow, happening.step_id))


def _claim_of(run: OpenRun, flow: Flow, step_id: str) -> Claim:
    return Claim(run, flow, flow.steps[step_id], flow.graph.steps[step_id])


def _still_due(
    transaction: RunTransaction, asked: deque[tuple[str, str, str]], most: int
) -> list[tuple[OpenRun, Flow, StepState]]:
    """Take so many that are ready from those that were, a moment ago."""
    due: list[tuple[OpenRun, Flow, StepState]] = []
    while asked and len(due) < most:
        run_id, flow_id, step_id = asked.popleft()
        try:
            run = transaction.open_unless_busy(run_id)
            if run is None:
                # Its steps are left to whoever is at it, or to the next look.
                transaction.claiming.look_again(transaction.now + _BUSY)
                continue
            flow = transaction.flow(run, flow_id)
        except StaleReport:
            continue
        if not is_due(flow.steps.get(step_id), transaction.now):
            continue
        if transaction.roots is None or run.row["root_run"] in transaction.roots:
            due.append((run, flow, flow.steps[step_id]))
        else:
            transaction.has_news = True
    return due


def _claim(transaction: RunTransaction, due: Sequence[tuple[OpenRun, Flow, StepState]]) -> None:
    limits = [permit_names(run.blueprint, run.id, state) for run, _, state in due]
    free = _free_permits(transaction, {name: most for each in limits for name, most in each.items()})
    # The others stay ready, and are looked at again when a permit is given back, or after a while.
    for (run, flow, state), names in within_limits(list(zip(due, limits, strict=True)), free):
        for name in names:
            transaction.writes.taken_permits.append({"name": name, "flow_id": flow.id, "step_id": state.step_id})
        transaction.apply(run, flow, Claimed(state.step_id), StepUpdate())
        transaction.claiming.claims.append(_claim_of(run, flow, state.step_id))


def _free_permits(transaction: RunTransaction, limits: Mapping[str, int | None]) -> dict[str, int]:
    """How many of each are left; a tag has a limit only if somebody set one."""
    if not limits:
        return {}
    # What ended in this transaction has made room already.
    transaction.writes.release_permits(transaction.connection)
    tags = [name.removeprefix("tag ") for name, most in limits.items() if most is None]
    set_limits = {f"tag {tag}": most for tag, most in queue.limits_of(transaction.connection, tags).items()}
    known = {name: most for name, most in limits.items() if most is not None} | set_limits
    ours = _held_permits(transaction, known)
    held = Counter(queue.held(transaction.connection, ours))
    # What was claimed in this transaction is not stored yet.
    held.update(permit["name"] for permit in transaction.writes.taken_permits)
    return free_permits(limits, known, held, ours)


def _held_permits(transaction: RunTransaction, names: Mapping[str, int]) -> set[str]:
    """Those of the names whose permits nobody else takes until we are done."""
    before = transaction.claiming.permit_names
    missing = names.keys() - (before or set())
    found = queue.hold_permits(transaction.connection, missing, wait=before is None)
    if found != missing:
        transaction.claiming.look_again(transaction.now + _BUSY)
    transaction.claiming.permit_names = (before or set()) | found
    return transaction.claiming.permit_names & names.keys()
