"""When a capture may be committed or abandoned: not while somebody works behind it, nor while work is unfinished."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection

from dalsegno.errors import CapturePending, DataError
from dalsegno.hints import Verb, action
from dalsegno.model.captures import Capture, run_of_actor
from dalsegno.plan import unfinished_work
from dalsegno.store import capture_queries, captures, run_queries, work_units
from dalsegno.store.database import lock


def hold(connection: Connection, capture_ids: Collection[str]) -> list[Capture]:
    """The captures; until the transaction ends, nobody else changes them or their consumers' checkpoints."""
    # In one order, so that two who want the same do not wait for each other.
    for consumer in sorted({capture_queries.consumer(connection, each) for each in capture_ids}):
        lock(connection, consumer)
    return capture_queries.named(connection, capture_ids)


def refuse_commit(connection: Connection, capture_ids: Sequence[str], by: str) -> None:
    """Raise if somebody may not commit these captures by hand."""
    for capture in capture_queries.named(connection, capture_ids):
        if capture.state.is_pending:
            _refuse_other_holder(connection, capture, by)
    if (unit := unfinished_work.blocking_commit(work_units.behind(connection, capture_ids), None)) is not None:
        raise unfinished_work.refusal(unit, is_final=True)
    others = sorted(work_units.together(connection, capture_ids) - set(capture_ids))
    if others := [each.id for each in capture_queries.named(connection, others) if each.state.is_pending]:
        raise CapturePending(
            f"Capture {', '.join(capture_ids)} was consumed together with {', '.join(others)}: "
            "committed alone, the rows of the others would be written again.",
            capture_id=others[0],
            actions=[action("Commit them together", Verb.COMMIT, capture=(*capture_ids, *others))],
        )


def committable(connection: Connection, capture_ids: Sequence[str], root_run: str, by: str) -> list[str]:
    """The captures that a run may commit now that it has processed these: none if they have to wait for others.

    Captures that a step consumed together are committed together: if one were committed alone and the run died, the
    next run would consume the others together with new rows, and could not tell that they were written before.
    """
    for capture in hold(connection, capture_ids):
        if capture.state.is_pending and not is_of(connection, capture.created_by, root_run):
            _refuse_other_holder(connection, capture, by)
    if (unit := unfinished_work.blocking_commit(work_units.behind(connection, capture_ids), root_run)) is not None:
        raise unfinished_work.refusal(unit, is_final=True)
    together = work_units.together(connection, capture_ids)
    captures.want_commit(connection, capture_ids, root_run)
    wanted = {*captures.wanted_by(connection, root_run), *capture_ids}
    pending = {each.id for each in hold(connection, together) if each.state.is_pending}
    if pending - wanted:
        return []
    if (unit := unfinished_work.blocking_commit(work_units.behind(connection, together), root_run)) is not None:
        raise unfinished_work.refusal(unit, is_final=True)
    return sorted({*pending, *capture_ids})


def refuse_abandon(connection: Connection, capture: Capture, by: str) -> None:
    """Raise if giving the capture up would lead to rows that are written twice."""
    if not capture.state.is_pending:
        return
    _refuse_other_holder(connection, capture, by)
    for unit in work_units.behind(connection, [capture.id]):
        if unit.is_begun:
            raise DataError(
                f"Capture {capture.id} cannot be abandoned: {unit.name} has written rows for it, and the next capture "
                "would bring them again.",
                actions=unfinished_work.ways_on(unit),
            )


def is_worked_on(connection: Connection, capture: Capture) -> str | None:
    """Why a capture must not be given up, whatever its age; None if it may."""
    if is_open(connection, capture.created_by):
        return f"{capture.created_by} holds it and has not ended"
    unit = next((each for each in work_units.behind(connection, [capture.id]) if each.is_begun), None)
    return None if unit is None else f"{unit.name} has written rows for it"


def is_open(connection: Connection, actor: str) -> bool:
    """Whether a holder is a run that has not ended."""
    named = run_of_actor(actor)
    row = run_queries.numbered(connection, *named) if named else None
    if row is None:
        return False
    from dalsegno.model.runs import RunStatus  # noqa: PLC0415 - commands about captures do without runs

    return not RunStatus(row["status"]).is_final


def is_of(connection: Connection, actor: str, root_run: str) -> bool:
    """Whether a holder is a run of the same tree: one that a run has called may be called again."""
    named = run_of_actor(actor)
    row = run_queries.numbered(connection, *named) if named else None
    return row is not None and row["root_run"] == root_run


def _refuse_other_holder(connection: Connection, capture: Capture, by: str) -> None:
    if capture.created_by != by and is_open(connection, capture.created_by):
        run = capture.created_by.removeprefix("run ")
        raise CapturePending(
            f"Capture {capture.id} is held by {capture.created_by}, which has not ended.",
            capture_id=capture.id,
            actions=[action("Wait for it, or end it first", Verb.STOP, run=run)],
        )
