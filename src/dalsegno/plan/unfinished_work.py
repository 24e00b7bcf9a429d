"""Work behind a capture that the running version would leave behind, or do a second time under another name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dalsegno.errors import DalsegnoError, PlatformError, UserError
from dalsegno.hints import Action, Verb, action
from dalsegno.model.work_units import UnitKey, UnitState, WorkUnit


@dataclass(frozen=True)
class KnownSteps:
    """The steps of the running version, by workflow and step."""

    steps: frozenset[tuple[str, str]]
    #: Whether there are no others: False if a run decides which workflow it calls.
    is_complete: bool


@dataclass(frozen=True)
class LeftBehind:
    unit: WorkUnit
    #: Whether no later moment of this run can change that.
    is_final: bool


def left_behind(
    others: Iterable[WorkUnit], key: UnitKey, root_run: str, known: KnownSteps, *, is_new: bool
) -> LeftBehind | None:
    """The work of another step, or of this one with other parameters, that this run does not continue.

    ``is_new``: nobody has asked for the work of ``key`` before.
    """
    for each in others:
        if not each.is_begun or root_run in each.visited:
            continue
        named = (each.key.workflow_id, each.key.step_id)
        if named not in known.steps and (known.is_complete or named[0] == key.workflow_id):
            return LeftBehind(each, is_final=True)
        if is_new and each.is_sql and named == (key.workflow_id, key.step_id):
            # Another iteration or call of the same step: this run may still come to it.
            return LeftBehind(each, is_final=False)
    return None


def blocking_commit(units: Iterable[WorkUnit], root_run: str | None) -> WorkUnit | None:
    """Work because of which a capture cannot count as processed; None of the run: somebody commits by hand."""
    for each in units:
        is_left = root_run is not None and root_run not in each.visited
        if each.is_sql and each.is_begun and (each.state is not UnitState.DONE or is_left):
            return each
    return None


def refusal(unit: WorkUnit, *, is_final: bool) -> DalsegnoError:
    """Why work that was begun and not continued keeps other work from being done."""
    captures = ", ".join(unit.key.captures)
    state = "is done, and nothing continues it" if unit.state is UnitState.DONE else "was begun and is not finished"
    kind = UserError if is_final else PlatformError
    return kind(
        f"Behind capture {captures}, the work of {unit.name} {state}: rows could be written twice, or be lost.",
        actions=ways_on(unit),
    )


def in_doubt(capture_id: str, step_id: str) -> list[Action]:
    """What a person says about a statement in doubt: that it was executed, or that it was not."""
    return [
        action("If the rows are there", Verb.RESOLVE, capture=capture_id, step=step_id, written=True),
        action("If they are not", Verb.RESOLVE, capture=capture_id, step=step_id, not_written=True),
    ]


def ways_on(unit: WorkUnit) -> list[Action]:
    """What can be done about work that was begun."""
    finish = action("Finish it with the version that began it", Verb.RESTART, run=unit.begun_by)
    capture = unit.key.captures[0]
    if unit.is_sql:
        return [finish, action("Or roll its targets back, and start again", Verb.UNDO, capture=capture)]
    # What it wrote, only its targets know.
    aim = "Or roll its targets back by hand, and start again"
    return [finish, action(aim, Verb.UNDO, capture=capture, step=unit.key.step_id, leave_rows=True)]
