"""Who empties a target in a full refresh, and which steps may take part in one.

Of several steps that write to one target behind the same captures, the first one empties it; the others wait for that.
"""

from __future__ import annotations

from collections.abc import Iterable

from dalsegno.errors import PlatformError, UserError
from dalsegno.hints import Verb, action
from dalsegno.model.full_refresh import FullRefresh
from dalsegno.model.tables import TableName
from dalsegno.model.work_units import StatementState, WorkUnit

_MARK = "/* full refresh */ DELETE FROM "


def emptying(table: TableName) -> str:
    """The statement that empties a target."""
    return f"{_MARK}{table.quoted}"


def emptied_by(text: str) -> str | None:
    """The target that a statement of a full refresh empties, quoted."""
    return text.removeprefix(_MARK) if text.startswith(_MARK) else None


def is_emptied(table: TableName, others: Iterable[WorkUnit]) -> bool:
    """Whether other work behind the same captures has emptied or replaced a target; raises while it is about to."""
    found = False
    for other in others:
        for each in other.statements:
            if emptied_by(each.text) == table.quoted and each.state is not StatementState.DONE:
                raise PlatformError(f"{other.name} is about to empty {table}, which this step writes to as well.")
            found |= each.target == table.quoted and each.state is not StatementState.PLANNED
    return found


def refuse_second(unit: WorkUnit, others: Iterable[WorkUnit]) -> None:
    """Raise if other work has begun meanwhile to write to a target that this would empty."""
    wanted = {emptied_by(each.text) for each in unit.statements} - {None}
    for other in others if wanted else ():
        for each in other.statements:
            is_begun = each.target in wanted and each.state is not StatementState.PLANNED
            if is_begun or emptied_by(each.text) in wanted:
                raise PlatformError(f"{other.name} writes to a table that {unit.name} would empty for a full refresh.")


def refuse_untrusted(workflow_id: str, step_id: str, kind: str, allowed: FullRefresh | None) -> None:
    """Raise for a job whose targets are not known here, unless somebody has said that it may run."""
    if allowed is not None and step_id in allowed.trust:
        return
    raise UserError(
        f"Step {step_id!r} is a {kind} job, and a full refresh cannot know which tables it writes to: rows that it "
        "wrote before could stay beside the new ones.",
        actions=[
            action(
                "If it writes no rows, or replaces all of them when the capture's 'is_full' is true",
                Verb.RUN,
                workflow=workflow_id,
                full_refresh=True,
                trust=step_id,
            )
        ],
    )
