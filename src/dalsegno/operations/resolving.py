"""Resolve: a person says whether a statement was executed of which nobody else can tell."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from dalsegno.capture.lake import Lake
from dalsegno.engine.machine import machine_name
from dalsegno.errors import Conflict, PlatformError, UserError
from dalsegno.hints import Verb, action
from dalsegno.model.work_units import Statement, StatementState, UnitState, WorkUnit
from dalsegno.spark.forms import Effect, form_of
from dalsegno.steps.spark import executors
from dalsegno.store import work_units
from dalsegno.store.settling import is_open


@dataclass(frozen=True)
class Resolved:
    capture_id: str
    step: str
    #: The statements that were in doubt, as they stand now.
    statements: tuple[Statement, ...]


def work_behind(lake: Lake, capture_id: str) -> list[WorkUnit]:
    """What was begun behind a capture, oldest first."""
    with lake.store.database.reading() as connection:
        return work_units.behind(connection, [lake.store.capture(capture_id).id])


def resolve(lake: Lake, capture_id: str, *, step: str | None = None, is_written: bool) -> Resolved:
    """Say of the statements in doubt behind a capture that they were executed, or that they were not."""
    capture = lake.store.capture(capture_id)
    if not is_written:
        _end_what_runs(lake, capture.id, step)
    with lake.store.database.writing() as connection:
        if is_open(connection, capture.created_by):
            run = capture.created_by.removeprefix("run ")
            raise Conflict(
                f"Capture {capture.id} is held by {capture.created_by}, which has not ended.",
                actions=[action("Wait for it, or end it first", Verb.STOP, run=run)],
            )
        units = work_units.behind(connection, [capture.id])
        found = [unit for unit in units if step in (None, unit.key.step_id) and unit.is_sql and _doubts(unit)]
        if len(found) != 1:
            names = ", ".join(sorted({unit.key.step_id for unit in found})) or "none"
            raise UserError(
                f"Behind capture {capture.id}, {names} has statements in doubt; expected one step.",
                hint="Name one as 'step'." if found else None,
                actions=[] if found else [action("See what was begun", Verb.SHOW_WRITES, capture=capture.id)],
            )
        [unit] = found
        state = StatementState.DONE if is_written else StatementState.PLANNED
        meant = _meant(unit)
        for each in _doubts(unit):
            # Nothing of it is at work any longer: of what is not meant, the targets tell.
            said = {"state": state.value, "doubt": None} if each in meant else {}
            work_units.change_statement(connection, unit.id, each.number, executor=None, **said)
        # Whoever works on it finds that it is no longer theirs.
        work_units.change(connection, unit.id, owner="", state=UnitState.OPEN.value)
        changed = work_units.the(connection, unit.id)
    assert changed is not None  # noqa: S101 - it was just changed
    numbers = {each.number for each in meant}
    return Resolved(capture.id, unit.key.step_id, tuple(e for e in changed.statements if e.number in numbers))


def _end_what_runs(lake: Lake, capture_id: str, step: str | None) -> None:
    """What is said not to be written must not be written after that, as far as that can be seen to from here."""
    with lake.store.database.reading() as connection:
        if is_open(connection, lake.store.capture(capture_id).created_by):
            return
        units = work_units.behind(connection, [capture_id])
    for unit in units:
        for statement in _doubts(unit) if step in (None, unit.key.step_id) and unit.is_sql else ():
            # A server that is gone, or a machine that is not this one, cannot be asked: then a person's word counts.
            with suppress(PlatformError):
                executors.ensure_gone(lake.settings, statement.executor, machine_name(lake.settings.machine))


def _meant(unit: WorkUnit) -> list[Statement]:
    """The statements that a person has been asked about. Several may have been begun together, by one driver."""
    begun = _doubts(unit)
    asked = [each for each in begun if each.doubt is not None]
    if asked or len(begun) == 1:
        return asked or begun
    return [each for each in begun if each.before is None or form_of(each.text).effect is not Effect.STAMPED]


def _doubts(unit: WorkUnit) -> list[Statement]:
    """Those that were begun, and of which it is not known how they ended."""
    return [each for each in unit.statements if each.state is StatementState.BEGUN]
