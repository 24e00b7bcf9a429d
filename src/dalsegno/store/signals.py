"""Signals, and the steps that wait for them.

Whoever announces a signal, or lets a step wait for one, holds the signal's name until the transaction ends: so either
the step sees the signal, or the signal meets the waiting step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, tuple_, update

from dalsegno.model.messages import SignalsArrived
from dalsegno.model.signals import Announcement, Match, Signal, Wanted, WantedSignal
from dalsegno.model.workflow import Operator
from dalsegno.plan.signals import fits, newest
from dalsegno.store import row_queries, runs, signal_subscriptions
from dalsegno.store.database import lock
from dalsegno.store.row_queries import Row
from dalsegno.store.run_tables import signal_waits, signals

#: How many signals are looked at in one go.
_PAGE = 500
#: How many rows one statement names at most.
_FEW = 500


def hold(connection: Connection, names: Iterable[str]) -> None:
    """Nobody else announces these signals or begins to wait for them until the transaction ends."""
    # In one order, so that two who hold several do not wait for each other.
    for name in sorted(set(names)):
        lock(connection, f"signal {name}")


def signal_of(row: Row) -> Signal:
    return Signal(row["id"], row["name"], row["params"])


# Announcing.


def announce(connection: Connection, news: Sequence[Announcement], now: datetime) -> list[tuple[Row, bool]]:
    """Store signals, hand them to the triggers that want them, and let steps go that waited for them.

    Each as it is stored, and whether it was announced before.
    """
    hold(connection, (each.name for each in news))
    told = [_add(connection, each, now) for each in news]
    new = [signal_of(row) for row, is_repeated in told if not is_repeated]
    if new:
        signal_subscriptions.hand_over(connection, new, now)
        for run_id, steps in _met(connection, new).items():
            runs.send(connection, run_id, SignalsArrived(tuple((flow, step) for flow, step in steps)), now)
    return told


def _add(connection: Connection, new: Announcement, now: datetime) -> tuple[Row, bool]:
    if new.key is not None:
        known = row_queries.row(connection, select(signals).where(signals.c.name == new.name, signals.c.key == new.key))
        if known is not None:
            return known, True
    values = {
        "name": new.name,
        "key": new.key,
        "params": dict(new.params),
        "payload": dict(new.payload),
        "source": dict(new.source),
        "announced_at": now,
    }
    number = connection.execute(insert(signals).values(**values).returning(signals.c.id)).scalar_one()
    return {"id": number, **values}, False


def _met(connection: Connection, new: Sequence[Signal]) -> dict[str, list[tuple[str, str]]]:
    """Note which waits are over; by run, the flow and the step of those that wait for nothing more."""
    names = {signal.name for signal in new}
    waiting = signal_waits.c.signal_id.is_(None)
    rows = row_queries.rows(connection, select(signal_waits).where(waiting, signal_waits.c.signal_name.in_(names)))
    met = [(row, found) for row in rows if (found := newest(new, _wanted(row)))]
    if not met:
        return {}
    values = [
        {"flow": row["flow_id"], "step": row["step_id"], "which": row["number"], "found": signal.id}
        for row, signal in met
    ]
    connection.execute(_SET_SIGNAL, values)
    wait_on: set[tuple[str, str]] = set()
    for run_ids in _portions(sorted({row["run_id"] for row, _ in met})):
        more = select(signal_waits.c.flow_id, signal_waits.c.step_id)
        still = connection.execute(more.where(waiting, signal_waits.c.run_id.in_(run_ids)))
        wait_on |= {(flow_id, step_id) for flow_id, step_id in still}
    steps: dict[str, dict[tuple[str, str], None]] = {}
    for row, _ in met:
        if (row["flow_id"], row["step_id"]) not in wait_on:
            steps.setdefault(row["run_id"], {})[row["flow_id"], row["step_id"]] = None
    return {run_id: list(found) for run_id, found in steps.items()}


_SET_SIGNAL = (
    update(signal_waits)
    .where(
        signal_waits.c.flow_id == bindparam("flow"),
        signal_waits.c.step_id == bindparam("step"),
        signal_waits.c.number == bindparam("which"),
    )
    .values(signal_id=bindparam("found"))
)


# Waiting.


def look_for(connection: Connection, wanted: Wanted, after: int = 0) -> WantedSignal:
    """The newest signal that will do, of those behind a number."""
    last = connection.execute(select(func.max(signals.c.id)).where(signals.c.name == wanted.name)).scalar() or after
    before = last + 1
    while True:
        page = row_queries.rows(
            connection,
            select(signals)
            .where(signals.c.name == wanted.name, signals.c.id > after, signals.c.id < before)
            .order_by(signals.c.id.desc())
            .limit(_PAGE),
        )
        found = next((row["id"] for row in page if fits(signal_of(row), wanted)), None)
        if found is not None or len(page) < _PAGE:
            return WantedSignal(wanted, found, max(last, after))
        before = page[-1]["id"]


def wait(
    connection: Connection, run_id: str, flow_id: str, step_id: str, wanted_signals: Sequence[WantedSignal]
) -> bool:
    """Let a step wait, as far as what it waits for has not come meanwhile; whether all is there."""
    hold(connection, (each.wanted.name for each in wanted_signals))
    forget_waits(connection, [(flow_id, step_id)])
    found = [look_for(connection, each.wanted, each.seen).found or each.found for each in wanted_signals]
    rows = [
        {
            "flow_id": flow_id,
            "step_id": step_id,
            "number": number,
            "run_id": run_id,
            "signal_name": each.wanted.name,
            "wanted": {name: [match.operator.value, match.value] for name, match in each.wanted.match.items()},
            "signal_id": signal_id,
        }
        for number, (each, signal_id) in enumerate(zip(wanted_signals, found, strict=True))
    ]
    connection.execute(insert(signal_waits), rows)
    return None not in found


def forget_waits(connection: Connection, steps: Sequence[tuple[str, str]], *, only_open: bool = False) -> None:
    """What steps (flow and step) wait for; and what they have waited for, if it is not to be kept."""
    for portion in _portions(steps):
        ours = delete(signal_waits).where(tuple_(signal_waits.c.flow_id, signal_waits.c.step_id).in_(list(portion)))
        connection.execute(ours.where(signal_waits.c.signal_id.is_(None)) if only_open else ours)


def _wanted(row: Row) -> Wanted:
    match = {name: Match(Operator(operator), value) for name, (operator, value) in row["wanted"].items()}
    return Wanted(row["signal_name"], match)


# Looking.


def params_of_wait(connection: Connection, flow_id: str, step_id: str, number: int) -> Mapping[str, Any]:
    """Of the signal that a step has waited for; none if it went on without."""
    found = (
        select(signals.c.params)
        .join(signal_waits, signal_waits.c.signal_id == signals.c.id)
        .where(signal_waits.c.flow_id == flow_id, signal_waits.c.step_id == step_id, signal_waits.c.number == number)
    )
    return connection.execute(found).scalar() or {}


def signal_rows(connection: Connection, name: str | None = None, *, limit: int, below: int | None = None) -> list[Row]:
    """Newest first; with ids below one, if it is given."""
    found = select(signals).order_by(signals.c.id.desc()).limit(limit)
    if below is not None:
        found = found.where(signals.c.id < below)
    return row_queries.rows(connection, found if name is None else found.where(signals.c.name == name))


def _portions(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[first : first + _FEW] for first in range(0, len(items), _FEW))
