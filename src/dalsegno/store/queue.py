"""Steps that are ready, leases on those that run, and the permits they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, tuple_, update

from dalsegno.store import row_queries
from dalsegno.store.database import lock, try_lock
from dalsegno.store.row_queries import Row
from dalsegno.store.run_tables import limits, nodes, permits, runs, steps


def due(connection: Connection, now: datetime, *, roots: Sequence[str] | None, limit: int, skip: int = 0) -> list[Any]:
    """(run, flow, step) of the steps that are ready, the longest waiting first; of these runs and their subruns."""
    found = (
        select(steps.c.run_id, steps.c.flow_id, steps.c.step_id)
        .where(steps.c.ready_at.is_not(None), steps.c.ready_at <= now)
        .order_by(steps.c.ready_at, steps.c.flow_id, steps.c.step_id)
        .limit(limit)
        .offset(skip)
    )
    return list(connection.execute(_within(found, roots)))


def next_due(connection: Connection, *, roots: Sequence[str] | None) -> datetime | None:
    """When the next step is ready."""
    found = select(func.min(steps.c.ready_at)).where(steps.c.ready_at.is_not(None))
    return connection.execute(_within(found, roots)).scalar()


def _within(found: Any, roots: Sequence[str] | None) -> Any:
    if roots is None:
        return found
    return found.where(steps.c.run_id.in_(select(runs.c.id).where(runs.c.root_run.in_(list(roots)))))


def leased_by(
    connection: Connection, owners: Sequence[str], *, roots: Sequence[str] | None = None, limit: int | None = None
) -> list[Row]:
    """The claimed steps of these processes, of these runs and their subruns."""
    return _leased(connection, steps.c.lease_owner.in_(list(owners)), roots=roots, limit=limit)


def leased_by_nobody(connection: Connection) -> list[Row]:
    """The claimed steps of processes that are not there any more."""
    # One statement: whoever came and claimed something in between would else look gone.
    return _leased(connection, steps.c.lease_owner.not_in(select(nodes.c.id)))


def _leased(
    connection: Connection,
    whose: ColumnElement[bool],
    *,
    roots: Sequence[str] | None = None,
    limit: int | None = None,
) -> list[Row]:
    columns = ("run_id", "flow_id", "step_id", "fence", "ending", "lease_owner")
    found = select(*(steps.c[name] for name in columns)).where(steps.c.lease_until.is_not(None), whose)
    return row_queries.rows(connection, _within(found, roots).order_by(steps.c.flow_id, steps.c.step_id).limit(limit))


def overdue(connection: Connection, now: datetime) -> list[Any]:
    """(run, flow, step) of the steps that go on without a worker, and should have ended by now."""
    found = select(steps.c.run_id, steps.c.flow_id, steps.c.step_id).where(
        steps.c.status == "RUNNING",
        steps.c.deadline <= now,
        steps.c.lease_until.is_(None),
        steps.c.ending.is_(None),
    )
    return list(connection.execute(found))


def note(connection: Connection, flow_id: str, step_id: str, fence: int, values: Mapping[str, Any]) -> bool:
    """Keep what a worker tells of its step; False if it is no longer its step."""
    mine = (steps.c.flow_id == flow_id, steps.c.step_id == step_id, steps.c.fence == fence)
    done = connection.execute(update(steps).where(*mine, steps.c.lease_owner.is_not(None)).values(**values))
    return done.rowcount == 1


# Permits.


def limits_of(connection: Connection, tags: Iterable[str]) -> dict[str, int]:
    found = select(limits.c.tag, limits.c.most).where(limits.c.tag.in_(list(tags)))
    return {tag: most for tag, most in connection.execute(found)}


def all_limits(connection: Connection) -> list[tuple[str, int, int]]:
    """(tag, how many at most, how many now)."""
    held = select(permits.c.name, func.count().label("held")).group_by(permits.c.name).subquery()
    found = (
        select(limits.c.tag, limits.c.most, func.coalesce(held.c.held, 0))
        .outerjoin(held, held.c.name == "tag " + limits.c.tag)
        .order_by(limits.c.tag)
    )
    return [(tag, most, count) for tag, most, count in connection.execute(found)]


def set_limit(connection: Connection, tag: str, most: int | None) -> None:
    connection.execute(delete(limits).where(limits.c.tag == tag))
    if most is not None:
        connection.execute(insert(limits).values(tag=tag, most=most))


def hold_permits(connection: Connection, names: Iterable[str], *, wait: bool) -> set[str]:
    """Let nobody else take permits of these names until the transaction ends; those that we hold then.

    Only the first time may it wait for others: all at once and in their order, so that no two wait for each other.
    """
    wanted = sorted(names)
    if not wait:
        return {name for name in wanted if try_lock(connection, f"permit {name}")}
    for name in wanted:
        lock(connection, f"permit {name}")
    return set(wanted)


def held(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    """How many permits of each name are held."""
    wanted = sorted(names)
    found = select(permits.c.name, func.count()).where(permits.c.name.in_(wanted)).group_by(permits.c.name)
    return dict.fromkeys(wanted, 0) | {name: count for name, count in connection.execute(found)}


def add_permits(connection: Connection, new: Sequence[Mapping[str, str]]) -> None:
    if new:
        connection.execute(insert(permits), list(new))


def release_permits(connection: Connection, held_by: Sequence[tuple[str, str]]) -> int:
    if not held_by:
        return 0
    done = connection.execute(delete(permits).where(tuple_(permits.c.flow_id, permits.c.step_id).in_(list(held_by))))
    return done.rowcount
