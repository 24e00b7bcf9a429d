"""Signals on their way to triggers: who is told of which, and what has not begun a run yet.

A trigger that was told of something is due: ``next_at`` says so, and whoever joins its signals resets it first. The row
of the trigger is what both wait for, so nothing that arrives meanwhile is overlooked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, insert, select, update

from dalsegno.model.signals import Signal
from dalsegno.store import row_queries
from dalsegno.store.row_queries import Row
from dalsegno.store.run_tables import signal_arrivals, signal_subscriptions, signals, triggers

#: Of the triggers that signals are handed to.
_KIND = "signal"
#: How many arrivals are looked at in one go.
PAGE = 500


def hand_over(connection: Connection, new: Sequence[Signal], now: datetime) -> None:
    """Tell the triggers that want them."""
    names = {signal.name for signal in new}
    found = select(signal_subscriptions).where(signal_subscriptions.c.signal_name.in_(names))
    subscriptions = row_queries.rows(connection, found)
    arrivals = [
        {
            "workflow_id": row["workflow_id"],
            "trigger_name": row["trigger_name"],
            "signal_id": signal.id,
            "signal_name": signal.name,
        }
        for row in subscriptions
        for signal in new
        if signal.name == row["signal_name"]
    ]
    if not arrivals:
        return
    connection.execute(insert(signal_arrivals), arrivals)
    mine = (
        signal_subscriptions.c.workflow_id == triggers.c.workflow_id,
        signal_subscriptions.c.trigger_name == triggers.c.name,
        signal_subscriptions.c.signal_name.in_(names),
    )
    wants = and_(triggers.c.kind == _KIND, exists().where(*mine))
    # In one order, so that two who announce do not wait for each other.
    ordered = select(triggers.c.name).where(wants).order_by(triggers.c.workflow_id, triggers.c.name)
    connection.execute(ordered.with_for_update()).all()
    connection.execute(update(triggers).where(wants).values(next_at=now))


def told(connection: Connection, limit: int = 100) -> list[Row]:
    """The triggers that somebody has told of something, the longest waiting first, whatever clocks say."""
    found = select(triggers).where(triggers.c.kind == _KIND, triggers.c.next_at.is_not(None))
    return row_queries.rows(connection, found.order_by(triggers.c.next_at).limit(limit))


def subscribed(connection: Connection, workflow_id: str) -> set[str]:
    """The signals that triggers of a workflow are told of."""
    found = select(signal_subscriptions.c.signal_name).where(signal_subscriptions.c.workflow_id == workflow_id)
    return set(connection.execute(found).scalars())


def subscribe(connection: Connection, workflow_id: str, trigger: str, names: Iterable[str]) -> None:
    """Tell a trigger of these signals, from now on."""
    values = [{"signal_name": name, "workflow_id": workflow_id, "trigger_name": trigger} for name in names]
    connection.execute(insert(signal_subscriptions), values)


def unsubscribe(connection: Connection, workflow_id: str, trigger: str) -> None:
    """Tell it of nothing more, and forget what has not begun a run."""
    for table in (signal_subscriptions, signal_arrivals):
        connection.execute(delete(table).where(table.c.workflow_id == workflow_id, table.c.trigger_name == trigger))


# Joining. ``row`` is that of the trigger.


def new_arrivals(connection: Connection, row: Row) -> list[Signal]:
    """Those that nobody has looked at yet, the oldest first."""
    return _arrived(connection, _of(row), signal_arrivals.c.group_name.is_(None))


def in_group(connection: Connection, row: Row, group: str, name: str) -> list[Signal]:
    """The oldest of those that still wait for others."""
    ours = (signal_arrivals.c.group_name == group, signal_arrivals.c.signal_name == name)
    return _arrived(connection, _of(row), *ours, signal_arrivals.c.join_key.is_(None))


def _arrived(connection: Connection, *conditions: ColumnElement[bool]) -> list[Signal]:
    found = (
        select(signals.c.id, signals.c.name, signals.c.params)
        .join(signal_arrivals, signal_arrivals.c.signal_id == signals.c.id)
        .where(*conditions)
        .order_by(signals.c.id)
        .limit(PAGE)
    )
    return [Signal(number, name, params) for number, name, params in connection.execute(found)]


def put_into_group(connection: Connection, row: Row, signal: Signal, group: str) -> None:
    _set(connection, row, [signal], group_name=group)


def join(connection: Connection, row: Row, found: Iterable[Signal], key: str) -> None:
    _set(connection, row, found, join_key=key)


def forget(connection: Connection, row: Row, found: Iterable[Signal]) -> None:
    """They are dealt with."""
    numbers = [signal.id for signal in found]
    if numbers:
        connection.execute(delete(signal_arrivals).where(_of(row), signal_arrivals.c.signal_id.in_(numbers)))


def joins(connection: Connection, row: Row) -> dict[str, list[Signal]]:
    """Those that are to begin runs, by the key of the join, the oldest first."""
    found = (
        select(signal_arrivals.c.join_key, signals.c.id, signals.c.name, signals.c.params)
        .join(signal_arrivals, signal_arrivals.c.signal_id == signals.c.id)
        .where(_of(row), signal_arrivals.c.join_key.is_not(None))
        .order_by(signals.c.id)
    )
    by_key: dict[str, list[Signal]] = {}
    for key, number, name, params in connection.execute(found):
        by_key.setdefault(key, []).append(Signal(number, name, params))
    return dict(sorted(by_key.items(), key=lambda item: item[1][-1].id))


def choose_run_key(connection: Connection, row: Row, key: str, run_key: str) -> str | None:
    """The idempotency key of a join's run: this one, or what somebody chose before; None: the join is dealt with."""
    ours = (_of(row), signal_arrivals.c.join_key == key)
    connection.execute(
        update(signal_arrivals).where(*ours, signal_arrivals.c.run_key.is_(None)).values(run_key=run_key)
    )
    return connection.execute(select(signal_arrivals.c.run_key).where(*ours).limit(1)).scalar()


def _set(connection: Connection, row: Row, found: Iterable[Signal], **values: str) -> None:
    numbers = [signal.id for signal in found]
    connection.execute(
        update(signal_arrivals).where(_of(row), signal_arrivals.c.signal_id.in_(numbers)).values(**values)
    )


def _of(row: Row) -> ColumnElement[bool]:
    return and_(signal_arrivals.c.workflow_id == row["workflow_id"], signal_arrivals.c.trigger_name == row["name"])
