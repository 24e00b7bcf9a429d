"""Statements about work units; every function works inside its caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, func, insert, select, update

from dalsegno.model.captures import CaptureState
from dalsegno.model.work_units import Statement, StatementState, TableState, UnitKey, UnitState, WorkUnit
from dalsegno.store.tables import captures
from dalsegno.store.work_tables import work_statements, work_unit_captures, work_units


def find(connection: Connection, key: UnitKey) -> WorkUnit | None:
    """The unit of this key that was not undone."""
    return next(iter(_matching(connection, work_units.c.digest == key.digest, _is_not_undone())), None)


def the(connection: Connection, unit_id: str) -> WorkUnit | None:
    return next(iter(_matching(connection, work_units.c.id == unit_id)), None)


def behind(connection: Connection, capture_ids: Iterable[str]) -> list[WorkUnit]:
    """Those that consume one of these captures and were not undone; oldest first."""
    ids = select(work_unit_captures.c.unit_id).where(work_unit_captures.c.capture_id.in_(list(capture_ids)))
    return _matching(connection, work_units.c.id.in_(ids), _is_not_undone())


def behind_pending(connection: Connection) -> list[WorkUnit]:
    """Those that consume a capture which nobody has settled, and were not undone; oldest first."""
    states = [state.value for state in CaptureState if state.is_pending]
    return behind(connection, connection.scalars(select(captures.c.id).where(captures.c.state.in_(states))))


def ids_behind(connection: Connection, capture_ids: Iterable[str]) -> list[str]:
    """The same of all, those that were undone included, by their ids."""
    query = select(work_unit_captures.c.unit_id).where(work_unit_captures.c.capture_id.in_(list(capture_ids)))
    return list(connection.scalars(query))


def next_id(connection: Connection, key: UnitKey) -> str:
    """The id of a new unit: it counts how often work of this key was begun and undone."""
    earlier = connection.scalar(select(func.count()).select_from(work_units).where(work_units.c.digest == key.digest))
    return key.digest if not earlier else f"{key.digest}.{earlier}"


def add(connection: Connection, unit: WorkUnit) -> None:
    values = {
        "id": unit.id,
        "digest": unit.key.digest,
        "captures": list(unit.key.captures),
        "workflow_id": unit.key.workflow_id,
        "step_id": unit.key.step_id,
        "inputs": unit.key.inputs,
        "state": unit.state.value,
        "template": unit.template,
        "begun_by": unit.begun_by,
        "created_at": unit.created_at,
        "visited": sorted(unit.visited),
        "owner": unit.owner,
        "outputs": dict(unit.outputs),
        "branch": unit.branch,
        "decision": unit.decision,
    }
    connection.execute(insert(work_units).values(values))
    of_captures = [{"capture_id": capture_id, "unit_id": unit.id} for capture_id in unit.key.captures]
    connection.execute(insert(work_unit_captures), of_captures)
    plan(connection, unit.id, unit.statements)


def plan(connection: Connection, unit_id: str, statements: Sequence[Statement]) -> None:
    """Say anew what a unit will execute."""
    connection.execute(delete(work_statements).where(work_statements.c.unit_id == unit_id))
    if statements:
        connection.execute(insert(work_statements), [_values(unit_id, each) for each in statements])


def change(connection: Connection, unit_id: str, *, if_owner: str | None = None, **values: Any) -> bool:
    """Change a unit, if it is this owner's; tell whether it was."""
    condition = work_units.c.id == unit_id
    if if_owner is not None:
        condition &= work_units.c.owner == if_owner
    return connection.execute(update(work_units).where(condition).values(**values)).rowcount == 1


def change_statement(connection: Connection, unit_id: str, number: int, **values: Any) -> None:
    which = (work_statements.c.unit_id == unit_id) & (work_statements.c.number == number)
    connection.execute(update(work_statements).where(which).values(**values))


def together(connection: Connection, capture_ids: Iterable[str]) -> set[str]:
    """The captures that steps have consumed together with these, directly or by way of others; these included."""
    found = set(capture_ids)
    while True:
        more = {each for unit in behind(connection, found) if unit.is_begun for each in unit.key.captures}
        if more <= found:
            return found
        found |= more


def _is_not_undone() -> ColumnElement[bool]:
    return work_units.c.state != UnitState.UNDONE.value


def _matching(connection: Connection, *conditions: ColumnElement[bool]) -> list[WorkUnit]:
    query = select(work_units).where(*conditions).order_by(work_units.c.created_at, work_units.c.id)
    rows = connection.execute(query).mappings().all()
    if not rows:
        return []
    of_units = work_statements.c.unit_id.in_([row["id"] for row in rows])
    statements: dict[str, list[Statement]] = {}
    ordered = select(work_statements).where(of_units).order_by(work_statements.c.number)
    for each in connection.execute(ordered).mappings():
        statements.setdefault(each["unit_id"], []).append(_statement(each))
    return [_unit(row, statements.get(row["id"], [])) for row in rows]


def _unit(row: RowMapping, statements: Sequence[Statement]) -> WorkUnit:
    return WorkUnit(
        id=row["id"],
        key=UnitKey(tuple(row["captures"]), row["workflow_id"], row["step_id"], row["inputs"]),
        state=UnitState(row["state"]),
        template=row["template"],
        begun_by=row["begun_by"],
        created_at=row["created_at"],
        visited=frozenset(row["visited"]),
        owner=row["owner"],
        outputs=row["outputs"],
        statements=tuple(statements),
        branch=row["branch"],
        decision=row["decision"],
    )


def _statement(row: RowMapping) -> Statement:
    return Statement(
        number=row["number"],
        text=row["text"],
        state=StatementState(row["state"]),
        target=row["target"],
        before=None if row["before"] is None else TableState.of_json(row["before"]),
        after=row["after"],
        executor=row["executor"],
        variables=row["variables"],
        doubt=row["doubt"],
        begun_at=row["begun_at"],
        done_at=row["done_at"],
    )


def _values(unit_id: str, statement: Statement) -> Mapping[str, Any]:
    return {
        "unit_id": unit_id,
        "number": statement.number,
        "text": statement.text,
        "state": statement.state.value,
        "target": statement.target,
        "before": statement.before and statement.before.as_json(),
        "after": statement.after,
        "executor": statement.executor,
        "variables": statement.variables,
        "doubt": statement.doubt,
        "begun_at": statement.begun_at,
        "done_at": statement.done_at,
    }
