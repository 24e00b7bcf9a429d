"""The commands about work behind captures: see it, settle what is in doubt, take it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli import completion
from dalsegno.cli.output import opened, show
from dalsegno.cli.runs import Json, SettingsFile

if TYPE_CHECKING:
    from dalsegno.model.work_units import Statement, WorkUnit
    from dalsegno.operations.resolving import Resolved
    from dalsegno.operations.undoing import Undone

CaptureId = Annotated[
    str,
    typer.Argument(
        metavar="CAPTURE", help="The capture's id, or how it begins.", autocompletion=completion.pending_captures
    ),
]
Step = Annotated[str | None, typer.Option(metavar="STEP", help="Only the work of this step.")]
_LONGEST = 100


def register(app: typer.Typer) -> None:
    app.command()(writes)
    app.command()(resolve)
    app.command()(undo)


def writes(capture_id: CaptureId, json: Json = False, settings: SettingsFile = None) -> None:
    """Show what steps wrote for a capture, statement by statement."""
    with opened(settings, as_json=json) as operations:
        show(operations.captures.work(capture_id), _work, as_json=json)


def resolve(
    capture_id: CaptureId,
    written: Annotated[
        bool | None, typer.Option("--written/--not-written", help="Whether the statement in doubt was executed.")
    ] = None,
    step: Step = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Resolve a statement in doubt: say whether it was executed.

    A step stops if dalsegno cannot prove whether a statement wrote. Look at its target, then resolve it.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.errors import UserError  # noqa: PLC0415

        if written is None:
            raise UserError(
                "Say whether the statement was executed.",
                hint=f"See it: dalsegno writes {capture_id}. Then add --written or --not-written.",
            )
        show(operations.captures.resolve(capture_id, step=step, is_written=written), _resolved, as_json=json)


def undo(
    capture_id: CaptureId,
    step: Step = None,
    leave_rows: Annotated[
        bool, typer.Option("--leave-rows", help="Do not roll back the targets; only forget that the steps wrote.")
    ] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Roll back what steps wrote for a capture.

    Each target returns to its earlier snapshot, unless others have written to it since or a consumer has captured those
    rows. The capture stays pending: the next run processes it again.
    """
    with opened(settings, as_json=json) as operations:
        show(operations.captures.undo(capture_id, step=step, leave_rows=leave_rows), _undone, as_json=json)


def _work(units: Sequence[WorkUnit]) -> str:
    if not units:
        return "No step has written for this capture."
    return "\n".join(line for unit in units for line in (_heading(unit), *map(_statement, unit.statements)))


def _heading(unit: WorkUnit) -> str:
    from dalsegno.cli.times import moment  # noqa: PLC0415 - not for --help

    return f"{unit.name}: {unit.state.value}, begun by {unit.begun_by} at {moment(unit.created_at)}"


def _statement(each: Statement) -> str:
    text = " ".join(each.text.split())
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    snapshot = f", snapshot {each.after}" if each.after else ""
    doubt = f"\n     in doubt: {each.doubt}" if each.doubt else ""
    return f"  {each.number}. {each.state.value:<7}  {short}{snapshot}{doubt}"


def _resolved(made: Resolved) -> str:
    if not made.statements:
        return f"The targets prove what step {made.step!r} has written: the next run, or a restart, asks them."
    numbers = ", ".join(str(each.number) for each in made.statements)
    state = made.statements[0].state.value
    return f"Statement {numbers} of step {made.step!r} counts as {state}. The next run, or a restart, resumes there."


def _undone(made: Undone) -> str:
    lines = [f"Rolled back for capture {made.capture_id}: {', '.join(made.steps)}."]
    lines += [f"  {each.target}: {', '.join(each.moves)}" for each in made.targets]
    lines += [f"  not rolled back: {each}" for each in made.stays]
    return "\n".join([*lines, "The next run processes the capture again."])
