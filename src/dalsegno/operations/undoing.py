"""Undo: take back what steps have written behind a capture that is not committed.

Each target is rolled back to where it stood before the first statement wrote to it, if nobody else has written since
and no consumer has captured what would go. Otherwise nothing is changed, and it says who and what is in the way. It
may be repeated: what is rolled back already stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dalsegno.capture.lake import Lake
from dalsegno.clock import to_millis
from dalsegno.engine.machine import machine_name
from dalsegno.errors import CaptureSettled, DataError, UnknownName, UserError
from dalsegno.hints import Action, Verb, action
from dalsegno.iceberg import evidence
from dalsegno.iceberg.catalogs import Catalog, ConcurrentChange, LoadedTable
from dalsegno.iceberg.history import MAIN
from dalsegno.iceberg.stamps import PREFIX
from dalsegno.model.captures import Capture
from dalsegno.model.tables import TableName
from dalsegno.model.work_units import Statement, StatementState, TableState, UnitState, WorkUnit
from dalsegno.spark.forms import Effect, form_of
from dalsegno.steps.spark import executors, fences
from dalsegno.store import settling, work_units
from dalsegno.store.settling import is_open

_ATTEMPTS = 5
#: How far the clocks of Spark and of this machine may be apart.
_SKEW = timedelta(minutes=1)


@dataclass(frozen=True)
class RolledBack:
    target: str
    #: Such as "main is back at snapshot 123".
    moves: tuple[str, ...]


@dataclass(frozen=True)
class Undone:
    capture_id: str
    #: The steps whose work was taken back.
    steps: tuple[str, ...]
    targets: tuple[RolledBack, ...]
    #: What stays as it is, such as changes of a schema.
    stays: tuple[str, ...]


@dataclass(frozen=True)
class _Move:
    """A branch of a target, and where it is to point; None: nowhere, it was not there."""

    branch: str
    snapshot_id: int | None


def undo(lake: Lake, capture_id: str, *, step: str | None = None, leave_rows: bool = False) -> Undone:
    """Take back what was written behind a capture; ``leave_rows``: only forget that it was."""
    capture, units = _work_of(lake, capture_id, step)
    if not leave_rows:
        _end_what_runs(lake, units)
        plans = [(name, before, _plan(lake, name, before, units)) for name, before in _targets(units).items()]
    _begin(lake, capture, units)
    rolled: list[RolledBack] = []
    stays: list[str] = []
    if leave_rows:
        stays += [f"what {unit.name} wrote" for unit in units]
    else:
        rolled += [_rolled_back(lake, name, before, units) for name, before, _ in plans]
        # Where a head is again what it was, what was under way could still be accepted.
        _fence(lake, units)
        stays += list(_staying(units))
    _mark(lake, units, UnitState.UNDONE)
    return Undone(capture.id, tuple(unit.name for unit in units), tuple(rolled), tuple(stays))


def _work_of(lake: Lake, capture_id: str, step: str | None) -> tuple[Capture, list[WorkUnit]]:
    capture = lake.store.capture(capture_id)
    if not capture.state.is_pending:
        raise CaptureSettled(
            f"Capture {capture.id} is {capture.state}: what was written for it cannot be undone.",
            actions=[action("Roll the target back, then move the checkpoint", Verb.SET_CHECKPOINT)],
        )
    with lake.store.database.reading() as connection:
        if is_open(connection, capture.created_by):
            run = capture.created_by.removeprefix("run ")
            raise UserError(
                f"Capture {capture.id} is held by {capture.created_by}, which has not ended.",
                actions=[action("End it first", Verb.STOP, run=run)],
            )
        units = [each for each in work_units.behind(connection, [capture.id]) if each.is_begun]
    chosen = [unit for unit in units if step in (None, unit.key.step_id)]
    if not chosen:
        known = ", ".join(sorted({unit.key.step_id for unit in units})) or "no step"
        of_step = f" by step {step!r}" if step else ""
        raise UserError(f"Nothing was begun behind capture {capture.id}{of_step}; {known} has written for it.")
    return capture, chosen


def _end_what_runs(lake: Lake, units: Sequence[WorkUnit]) -> None:
    """What is in doubt must not arrive after it was taken back."""
    for unit in units:
        if not unit.is_sql:
            raise UserError(
                f"What {unit.name} has written is unknown: it does not run SQL.",
                actions=[_by_hand([unit])],
            )
        for statement in unit.statements:
            if statement.state is StatementState.BEGUN:
                executors.ensure_gone(lake.settings, statement.executor, machine_name(lake.settings.machine))
    _fence(lake, units)


def _fence(lake: Lake, units: Iterable[WorkUnit]) -> None:
    for unit in units:
        for statement in unit.statements:
            if statement.state is StatementState.BEGUN and form_of(statement.text).effect is Effect.STAMPED:
                table = _load(lake, TableName.of_quoted(statement.target)) if statement.target else None
                fences.fence(lake.settings, statement, table.metadata if table else None, unit.id)


def _targets(units: Sequence[WorkUnit]) -> dict[TableName, TableState]:
    """Each table that was written to, as it was before the first statement."""
    found: dict[TableName, TableState] = {}
    for statement in _written(units):
        if form_of(statement.text).effect is Effect.UNKNOWN:
            raise DataError(
                f"Statement {statement.number} was executed, and what it wrote is not known: {statement.text[:80]!r}.",
                actions=[_by_hand(units)],
            )
        if statement.target is None or statement.before is None:
            raise DataError(
                f"Where statement {statement.number} wrote to cannot be asked: {statement.text[:80]!r}.",
                actions=[_by_hand(units)],
            )
        found.setdefault(TableName.of_quoted(statement.target), statement.before)
    return found


def _written(units: Iterable[WorkUnit]) -> list[Statement]:
    """What was, or may have been, executed, in the order in which it was begun; queries leave nothing."""
    found = [
        (each.begun_at or unit.created_at, each.number, each)
        for unit in units
        for each in unit.statements
        if each.state is not StatementState.PLANNED
    ]
    return [each for _, _, each in sorted(found, key=lambda one: one[:2])]


def _plan(lake: Lake, name: TableName, before: TableState, units: Sequence[WorkUnit]) -> list[_Move]:
    """What to move in a target; ``DataError`` if something is in the way."""
    table = _load(lake, name)
    if table is None:
        return []
    if before.uuid is not None and table.metadata["table-uuid"] != before.uuid:
        raise DataError(f"Another table is called {name} now: it is not rolled back.", actions=[_by_hand(units)])
    moves = list(_moves(table, before, units))
    gone = {each for move in moves for each in _ids_above(table, move)}
    _refuse_captured(lake, name, gone, units)
    return moves


def _by_hand(units: Sequence[WorkUnit]) -> Action:
    capture_id = units[0].key.captures[0]
    return action("Roll the targets back by hand, then", Verb.UNDO, capture=capture_id, leave_rows=True)


def _moves(table: LoadedTable, before: TableState, units: Sequence[WorkUnit]) -> Iterable[_Move]:
    ids = {unit.id for unit in units}
    for branch, head in evidence.state_of(table.metadata).heads.items():
        wanted = before.heads.get(branch)
        foreign: list[str] = []
        is_ours, foreign_above, was_reached = False, 0, wanted is None
        for raw in evidence.line(table.metadata, head):
            if raw["snapshot-id"] == wanted:
                was_reached = True
                break
            if _is_of(raw, ids) or _may_be_of(raw, table.name, units):
                is_ours, foreign_above = True, len(foreign)
            else:
                summary = raw.get("summary") or {}
                foreign.append(f"snapshot {raw['snapshot-id']} ({summary.get('operation', 'unknown')})")
        if head == wanted or not is_ours:
            continue
        if branch not in before.heads and branch != MAIN:
            # A branch that was made since: what is below our first snapshot was there before.
            foreign = foreign[:foreign_above]
        if foreign or not was_reached:
            who = ", ".join(foreign[:5]) or f"the history since snapshot {wanted} is incomplete"
            raise DataError(
                f"{table.name} cannot be rolled back: others have written to {branch!r} since: {who}.",
                actions=[_by_hand(units)],
            )
        yield _Move(branch, wanted)


def _is_of(raw: Mapping[str, Any], unit_ids: set[str]) -> bool:
    summary = raw.get("summary") or {}
    return summary.get(evidence.UNIT) in unit_ids or summary.get(evidence.FENCE) in unit_ids


def _may_be_of(raw: Mapping[str, Any], name: TableName, units: Iterable[WorkUnit]) -> bool:
    """A delete without a stamp is that of a statement that leaves none, if it was made while that was executed."""
    summary = raw.get("summary") or {}
    if summary.get("operation") != "delete" or any(key.startswith(PREFIX) for key in summary):
        return False
    made = raw["timestamp-ms"]
    return any(
        each.target == name.quoted
        and form_of(each.text).effect is Effect.UNSTAMPED
        and each.begun_at is not None
        and to_millis(each.begun_at - _SKEW) <= made
        and (each.done_at is None or made <= to_millis(each.done_at + _SKEW))
        for unit in units
        for each in unit.statements
    )


def _ids_above(table: LoadedTable, move: _Move) -> Iterable[int]:
    for raw in evidence.line(table.metadata, evidence.state_of(table.metadata).heads[move.branch]):
        if raw["snapshot-id"] == move.snapshot_id:
            return
        yield raw["snapshot-id"]


def _refuse_captured(lake: Lake, name: TableName, gone: set[int], units: Sequence[WorkUnit]) -> None:
    """What a consumer has captured cannot be taken back here alone."""
    for mark in lake.store.positions():
        if mark.table == name and mark.position.snapshot_id in gone:
            raise DataError(
                f"{name} cannot be rolled back: consumer {mark.consumer!r} has processed it up to snapshot "
                f"{mark.position.snapshot_id}.",
                actions=[_by_hand(units)],
            )
    for capture in lake.store.captures(pending_only=True):
        for captured in capture.tables:
            if captured.table == name and captured.upto.snapshot_id in gone:
                raise DataError(
                    f"{name} cannot be rolled back: capture {capture.id} of consumer {capture.consumer!r} holds "
                    "what would go.",
                    actions=[action("Abandon it first", Verb.ABANDON, capture=capture.id)],
                )


def _rolled_back(lake: Lake, name: TableName, before: TableState, units: Sequence[WorkUnit]) -> RolledBack:
    for _ in range(_ATTEMPTS):
        moves = _plan(lake, name, before, units)
        table = _load(lake, name)
        if table is None:
            return RolledBack(str(name), ("the table is gone",))
        try:
            return RolledBack(str(name), tuple(_moved(lake.catalog(name.catalog), table, before, moves, units)))
        except ConcurrentChange:
            # Others may write at any time: look again who did.
            continue
    raise DataError(f"{name} is being written to: nothing of it was rolled back.", hint="Try again when it is quiet.")


def _moved(
    catalog: Catalog, table: LoadedTable, before: TableState, moves: Sequence[_Move], units: Sequence[WorkUnit]
) -> Iterable[str]:
    is_ours = any(move.branch == MAIN for move in moves)
    if before.uuid is None and is_ours and _was_made_with_rows(table.name, units):
        # Its files stay: they are nobody's, and expiry or a person may remove them.
        catalog.forget(table.name, metadata_location=table.metadata_location)
        return ["dropped: the step had made it"]
    told = []
    for move in moves:
        ref = dict(table.metadata.get("refs", {}).get(move.branch) or {"type": "branch"})
        new = None if move.snapshot_id is None else ref | {"snapshot-id": move.snapshot_id}
        table = catalog.set_ref(table, move.branch, new)
        told.append(f"{move.branch} is {'empty again' if new is None else f'back at snapshot {move.snapshot_id}'}")
    return told or ["nothing of it was there"]


def _was_made_with_rows(name: TableName, units: Iterable[WorkUnit]) -> bool:
    """Whether the first thing that was done to a table was to make it from a query."""
    written = _written(units)
    form = form_of(next(each.text for each in written if each.target == name.quoted))
    return form.creates and form.effect is Effect.STAMPED


def _staying(units: Iterable[WorkUnit]) -> Iterable[str]:
    for unit in units:
        for each in unit.statements:
            form = form_of(each.text)
            if each.state is StatementState.DONE and form.is_ddl and form.effect is not Effect.STAMPED:
                yield f"{form.name} of {'.'.join(form.target)}"


def _begin(lake: Lake, capture: Capture, units: Sequence[WorkUnit]) -> None:
    """From now on nobody else works on the units; refuse if somebody has since they were looked at."""
    with lake.store.database.writing() as connection:
        [capture] = settling.hold(connection, [capture.id])
        if (
            not capture.state.is_pending
            or is_open(connection, capture.created_by)
            or any(work_units.the(connection, unit.id) != unit for unit in units)
        ):
            raise UserError(
                f"Somebody has worked behind capture {capture.id} while it was to be undone; nothing was rolled back.",
                actions=[action("Try again after a look at what was written", Verb.SHOW_WRITES, capture=capture.id)],
            )
        for unit in units:
            # Whoever works on it finds that it is no longer theirs.
            work_units.change(connection, unit.id, state=UnitState.UNDOING.value, owner="")


def _mark(lake: Lake, units: Iterable[WorkUnit], state: UnitState) -> None:
    with lake.store.database.writing() as connection:
        for unit in units:
            work_units.change(connection, unit.id, state=state.value, owner="")


def _load(lake: Lake, name: TableName) -> LoadedTable | None:
    try:
        return lake.load(name)
    except UnknownName:
        return None
