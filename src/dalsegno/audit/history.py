"""What a workflow's runs consumed, and which state of a target each of them left: looked up, nothing is computed.

Which snapshots are whose is told by the stamps in their summaries; where a job left none, by the time between capture
and commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dalsegno.clock import to_millis
from dalsegno.errors import UserError
from dalsegno.hints import Verb, action
from dalsegno.iceberg.stamps import PREFIX
from dalsegno.model.captures import Capture, CapturedTable, CaptureState, run_of_actor
from dalsegno.model.snapshots import History, Operation, Snapshot
from dalsegno.model.tables import TableName
from dalsegno.store import Store, run_queries


@dataclass(frozen=True)
class Consumed:
    """How far into its sources a workflow had come when one of its runs had committed."""

    #: The run's row in the store.
    run: Mapping[str, Any]
    captures: tuple[str, ...]
    #: The newest capture of each source, of this run or an earlier one.
    sources: Mapping[TableName, CapturedTable]
    #: Between the first capture and the last commit of the run.
    began_ms: int
    ended_ms: int
    #: The newest capture of each source for each consumer: each declared table of a workflow has one of its own.
    by_consumer: Mapping[str, Mapping[TableName, CapturedTable]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.run['workflow_id']}/{self.run['number']}"


@dataclass(frozen=True)
class State:
    """A target as it was after a run, or after somebody else had changed it since."""

    #: The index of the run.
    after: int
    #: None: nothing had been written to it yet.
    snapshot: Snapshot | None
    #: Whether the snapshot was not written by the workflow.
    is_foreign: bool = False


@dataclass(frozen=True)
class Line:
    """The states of one target, from the oldest to the newest that can still be read."""

    states: tuple[State, ...]
    #: What was in it before the first run; None: nothing, or that can no longer be read.
    seed: Snapshot | None
    #: Whether what was in it before the first run is known.
    has_beginning: bool


def consumed_by(store: Store, workflow_id: str) -> list[Consumed]:
    """The runs that have committed captures, from the first to the last."""
    found: list[Consumed] = []
    for capture in _committed(store, workflow_id):
        number = _run_number(capture, workflow_id)
        with store.database.reading() as connection:
            run = run_queries.numbered(connection, workflow_id, number)
        if run is None:
            continue
        last = found[-1] if found else None
        same = last if last and last.run["number"] == number else None
        known = last.by_consumer if last else {}
        own = {each.table: each for each in capture.tables}
        item = Consumed(
            dict(run),
            (*(same.captures if same else ()), capture.id),
            {**(last.sources if last else {}), **own},
            same.began_ms if same else to_millis(capture.created_at),
            to_millis(capture.settled_at or capture.created_at),
            {**known, capture.consumer: {**known.get(capture.consumer, {}), **own}},
        )
        found = [*found[:-1], item] if same else [*found, item]
    if not found:
        raise UserError(
            f"No run of {workflow_id} has committed a capture, so there is nothing to audit.",
            hint="It needs an IpCapture and an IpCommit step, and a run.",
            actions=[action("To run it", Verb.RUN, workflow=workflow_id)],
        )
    return found


def _committed(store: Store, workflow_id: str) -> list[Capture]:
    ours = [
        capture
        for capture in store.captures()
        if capture.state is CaptureState.COMMITTED and _run_number(capture, workflow_id)
    ]
    return sorted(ours, key=lambda capture: (capture.settled_at or capture.created_at, capture.created_at))


def _run_number(capture: Capture, workflow_id: str) -> int:
    """Whose run has it; 0 if it is not this workflow's."""
    named = run_of_actor(capture.created_by)
    return named[1] if named and named[0] == workflow_id else 0


def first_captures(store: Store, workflow_id: str) -> dict[TableName, CapturedTable]:
    """Where the workflow began in each source."""
    found: dict[TableName, CapturedTable] = {}
    for capture in _committed(store, workflow_id):
        for captured in capture.tables:
            found.setdefault(captured.table, captured)
    return found


def line_of(history: History, workflow_id: str, timeline: Sequence[Consumed]) -> Line:
    """The states of a target whose history this is."""
    snapshots = list(history.ancestors(history.head))[::-1]
    is_whole = not snapshots or snapshots[0].parent_id is None
    run_of = {capture: index for index, item in enumerate(timeline) for capture in item.captures}
    owners = [_owner(snapshot, workflow_id, run_of) for snapshot in snapshots]
    # What a run writes that has not committed yet is not to be judged.
    end = _first_unfinished(snapshots, owners, timeline)
    begins = [_begin(index, item, snapshots[:end], owners) for index, item in enumerate(timeline)]
    states = []
    for index, item in enumerate(timeline):
        last = _last(index, item, snapshots[:end], owners)
        # Before all that is known, a state was empty if there was nothing before; otherwise it has expired.
        if last >= 0 or is_whole:
            states.append(State(index, snapshots[last] if last >= 0 else None))
        following = begins[index + 1] if index + 1 < len(begins) else end
        states += [
            State(index, snapshot, is_foreign=True)
            for snapshot in snapshots[last + 1 : following]
            if snapshot.operation is not Operation.REPLACE
        ]
    before = begins[0] - 1
    return Line(tuple(states), snapshots[before] if before >= 0 else None, is_whole or before >= 0)


#: In the place of a run's index.
_NOBODY, _UNFINISHED = -1, -2


def _owner(snapshot: Snapshot, workflow_id: str, run_of: Mapping[str, int]) -> int:
    captures = [each for each in snapshot.summary.get(f"{PREFIX}captures", "").split(",") if each]
    known = [run_of[each] for each in captures if each in run_of]
    if known:
        return max(known)
    return _UNFINISHED if captures and snapshot.summary.get(f"{PREFIX}workflow") == workflow_id else _NOBODY


def _first_unfinished(snapshots: Sequence[Snapshot], owners: Sequence[int], timeline: Sequence[Consumed]) -> int:
    """Where the writes of a run begin that came after the last commit; what an earlier one left is anybody's."""
    committed = [at for at, owner in enumerate(owners) if owner >= 0]
    for at in range(committed[-1] + 1 if committed else 0, len(snapshots)):
        if owners[at] == _UNFINISHED and snapshots[at].timestamp_ms > timeline[-1].ended_ms:
            return at
    return len(snapshots)


def _last(index: int, item: Consumed, snapshots: Sequence[Snapshot], owners: Sequence[int]) -> int:
    """Where the state is that the run left; -1 if that is before all snapshots."""
    stamped = [at for at in range(len(snapshots)) if owners[at] == index]
    timely = [at for at, snapshot in enumerate(snapshots) if snapshot.timestamp_ms <= item.ended_ms]
    return stamped[-1] if stamped else timely[-1] if timely else -1


def _begin(index: int, item: Consumed, snapshots: Sequence[Snapshot], owners: Sequence[int]) -> int:
    """Where the first snapshot is that the run made, or would have been."""
    stamped = [at for at in range(len(snapshots)) if owners[at] == index]
    if stamped:
        return stamped[0]
    return next((at for at, each in enumerate(snapshots) if each.timestamp_ms >= item.began_ms), len(snapshots))
